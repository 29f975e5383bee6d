"""A node's configuration: one flat table of dotted names, each value with the place it came from.

    default  <  file  <  environment  <  command line

A TOML file may nest: `[kafka] listen = "…"` and `"kafka.listen" = "…"` say the same. In the environment the
name is in capitals with two underscores for each dot: `ROPEWALK_KAFKA__LISTEN`, `ROPEWALK_NUM__PARTITIONS`.
On the command line it is `--set kafka.listen=…`. Names are our few own, listed here, and Kafka's broker
settings from the catalogue in `metadata/settings`. A name that is neither is refused: a setting that is
silently ignored is a setting somebody believes in.
"""

import tomllib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.ids import NodeId
from ropewalk.metadata.settings.broker import BROKER_SETTINGS
from ropewalk.metadata.settings.setting import Change, Kind, Setting
from ropewalk.node.options import NodeOptions

ENVIRONMENT_PREFIX: Final = "ROPEWALK_"

NODE_SETTINGS: Final[Mapping[str, Setting]] = {
    setting.name: setting
    for setting in (
        Setting(
            "node.data",
            Kind.STRING,
            "./ropewalk-data",
            "The directory that holds everything this node keeps.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "kafka.listen",
            Kind.STRING,
            "127.0.0.1:9092",
            "Where Kafka clients connect, as HOST:PORT; port 0 takes any free one.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "kafka.advertise",
            Kind.STRING,
            "",
            "The HOST:PORT that clients are told to use, where it differs from the one listened on.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "http.listen",
            Kind.STRING,
            "127.0.0.1:9644",
            "Where metrics and health are served over HTTP, as HOST:PORT; port 0 takes any free one, none leaves it out.",
            change=Change.READ_ONLY,
        ),
        Setting(
            "telemetry.interval.ms",
            Kind.LONG,
            "10000",
            "How often samples of partitions, groups and the node are written to __telemetry; 0 is never, which is also "
            "the default where storage is memory.",
            minimum=0,
            change=Change.READ_ONLY,
        ),
        Setting(
            "node.log.level",
            Kind.STRING,
            "info",
            "The least serious message that is logged.",
            choices=("debug", "info", "warning", "error"),
            change=Change.READ_ONLY,
        ),
        Setting(
            "node.log.format",
            Kind.STRING,
            "auto",
            "Logs as text or as one JSON object per line; auto is text on a terminal.",
            choices=("auto", "text", "json"),
            change=Change.READ_ONLY,
        ),
    )
}


class Configured(Struct, frozen=True):
    value: str
    origin: str
    """As shown by `config show --origin`: default, a file's path, an environment variable, or an option."""


class Config:
    """Every value has been checked against its setting."""

    def __init__(self, configured: Mapping[str, Configured]) -> None:
        self._configured = dict(configured)

    def __getitem__(self, name: str) -> str:
        return self._configured[name].value

    def get(self, name: str) -> str | None:
        entry = self._configured.get(name)
        return None if entry is None else entry.value

    def is_default(self, name: str) -> bool:
        """Whether nobody chose the value."""
        return self._configured[name].origin == _DEFAULT

    def entries(self) -> Iterator[tuple[str, Configured]]:
        """All settings that have a value, by name."""
        return iter(sorted(self._configured.items()))

    @property
    def node_id(self) -> NodeId:
        return NodeId(int(self["node.id"]))

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
        _check(name, value, origin)
        configured[name] = Configured(value, origin)
    return Config(configured)


_DEFAULT: Final = "default"


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
        # Two underscores tell a setting from ROPEWALK_BOOTSTRAP and other variables of the command line.
        if variable.startswith(ENVIRONMENT_PREFIX) and "__" in variable:
            name = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".")
            yield name, environment[variable], variable
        elif variable in ("ROPEWALK_FLUSH", "ROPEWALK_STORAGE"):
            yield variable.removeprefix(ENVIRONMENT_PREFIX).lower(), environment[variable], variable


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
    if options.data is not None:
        yield "node.data", options.data, "--data"
    if options.memory:
        yield "storage", "memory", "--memory"
    if options.log_level is not None:
        yield "node.log.level", options.log_level, "--log-level"


def _check(name: str, value: str, origin: str) -> None:
    setting = NODE_SETTINGS.get(name) or BROKER_SETTINGS.get(name)
    if setting is None:
        nearest = get_close_matches(name, [*NODE_SETTINGS, *BROKER_SETTINGS], n=1)
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        raise InvalidSetting(f"{origin}: there is no setting {name!r}{hint}")
    try:
        setting.parse(value)
    except InvalidSetting as error:
        raise InvalidSetting(f"{origin}: {error}") from None


def parse_address(text: str, origin: str) -> tuple[str, int]:
    """HOST:PORT, also [IPv6]:PORT."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 <= int(port) <= 65535:
        raise InvalidSetting(f"{origin}: {text!r} is not HOST:PORT")
    return host.strip("[]") or "0.0.0.0", int(port)
