"""Broker settings about TLS, by Kafka's names. All are read from a node's own configuration: they name its files."""

from collections.abc import Mapping
from typing import Final

from ropewalk.metadata.settings.setting import Change, Kind, Setting

_ONLY_PEM: Final = dict.fromkeys(
    ("JKS", "PKCS12"), "files are in PEM here: convert it, and set the type to PEM"
)

_CATALOGUE: Final = (
    Setting(
        "ssl.keystore.location",
        Kind.STRING,
        "",
        "A PEM file with this node's key and the chain of its certificate; mode 0600. It is read again when it changes.",
        change=Change.READ_ONLY,
    ),
    Setting(
        "ssl.keystore.type",
        Kind.STRING,
        "PEM",
        "The form of ssl.keystore.location.",
        choices=("PEM",),
        refused=_ONLY_PEM,
        change=Change.READ_ONLY,
    ),
    Setting(
        "ssl.key.password",
        Kind.PASSWORD,
        "",
        "The password of the key in ssl.keystore.location; empty where it is not encrypted.",
        change=Change.READ_ONLY,
    ),
    Setting(
        "ssl.truststore.location",
        Kind.STRING,
        "",
        "A PEM file of the authorities that client certificates come from. It is read again when it changes.",
        change=Change.READ_ONLY,
    ),
    Setting(
        "ssl.truststore.type",
        Kind.STRING,
        "PEM",
        "The form of ssl.truststore.location.",
        choices=("PEM",),
        refused=_ONLY_PEM,
        change=Change.READ_ONLY,
    ),
    Setting(
        "ssl.client.auth",
        Kind.STRING,
        "none",
        "Whether Kafka's clients show certificates: `required`, `requested` (whoever shows none has no name), or `none`.",
        choices=("none", "requested", "required"),
        change=Change.READ_ONLY,
    ),
    Setting(
        "ssl.enabled.protocols",
        Kind.LIST,
        "TLSv1.2,TLSv1.3",
        "The versions of TLS that are spoken.",
        choices=("TLSv1.2", "TLSv1.3"),
        change=Change.READ_ONLY,
    ),
    Setting(
        "ssl.principal.mapping.rules",
        Kind.STRING,
        "DEFAULT",
        "How the subject of a client certificate becomes the name of a user: RULE:EXPRESSION/REPLACEMENT/ with L or U behind it for lower or upper "
        "case, or DEFAULT for the subject as it is; the first that matches counts. Expressions are RE2's.",
        change=Change.READ_ONLY,
    ),
)

TLS_SETTINGS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _CATALOGUE}
