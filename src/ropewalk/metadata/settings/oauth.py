"""Broker settings about tokens of OAuth, by Kafka's names where Kafka has them. All are read from a node's own configuration.

What a reader could get wrong
    `sasl.oauthbearer.jwks.endpoint.url`, the issuer and the audience are configured together or not at all: Kafka takes tokens that nobody has
    signed where the first is missing, and those of everybody else where the others are.
"""

from collections.abc import Mapping
from typing import Final

from ropewalk.metadata.settings.setting import Change, Kind, Setting

_CATALOGUE: Final = (
    Setting(
        "sasl.oauthbearer.jwks.endpoint.url",
        Kind.STRING,
        "",
        "Where the public keys are that tokens are signed with: an https:// URL, or a file:/// URL of a JWKS, which is read again when it changes. "
        "`none` has OAUTHBEARER take the cluster's own tokens alone.",
        change=Change.READ_ONLY,
    ),
    Setting(
        "sasl.oauthbearer.expected.issuer",
        Kind.STRING,
        "",
        "The issuer (`iss`) that a token must name, letter for letter.",
        change=Change.READ_ONLY,
    ),
    Setting(
        "sasl.oauthbearer.expected.audience",
        Kind.LIST,
        "",
        "Audiences (`aud`), for one of which a token must be.",
        change=Change.READ_ONLY,
    ),
    Setting(
        "sasl.oauthbearer.sub.claim.name",
        Kind.STRING,
        "sub",
        "The claim that has the name of the user.",
        pattern="[!-~]{1,255}",
        change=Change.READ_ONLY,
    ),
    Setting(
        "sasl.oauthbearer.scope.claim.name",
        Kind.STRING,
        "scope",
        "The claim that has scopes. A token may leave it out; one that has nonsense there is refused.",
        pattern="[!-~]{1,255}",
        change=Change.READ_ONLY,
    ),
    Setting(
        "sasl.oauthbearer.groups.claim.name",
        Kind.STRING,
        "groups",
        "The claim that has the groups of the user, one or several, which rules name as `Group:NAME`.",
        pattern="[!-~]{1,255}",
        change=Change.READ_ONLY,
    ),
    Setting(
        "sasl.oauthbearer.clock.skew.seconds",
        Kind.INT,
        "30",
        "How far the clock of whoever issues tokens may be ahead of this node's. Nothing is added to the end of a token.",
        minimum=0,
        maximum=3_600,
        change=Change.READ_ONLY,
    ),
    Setting(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        Kind.LONG,
        "3600000",
        "How often the public keys are asked for. A token that names an unknown key has them asked for at once.",
        minimum=1_000,
        change=Change.READ_ONLY,
    ),
    Setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        Kind.LONG,
        "100",
        "After a first failure to get the public keys, how long until the next attempt; it doubles with every failure.",
        minimum=10,
        change=Change.READ_ONLY,
    ),
    Setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        Kind.LONG,
        "10000",
        "The longest wait between such attempts.",
        minimum=10,
        change=Change.READ_ONLY,
    ),
    Setting(
        "sasl.oauthbearer.ca.location",
        Kind.STRING,
        "",
        "A PEM file of the authorities that vouch for the server of the public keys; empty for the system's.",
        change=Change.READ_ONLY,
    ),
)

OAUTH_SETTINGS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _CATALOGUE}
