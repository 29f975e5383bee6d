"""Who may sign tokens for the users of this node's listeners: from the configuration, and their keys while the node runs.

Behaviour worth knowing
    Keys, issuer and audience are configured together. A listener that takes tokens without them is refused at start, and so is a node whose
    authority does not show its keys; `none` in place of the keys says that the cluster's own tokens are enough.
    Doors that speak HTTP ask by what is configured for no listener in particular. Where that is nothing, they take the cluster's own tokens.
    Listeners with the same source of keys share what is known of it.

What a reader could get wrong
    Nothing of this is loaded by a node without an authority.
"""

from collections.abc import Callable, Coroutine, Iterator
from typing import Final, Protocol

from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.ports import Clock, Ports
from ropewalk.broker.bearers import Authority, Bearers
from ropewalk.metadata.image import Image
from ropewalk.node.addresses import NONE
from ropewalk.node.kafka_listeners import ListenerPlan
from ropewalk.security.bearer import Expected
from ropewalk.security.identity import BY_OAUTH
from ropewalk.security.jwks import URL_SETTING, Jwks, JwksSource, check_url
from ropewalk.security.tokens import is_ours

_ISSUER: Final = "sasl.oauthbearer.expected.issuer"
_AUDIENCE: Final = "sasl.oauthbearer.expected.audience"
_MECHANISMS: Final = "sasl.enabled.mechanisms"


class Settings(Protocol):
    """As much of a node's configuration as is read here."""

    def __getitem__(self, name: str) -> str: ...

    def of_listener(self, listener: str, name: str) -> str: ...

    @property
    def kafka_listeners(self) -> tuple[ListenerPlan, ...]: ...


class AuthorityPlan(Struct, frozen=True):
    expected: Expected
    source: JwksSource


def takes_tokens(settings: Settings, listener: ListenerPlan) -> bool:
    named = {each.strip() for each in settings[_MECHANISMS].split(",")}
    return listener.protocol.has_sasl and BY_OAUTH in named


def check_authorities(settings: Settings) -> None:
    """Raises `InvalidSetting`, in a sentence that says what is missing."""
    plan_of(settings)
    for listener in settings.kafka_listeners:
        plan = plan_of(settings, listener.name)
        if takes_tokens(settings, listener) and plan is None and _said(settings, listener.name)[0] != NONE:
            raise InvalidSetting(
                f"{_MECHANISMS} has {BY_OAUTH} for {listener.name}, which needs {URL_SETTING}, {_ISSUER} and {_AUDIENCE}; "
                f"{URL_SETTING}={NONE} takes the cluster's own tokens alone"
            )


def plan_of(settings: Settings, listener: str | None = None) -> AuthorityPlan | None:
    """Of a listener for Kafka's clients, or of the doors that speak HTTP; None where there is no authority. Raises `InvalidSetting`."""
    url, issuer, audience = _said(settings, listener)
    what = "" if listener is None else f" for {listener}"
    if url in ("", NONE):
        for name, value in ((_ISSUER, issuer), (_AUDIENCE, audience)):
            if value:
                raise InvalidSetting(
                    f"{name} is set{what}, and {URL_SETTING} is not: no token could be believed"
                )
        return None
    check_url(url)
    for name, value in ((_ISSUER, issuer), (_AUDIENCE, audience)):
        if not value:
            raise InvalidSetting(
                f"{URL_SETTING} is set{what}, and {name} is not: tokens that are meant for others would be taken"
            )
    if is_ours(issuer):
        raise InvalidSetting(f"{_ISSUER} is {issuer}, which only clusters like this one call themselves")

    def said(name: str) -> str:
        name = f"sasl.oauthbearer.{name}"
        return settings[name] if listener is None else settings.of_listener(listener, name)

    return AuthorityPlan(
        Expected(
            issuer=issuer,
            audiences=tuple(each.strip() for each in audience.split(",")),
            subject_claim=said("sub.claim.name"),
            scope_claim=said("scope.claim.name"),
            groups_claim=said("groups.claim.name"),
            skew_ms=int(said("clock.skew.seconds")) * 1000,
        ),
        JwksSource(
            url=url,
            ca_location=said("ca.location"),
            refresh_ms=int(said("jwks.endpoint.refresh.ms")),
            retry_ms=int(said("jwks.endpoint.retry.backoff.ms")),
            retry_ms_max=int(said("jwks.endpoint.retry.backoff.max.ms")),
        ),
    )


def _said(settings: Settings, listener: str | None) -> tuple[str, str, str]:
    if listener is None:
        return settings[URL_SETTING], settings[_ISSUER], settings[_AUDIENCE]
    url, issuer, audience = (
        settings.of_listener(listener, name) for name in (URL_SETTING, _ISSUER, _AUDIENCE)
    )
    return url, issuer, audience


class Authorities:
    """Those of a node, with their keys."""

    def __init__(self, settings: Settings, keys: dict[JwksSource, Jwks]) -> None:
        self._settings = settings
        self._keys = keys

    def bearers(self, image: Image, clock: Clock, listener: ListenerPlan | None = None) -> Bearers:
        """Of a listener, or of the doors that speak HTTP."""
        plan = plan_of(self._settings, None if listener is None else listener.name)
        authority = None if plan is None else Authority(plan.expected, self._keys[plan.source])
        return Bearers(image, clock, authority)

    def works(self) -> Iterator[tuple[str, Callable[[], Coroutine[object, object, None]]]]:
        """What must run, by name."""
        for keys in self._keys.values():
            yield f"keys of tokens from {keys.source.url}", keys.run

    def trouble(self) -> str | None:
        """What somebody should see to, in a few words."""
        return next((trouble for keys in self._keys.values() if (trouble := keys.trouble())), None)


async def read_authorities(settings: Settings, ports: Ports) -> Authorities:
    """With the keys that they show. Raises `InvalidSetting`."""
    plans = [plan_of(settings)]
    plans += [
        plan_of(settings, each.name) for each in settings.kafka_listeners if takes_tokens(settings, each)
    ]
    keys: dict[JwksSource, Jwks] = {}
    for plan in plans:
        if plan is not None and plan.source not in keys:
            keys[plan.source] = Jwks(plan.source, ports.network, ports.pool, ports.clock)
            await keys[plan.source].open()
    return Authorities(settings, keys)
