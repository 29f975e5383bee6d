"""A node's configuration: one flat table of dotted names, each value with the place it came from.

    default  <  file  <  environment  <  command line

A TOML file may nest: `[kafka] listen = "…"` and `"kafka.listen" = "…"` say the same. In the environment the
name is in capitals with two underscores for each dot: `ROPEWALK_KAFKA__LISTEN`, `ROPEWALK_NUM__PARTITIONS`.
On the command line it is `--set kafka.listen=…`. Names are our few own, from `settings.py`, and Kafka's broker
settings from the catalogue in `metadata/settings`. A name that is neither is refused: a setting that is
silently ignored is a setting somebody believes in.
"""

import os
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from ipaddress import ip_network
from pathlib import Path
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import SQS_DELETE_WAIT_MS
from ropewalk.base.ports import Networks
from ropewalk.metadata.records import ALL_ROLES
from ropewalk.metadata.settings.broker import BROKER_SETTINGS
from ropewalk.metadata.settings.setting import Kind, Setting
from ropewalk.node.addresses import NONE, parse_address
from ropewalk.node.authorities import check_authorities
from ropewalk.node.kafka_listeners import LISTENER_PREFIX, ListenerPlan, kafka_listeners
from ropewalk.node.options import NodeOptions
from ropewalk.node.settings import NODE_SETTINGS, SECRET_CHARACTERS_MIN
from ropewalk.security.protocols import SecurityProtocol

PROXIES: Final = "proxy.protocol.networks"

ENVIRONMENT_PREFIX: Final = "ROPEWALK_"

LISTENER_SETTINGS: Final = ("ssl.", "sasl.oauthbearer.")
"""What the names begin with that a listener may have a value of its own for, as `listener.name.NAME.ssl.client.auth`."""


class Configured(Struct, frozen=True):
    value: str
    origin: str
    """As shown by `config show --origin`: default, a file's path, an environment variable, or an option."""

    def shown(self, name: str) -> str:
        """The value for people to read: a password is not."""
        setting = _setting(name)
        is_secret = setting is not None and setting.kind is Kind.PASSWORD
        return "(hidden)" if is_secret and self.value else self.value


