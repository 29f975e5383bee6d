"""Who may see which page of the HTTP door, and what every answer of it says besides.

    421   a request for a host that this door does not go by: a web page whose name was made to mean this address
    403   a change that a page of another site asks for; or a right is missing
    401   it has to be known who asks, or what was shown is not right
    415   a change whose body is not JSON

What a reader could get wrong
    A browser sends what a foreign page tells it to, also to an address of the loopback. It says in `Host` which name it was given, and in
    `Origin` whose page that was. An address in figures is nobody's name, so it is always taken for this door's.
    Pages that are open to anybody are not asked for anything of this.
"""

from collections.abc import Awaitable, Callable, Collection, Coroutine
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any, Final

from msgspec import Struct, structs

from ropewalk.base.loopback import is_loopback
from ropewalk.broker.access import Access, asker_of
from ropewalk.http.logins import Logins, NobodyKnown
from ropewalk.http.needs import Figures, Inner, Known, Needs, Open
from ropewalk.http1.message import Answer, Handle, Request, StreamedAnswer, Visitor, text_answer
from ropewalk.http1.parser import Refused
from ropewalk.security.identity import ANONYMOUS_IDENTITY, Identity

ANY_HOST: Final = "*"
_LOCAL: Final = "localhost"
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES: Final = frozenset({"same-origin", "none"})
_JSON: Final = "application/json"
_HEADERS: Final = (
    ("content-security-policy", "default-src 'self'; frame-ancestors 'none'"),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
)
_ENCRYPTED_HEADERS: Final = (*_HEADERS, ("strict-transport-security", "max-age=31536000"))
_CHALLENGE: Final = ("www-authenticate", 'Basic realm="ropewalk", charset="UTF-8", Bearer realm="ropewalk"')

_INNER: Final = "where no rules decide who may see it, this is shown on the node's own machine alone"


class Caller(Struct, frozen=True):
    """Who asks for a page, as far as that is known, and on which connection."""

    identity: Identity
    visitor: Visitor


Page = Callable[[Request, Caller], Coroutine[Any, None, Answer | StreamedAnswer]]


class Terms(Struct, frozen=True, kw_only=True):
    """On what terms the door is open, by the node's configuration."""

    hosts: Collection[str]
    """Names that the door goes by, in lower case, besides localhost and addresses in figures; with `*` any."""
    is_encrypted: bool
    figures_are_open: bool
    """Whether figures and health are told to whoever reaches the door."""


class Admission:
    """Stands before every page."""

    def __init__(self, terms: Terms, access: Access, logins: Logins) -> None:
        self._terms = terms
        self._access = access
        self._logins = logins
        self._headers = _ENCRYPTED_HEADERS if terms.is_encrypted else _HEADERS

    def before(self, needs: Needs, page: Page) -> Handle:
        """The page for those who may see it. Its handler raises `Refused` for all others."""
        admit = self._admit

        async def handle(request: Request, visitor: Visitor) -> Answer | StreamedAnswer:
            try:
                return await page(request, Caller(await admit(needs, request, visitor), visitor))
            except NobodyKnown as refused:
                return text_answer(refused.status, str(refused), _CHALLENGE)

        return handle

    async def dressed(self, answering: Awaitable[Answer | StreamedAnswer]) -> Answer | StreamedAnswer:
        """An answer with what every answer of the door says to browsers."""
        answer = await answering
        said = {name for name, _ in answer.headers}
        return structs.replace(
            answer, headers=(*answer.headers, *[each for each in self._headers if each[0] not in said])
        )

    async def _admit(self, needs: Needs, request: Request, visitor: Visitor) -> Identity:
        match needs:
            case Open():
                return ANONYMOUS_IDENTITY
            case Figures(operations=operations):
                self._check_origin(request)
                if self._terms.figures_are_open or not self._access.is_on:
                    return ANONYMOUS_IDENTITY
                identity = await self._logins.identify(request, visitor)
                if not self._access.on_cluster(asker_of(identity, visitor.address), *operations):
                    raise _not_allowed(identity)
                return identity
            case Inner(operations=operations):
                self._check_origin(request)
                if not self._access.is_on:
                    if not is_loopback(visitor.address):
                        raise Refused(HTTPStatus.FORBIDDEN, _INNER)
                    return ANONYMOUS_IDENTITY
                identity = await self._logins.identify(request, visitor)
                if not self._access.on_cluster(asker_of(identity, visitor.address), *operations):
                    raise _not_allowed(identity)
                return identity
            case Known():
                self._check_origin(request)
                return await self._logins.identify(request, visitor)

    def _check_origin(self, request: Request) -> None:
        """Raises `Refused` for what a page of another site may have asked for."""
        if not self._goes_by(request.host):
            text = f"this door does not go by {request.host[:255]!r}; http.hosts names those it does"
            raise Refused(HTTPStatus.MISDIRECTED_REQUEST, text)
        if request.method in _READING:
            return
        headers = request.headers
        if headers.get("sec-fetch-site", "none") not in _OWN_SITES or not _is_own(request):
            raise Refused(HTTPStatus.FORBIDDEN, "a page of another site may not change anything here")
        kind = headers.get("content-type", _JSON).partition(";")[0].strip().lower()
        if request.body and kind != _JSON:
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"a change is asked for in {_JSON}")

    def _goes_by(self, host: str) -> bool:
        """What says no name at all comes from no browser."""
        name = _without_port(host)
        if not name or name == _LOCAL or ANY_HOST in self._terms.hosts:
            return True
        return name in self._terms.hosts or _is_address(name)


def _not_allowed(identity: Identity) -> Refused:
    if identity == ANONYMOUS_IDENTITY:
        return NobodyKnown(HTTPStatus.UNAUTHORIZED, "say who you are")
    return Refused(HTTPStatus.FORBIDDEN, f"{identity.principal} may not describe the cluster")


def _is_own(request: Request) -> bool:
    """Whether the page that asks, if one does, was had from here."""
    origin = request.headers.get("origin")
    return origin is None or origin.partition("://")[2].lower() == request.host.lower()


def _without_port(host: str) -> str:
    """
    >>> _without_port("Node.example.:9644"), _without_port("[::1]:9644"), _without_port("::1")
    ('node.example', '::1', '::1')
    """
    name = host.strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    if name.count(":") == 1:
        name = name.partition(":")[0]
    return name.removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
