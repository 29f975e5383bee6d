"""How Spark's driver and its tasks log in to brokers: options of `kafka.`, by librdkafka's names or by Java's.

What a reader could get wrong
    Options go from the driver to every task, and so do secrets among them. A secret in a file (`kafka.sasl.password.file`) stays where it is,
    and every machine needs the file.
    Without `kafka.security.protocol` there is no security, and what is said of it means nothing, as in Kafka's own clients.
"""

import re
from collections.abc import Mapping
from typing import Final

from ropewalk.base.errors import InvalidSetting
from ropewalk.client.connections.security import (
    NO_SECURITY,
    SECURITY_PROPERTIES,
    VARIABLES,
    ClientSecurity,
    of_security,
    security_from,
)
from ropewalk.spark.refusals import WrongUse

PREFIX: Final = "kafka."
_BEGINNINGS: Final = ("security.", "ssl.", "sasl.", "https.")
_ONLY_JAVA: Final = (
    "ssl.protocol", "ssl.enabled.protocols", "ssl.provider", "ssl.cipher.suites", "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm", "ssl.secure.random.implementation", "ssl.engine.factory.class", "sasl.login.",
    "sasl.client.callback.handler.class", "sasl.kerberos.", "security.providers",
)  # fmt: skip
"""They choose how Java does it, which is not done here."""
_STORES: Final = {"truststore": "ssl.ca.location", "keystore": "ssl.certificate.location"}
_INLINE: Final = ("ssl.truststore.certificates", "ssl.keystore.certificate.chain", "ssl.keystore.key")
_JAAS: Final = "sasl.jaas.config"
_MODULE: Final = re.compile(r"\s*([\w.]+)\s+required\s+(.*?);?\s*", re.DOTALL)
_PAIR: Final = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))\s*""")
_OF_MODULES: Final = {
    "PlainLoginModule": {"username": "sasl.username", "password": "sasl.password"},
    "ScramLoginModule": {"username": "sasl.username", "password": "sasl.password"},
    "OAuthBearerLoginModule": {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    },
}


def take_security(given: Mapping[str, str]) -> tuple[ClientSecurity, dict[str, str], list[str]]:
    """Of options without `kafka.`: how to log in, what is left, and the names of those that mean nothing here. Raises `WrongUse`."""
    own = {name: value for name, value in given.items() if name.startswith(_BEGINNINGS)}
    rest = {name: value for name, value in given.items() if name not in own}
    protocol = own.get("security.protocol", "PLAINTEXT").upper()
    if protocol == "PLAINTEXT":
        return NO_SECURITY, rest, sorted(set(own) - {"security.protocol"})
    ignored = sorted(name for name in own if name.startswith(_ONLY_JAVA))
    said = {name: value for name, value in own.items() if name not in ignored}
    if not protocol.startswith("SASL"):
        ignored = sorted({*ignored, *(name for name in said if name.startswith("sasl."))})
        said = {name: value for name, value in said.items() if name not in ignored}
    keywords, strange = of_security(_from_java(said))
    if strange:
        raise WrongUse(
            f"kafka.{min(strange)} is not known; of security there are {', '.join(SECURITY_PROPERTIES)}"
        )
    try:
        return security_from(keywords), rest, ignored
    except InvalidSetting as error:
        raise WrongUse(f"kafka.…: {error}") from None


def security_of(options: Mapping[str, str]) -> ClientSecurity:
    """As a source or a sink with these options logs in."""
    return take_security(security_properties(options))[0]


def security_options(options: Mapping[str, str]) -> dict[str, str]:
    """Those that are about security, for others of the same job."""
    return {
        name: value
        for name, value in options.items()
        if name.lower().startswith(tuple(f"{PREFIX}{beginning}" for beginning in _BEGINNINGS))
    }


def security_properties(options: Mapping[str, str]) -> dict[str, str]:
    """The same without `kafka.`."""
    return _without_prefix(security_options(options))


def with_environment(options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Who says nothing of security is logged in as the environment says: `ROPEWALK_SECURITY_PROTOCOL` and its like."""
    if security_options(options) or not environment.get(VARIABLES["security_protocol"]):
        return dict(options)
    said = {
        f"{PREFIX}{name.replace('_', '.')}": environment[variable]
        for name, variable in VARIABLES.items()
        if environment.get(variable)
    }
    return {**options, **said}


def _without_prefix(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower().removeprefix(PREFIX): value for name, value in options.items()}


def _from_java(given: Mapping[str, str]) -> dict[str, str]:
    said = dict(given)
    for name in _INLINE:
        if name in said:
            raise WrongUse(
                f"kafka.{name} holds certificates themselves: write them into a file, and say kafka.ssl.ca.location or "
                "kafka.ssl.certificate.location"
            )
    for store, name in _STORES.items():
        location, kind = said.pop(f"ssl.{store}.location", None), said.pop(f"ssl.{store}.type", "JKS").upper()
        said.pop(f"ssl.{store}.password", None)  # files of PEM have none
        if location is None:
            continue
        if kind != "PEM":
            raise WrongUse(
                f"kafka.ssl.{store}.location is a store of type {kind}, which only Java reads: write it as PEM, and say "
                f"kafka.ssl.{store}.type=PEM"
            )
        said[name] = location
    jaas = said.pop(_JAAS, None)
    if jaas is not None:
        said |= _from_jaas(jaas)
    if (
        "sasl.mechanism" not in said
        and "sasl.mechanisms" not in said
        and jaas is not None
        and "Plain" in jaas
    ):
        said["sasl.mechanism"] = "PLAIN"
    return said


def _from_jaas(text: str) -> dict[str, str]:
    """`…PlainLoginModule required username="…" password="…";` and the same of SCRAM and OAUTHBEARER. Quotes nothing of it in errors."""
    module = _MODULE.fullmatch(text)
    known = None if module is None else _OF_MODULES.get(module[1].rpartition(".")[2])
    if module is None or known is None:
        raise WrongUse(
            'kafka.sasl.jaas.config must be like org.apache.kafka.common.security.scram.ScramLoginModule required username="…" password="…";'
            " or say kafka.sasl.username and kafka.sasl.password"
        )
    said: dict[str, str] = {}
    pairs, end = module[2], 0
    for pair in _PAIR.finditer(pairs):
        if pair.start() != end:
            break
        end = pair.end()
        value = next(group for group in pair.groups()[1:] if group is not None)
        if pair[1] in known:
            said[known[pair[1]]] = re.sub(r"\\(.)", r"\1", value)
    if end != len(pairs):
        raise WrongUse('kafka.sasl.jaas.config cannot be read: after its module come pairs like username="…"')
    return said