class Config:
    """Every value has been checked against its setting."""

    def __init__(self, configured: Mapping[str, Configured]) -> None:
        self._configured = dict(configured)

    def __getitem__(self, name: str) -> str:
        return self._configured[name].value

    def get(self, name: str) -> str | None:
        entry = self._configured.get(name)
        return None if entry is None else entry.value

    def of_listener(self, listener: str, name: str) -> str:
        """What is said for one listener, else for all of them."""
        chosen = self.get(f"{LISTENER_PREFIX}{listener.lower()}.{name}")
        return self[name] if chosen is None else chosen

    def is_encrypted(self, door: str) -> bool:
        """Of a door that speaks HTTP and is wanted."""
        return self[f"{door}.listen"] != NONE and self[f"{door}.security.protocol"] == SecurityProtocol.SSL

    def is_default(self, name: str) -> bool:
        """Whether nobody chose the value."""
        return self._configured[name].origin == _DEFAULT

    def comes_from_file(self, name: str) -> bool:
        """Whether the value is what is in the file that NAME.file says, or would be if there were any."""
        return bool(self[f"{name}.file"]) and self.origin(name) in (_DEFAULT, self[f"{name}.file"])

    def origin(self, name: str) -> str:
        return self._configured[name].origin

    def entries(self) -> Iterator[tuple[str, Configured]]:
        """All settings that have a value, by name."""
        return iter(sorted(self._configured.items()))

    @property
    def node_id(self) -> NodeId:
        return NodeId(int(self["node.id"]))

    @property
    def roles(self) -> tuple[str, ...]:
        return _items(self["node.roles"])

    @property
    def is_alone(self) -> bool:
        """Whether this node is its whole cluster: nobody could prove to it that they belong there."""
        return not self["cluster.secret"]

    @property
    def cluster_secret(self) -> bytes:
        """Empty for a node that is alone."""
        return self["cluster.secret"].encode()

    @property
    def seeds(self) -> tuple[tuple[str, int], ...]:
        return tuple(parse_address(item, "cluster.seeds") for item in _items(self["cluster.seeds"]))

    @property
    def kafka_listeners(self) -> tuple[ListenerPlan, ...]:
        """Where Kafka's clients connect; empty where the node has no such door."""
        return kafka_listeners(self)

    @property
    def proxies(self) -> Networks:
        """Those who connect from there do so for clients."""
        return tuple(ip_network(item) for item in _items(self[PROXIES]))

    @property
    def peer_listen(self) -> tuple[str, int] | None:
        """Where to listen for other nodes; None for a node that is alone."""
        return None if self.is_alone else parse_address(self["peer.listen"], "peer.listen")

    @property
    def keeps_metadata(self) -> bool:
        """Whether the cluster's metadata is at home in this node's data directory."""
        return "controller" in self.roles and self["metadata.home"] == "local"

    @property
    def etcd_endpoints(self) -> tuple[str, ...]:
        """URLs of etcd's members; empty where the metadata's home is local."""
        return _items(self["metadata.etcd.endpoints"]) if self["metadata.home"] == "etcd" else ()

    @property
    def drain_ms(self) -> int:
        """How long a node that stops goes on serving, so that whoever routes to it looks elsewhere."""
        return int(self["node.drain.ms"])

    @property
    def in_memory(self) -> bool:
        return self["storage"] == "memory"

    @property
    def telemetry_interval_ms(self) -> int:
        """0 for none. What is kept in memory is for a short while, and nobody looks back on it unless they say so."""
        if self.in_memory and self.is_default("telemetry.interval.ms"):
            return 0
        return int(self["telemetry.interval.ms"])

    @property
    def copies_audit(self) -> bool:
        return not self.in_memory and self["audit.topic"] == "true"

    @property
    def data_path(self) -> str:
        """Absolute: the Disk port takes nothing else."""
        return str(Path(self["node.data"]).expanduser().absolute())

    @property
    def broker_overrides(self) -> dict[str, str]:
        """Kafka's settings that were set here, for the view that merges them with the cluster's."""
        return {
            name: entry.value
            for name, entry in self._configured.items()
            if name in BROKER_SETTINGS and entry.origin != _DEFAULT
        }

    def with_value(self, name: str, value: str, origin: str) -> "Config":
        return Config({**self._configured, name: Configured(value, origin)})


def load(options: NodeOptions, environment: Mapping[str, str]) -> Config:
    """Merge the four places; raises `InvalidSetting` with the place and the name of whatever is wrong."""
    config = _with_resting_names(_with_secret_from_file(merged(options, environment)))
    _check_listeners(config)
    check_authorities(config)
    _check_cluster(config)
    return config


def merged(options: NodeOptions, environment: Mapping[str, str]) -> Config:
    """As `load`, but whether the settings fit together is not asked: they may be meant for several nodes."""
    configured = {
        name: Configured(setting.default, _DEFAULT)
        for name, setting in {**BROKER_SETTINGS, **NODE_SETTINGS}.items()
        if setting.default is not None
    }
    for name, value, origin in (
        *_from_file(options.config),
        *_from_environment(environment),
        *_from_options(options),
    ):
        name = _without_mechanism(name)
        _check(name, value, origin)
        configured[name] = Configured(value, origin)
    return Config(configured)


