"""Who may ask the console anything: decided from the head of a request, before it is known who asks.

What a reader could get wrong
    Where the console is open, any web page can have its reader's browser ask it: the page's own name is made to stand for 127.0.0.1 (DNS
    rebinding). The browser says whom it meant in Host, so that is compared, as a whole literal.
    A change comes from a page of this console. Browsers say so in Origin and Sec-Fetch-Site; and there is a token in every form, which other
    sites cannot read. The token is masked, otherwise each time, so that its bytes do not show in the length of a compressed page.
    A page of another site may lead here by a link. It may not have our pages loaded into it.
"""

import hmac
from collections.abc import Collection
from hashlib import sha256
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final

from msgspec import Struct

from ropewalk.base.ports import Rng
from ropewalk.http1.message import Request
from ropewalk.http1.parser import Refused

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")
ANY_HOST: Final = "*"
TOKEN_FIELD: Final = "console_token"
TOKEN_HEADER: Final = "x-console-token"
_NONCE_BYTES: Final = 16

CONTENT_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
GUARDS: Final = (
    ("content-security-policy", CONTENT_POLICY),
    ("referrer-policy", "same-origin"),  # without any, a browser would not say the origin of a form, either
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
)
STRICT_TRANSPORT: Final = ("strict-transport-security", "max-age=31536000")


class Place(Struct, frozen=True):
    """Where the console is served."""

    host: str
    """That is listened on."""
    is_loopback: bool
    is_encrypted: bool
    hosts: Collection[str] = ()
    """Names that it goes by elsewhere than on the loopback, in lower case, besides its own and addresses in figures; with `*` any."""

    def goes_by(self, name: str) -> bool:
        literal = f"[{self.host}]" if ":" in self.host else self.host
        if name in LOOPBACK_NAMES or name == literal.lower():
            return True
        return not self.is_loopback and (ANY_HOST in self.hosts or name in self.hosts or _is_address(name))


def check_request(request: Request, place: Place) -> None:
    """Raises `Refused`."""
    if not place.goes_by(_name_of(request.host)):
        named = f"as {', '.join(LOOPBACK_NAMES)}" if place.is_loopback else "by a name in http.hosts"
        raise Refused(
            HTTPStatus.MISDIRECTED_REQUEST,
            f"this console is asked {named}, not by another; a web page that makes its own name stand for this machine is refused here",
        )
    if request.method not in ("GET", "HEAD", "POST"):
        raise Refused(
            HTTPStatus.METHOD_NOT_ALLOWED, "pages are read with GET, and changes are made with POST"
        )
    site = request.headers.get("sec-fetch-site", "same-origin")
    if request.method == "POST":
        origin = request.headers.get("origin")
        if site not in ("same-origin", "none") or (origin is not None and _authority(origin) != request.host):
            raise Refused(
                HTTPStatus.FORBIDDEN, "a change has to come from a page of this console, not of another site"
            )
    elif site not in ("same-origin", "none") and request.headers.get("sec-fetch-mode") != "navigate":
        raise Refused(HTTPStatus.FORBIDDEN, "pages of this console are not loaded into those of another site")


def make_token(secret: bytes, cookie: str, rng: Rng) -> str:
    """For a form on a page of whoever has the cookie."""
    nonce = rng.randbytes(_NONCE_BYTES).hex()
    return nonce + _sealed(secret, cookie, nonce)


def check_token(secret: bytes, cookie: str | None, token: str) -> None:
    """Raises `Refused`."""
    nonce, seal = token[: 2 * _NONCE_BYTES], token[2 * _NONCE_BYTES :]
    if cookie is None or not hmac.compare_digest(_sealed(secret, cookie, nonce).encode(), seal.encode()):
        raise Refused(
            HTTPStatus.FORBIDDEN,
            "the form is of a page that has become too old, or of none; load the page again and repeat the change",
        )


def _sealed(secret: bytes, cookie: str, nonce: str) -> str:
    return hmac.new(secret, f"{nonce}.{cookie}".encode(), sha256).hexdigest()


def _name_of(host: str) -> str:
    """Without the port."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdecimal() and (":" not in name or name.endswith("]")) else host.lower()


def _is_address(name: str) -> bool:
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _authority(origin: str) -> str:
    scheme, separator, authority = origin.partition("://")
    return authority if separator and scheme in ("http", "https") else ""