_DEFAULT: Final = "default"
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def _from_file(path: str | None) -> Iterator[tuple[str, str, str]]:
    if path is None:
        return
    try:
        table = tomllib.loads(Path(path).read_text())
    except FileNotFoundError:
        raise InvalidSetting(f"there is no configuration file {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSetting(f"{path} cannot be read: {error}") from error
    for name, value in _flatten(table, ""):
        yield name, value, path


def _flatten(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        name = f"{prefix}{key}"
        match value:
            case dict():
                yield from _flatten(value, f"{name}.")
            case bool():
                yield name, str(value).lower()
            case list():
                yield name, ",".join(map(str, value))
            case _:
                yield name, str(value)


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for variable in sorted(environment):
        if is_variable(variable):
            name = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".")
            yield name, environment[variable], variable


def is_variable(name: str) -> bool:
    """Whether an environment variable is a setting. Two underscores tell one from ROPEWALK_BOOTSTRAP and the like."""
    return (name.startswith(ENVIRONMENT_PREFIX) and "__" in name) or name in (
        "ROPEWALK_FLUSH",
        "ROPEWALK_STORAGE",
    )


def _from_options(options: NodeOptions) -> Iterator[tuple[str, str, str]]:
    for assignment in options.settings:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise InvalidSetting(f"--set {assignment}: write --set KEY=VALUE")
        yield name.strip(), value.strip(), f"--set {name.strip()}"
    if options.kafka is not None:
        yield "kafka.listen", options.kafka, "--kafka"
    if options.http is not None:
        yield "http.listen", options.http, "--http"
    if options.sqs is not None:
        yield "sqs.listen", options.sqs, "--sqs"
    if options.insecure:
        yield "sqs.insecure", "true", "--insecure"
    if options.peer is not None:
        yield "peer.listen", options.peer, "--peer"
    if options.seeds:
        yield "cluster.seeds", ",".join(options.seeds), "--seed"
    if options.roles:
        yield "node.roles", ",".join(options.roles), "--role"
    if options.node_id is not None:
        yield "node.id", str(options.node_id), "--node-id"
    if options.rack is not None:
        yield "broker.rack", options.rack, "--rack"
    if options.data is not None:
        yield "node.data", options.data, "--data"
    if options.memory:
        yield "storage", "memory", "--memory"
    if options.log_level is not None:
        yield "node.log.level", options.log_level, "--log-level"


def _check(name: str, value: str, origin: str) -> None:
    setting = _setting(name)
    if setting is None:
        nearest = get_close_matches(name, [*NODE_SETTINGS, *BROKER_SETTINGS], n=1)
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        raise InvalidSetting(f"{origin}: there is no setting {name!r}{hint}")
    try:
        setting.parse(value)
    except InvalidSetting as error:
        raise InvalidSetting(f"{origin}: {error}") from None


def _without_mechanism(name: str) -> str:
    """Kafka has the mechanism in names of settings that are for one listener: `listener.name.NAME.oauthbearer.sasl.oauthbearer.…`."""
    if not name.startswith(LISTENER_PREFIX):
        return name
    return name.replace(".oauthbearer.sasl.oauthbearer.", ".sasl.oauthbearer.", 1)


def _setting(name: str) -> Setting | None:
    if name.startswith(LISTENER_PREFIX):
        _, _, name = name.removeprefix(LISTENER_PREFIX).partition(".")
        if not name.startswith(LISTENER_SETTINGS):
            return None
    return NODE_SETTINGS.get(name) or BROKER_SETTINGS.get(name)


def _with_resting_names(config: Config) -> Config:
    """Where there are keys, as Amazon has it; in development names of deleted queues are free at once."""
    if not config["sqs.credentials"] or not config.is_default("sqs.delete.wait.ms"):
        return config
    return config.with_value("sqs.delete.wait.ms", str(SQS_DELETE_WAIT_MS), config.origin("sqs.credentials"))


def _with_secret_from_file(config: Config) -> Config:
    for name in ("cluster.secret", "cluster.secret.previous"):
        path = config[f"{name}.file"]
        if not path or config[name]:
            continue
        secret = read_secret(f"{config.origin(f'{name}.file')}: {name}.file", path)
        if secret:
            config = config.with_value(name, secret, path)
        elif name == "cluster.secret":
            raise InvalidSetting(f"{config.origin(f'{name}.file')}: {name}.file {path} is empty")
    return config


def read_secret(said_by: str, path: str) -> str:
    """What a file holds, without the space around it; empty where only the secret before could have been there. Raises `InvalidSetting`."""
    try:
        with Path(path).expanduser().open() as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            secret = file.read().strip()
    except FileNotFoundError:
        if said_by.endswith("previous.file"):
            return ""
        raise InvalidSetting(f"{said_by} {path} cannot be read: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"{said_by} {path} cannot be read: {error}") from error
    if mode & _OTHERS:
        raise InvalidSetting(
            f"{said_by}: others than its owner may use {path}, which holds a secret (mode {mode:04o}); run chmod 600 {path}"
        )
    return secret


def _check_listeners(config: Config) -> None:
    names = {listener.name.lower() for listener in kafka_listeners(config)}
    for name, _ in config.entries():
        if name.startswith(LISTENER_PREFIX):
            listener = name.removeprefix(LISTENER_PREFIX).partition(".")[0]
            if listener not in names:
                raise InvalidSetting(
                    f"{config.origin(name)}: {name} is for a listener that this node does not have"
                )


def _check_cluster(config: Config) -> None:
    """Refuse what would leave a node outside the cluster it was meant for, or a cluster open to anybody."""
    for name in ("cluster.secret", "cluster.secret.previous"):
        if config[name] and len(config[name]) < SECRET_CHARACTERS_MIN:
            raise InvalidSetting(
                f"{name} has {len(config[name])} characters, needs at least {SECRET_CHARACTERS_MIN}"
            )
    if config.is_alone:
        for name in (
            "cluster.seeds",
            "cluster.secret.previous",
            "peer.listen",
            "peer.advertise",
            "peer.tls",
            "node.roles",
            "metadata.home",
        ):
            if not config.is_default(name):
                raise InvalidSetting(
                    f"{config.origin(name)}: {name} is for a node of a cluster, which needs cluster.secret"
                )
    _check_addresses(config)
    for item in _items(config[PROXIES]):
        try:
            ip_network(item)
        except ValueError as error:
            raise InvalidSetting(f"{config.origin(PROXIES)}: {PROXIES}: {error}") from None
    if config["metadata.home"] == "etcd" and not config.etcd_endpoints:
        raise InvalidSetting("metadata.home is etcd, which needs metadata.etcd.endpoints")
    if not config.roles:
        raise InvalidSetting(f"node.roles is empty, must name some of {', '.join(ALL_ROLES)}")
    if config["kafka.route"] == "proxy" and "broker" in config.roles:
        raise InvalidSetting(
            "kafka.route=proxy is for a node without the role broker, which has no partitions of its own"
        )
    if "controller" not in config.roles and not config.seeds:
        raise InvalidSetting("a node without the role controller needs cluster.seeds to find one")
    interval_ms, timeout_ms = config["node.heartbeat.interval.ms"], config["node.session.timeout.ms"]
    if int(timeout_ms) < 2 * int(interval_ms):
        raise InvalidSetting(
            f"node.session.timeout.ms is {timeout_ms}, must be at least twice node.heartbeat.interval.ms, "
            f"which is {interval_ms}"
        )


def _check_addresses(config: Config) -> None:
    for host, port in config.seeds:
        if port == 0:
            raise InvalidSetting(f"cluster.seeds: {host}:0 is nowhere, name the port")
    for name in ("peer.listen", "peer.advertise"):
        if config[name]:
            parse_address(config[name], name)
    check_etcd_endpoints(config.etcd_endpoints, "metadata.etcd.endpoints")


def check_etcd_endpoints(urls: Sequence[str], origin: str) -> None:
    for url in urls:
        if not url.startswith(("http://", "https://")):
            raise InvalidSetting(f"{origin}: {url!r} does not begin with http:// or https://")


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",")) if text else ()
