"""Which value of a setting applies, and where it came from.

A topic setting comes from the topic's own override, else from the broker setting behind it, else from the
default. A broker setting comes from what was set for that broker at run time, then for all brokers at run time,
then from the node's configuration, then from the default. Of a setting that all nodes must agree on, only what was set for all
brokers counts, then what a controller's configuration said when the cluster settled it (ADR 0013). Two defaults depend on the cluster:
`default.replication.factor` is three, or the number of registered brokers that take replicas while there are fewer; `min.insync.replicas` is
two for a topic with three or more replicas, else one.

Values in an image were checked when they were decided. They are parsed again here, and a stored value that no
longer parses (the bounds of a setting may change between versions) is an error that names it.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from enum import IntEnum

from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.ids import NodeId
from ropewalk.metadata.image import Image, Topic
from ropewalk.metadata.settings.broker import AGREED_SETTINGS, BROKER_SETTINGS
from ropewalk.metadata.settings.setting import Setting, Value
from ropewalk.metadata.settings.topic import TOPIC_SETTINGS


class Source(IntEnum):
    """Where a value came from, by the code DescribeConfigs gives it."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    NODE_CONFIGURATION = 4
    DEFAULT = 5


class Candidate(Struct, frozen=True):
    """A value that would apply if nothing stood before it. `name` is the setting it was given under."""

    name: str
    value: str | None
    source: Source


class EffectiveSetting(Struct, frozen=True):
    """The first of the candidates applies; the rest are what DescribeConfigs calls synonyms."""

    setting: Setting
    candidates: tuple[Candidate, ...]
    value: str | None
    """The candidate's value in the setting's own unit."""

    @property
    def source(self) -> Source:
        return self.candidates[0].source if self.candidates else Source.DEFAULT

    @property
    def parsed(self) -> Value:
        return self.setting.parse(self.value)


class SettingsView:
    """Settings as one node sees them: the image, and the node's own configuration beneath it."""

    __slots__ = ("_configuration", "_image", "_node_id")

    def __init__(self, image: Image, node_id: NodeId, configuration: Mapping[str, str]) -> None:
        self._image = image
        self._node_id = node_id
        self._configuration = configuration

    def run_as(self, values: Mapping[str, str]) -> None:
        """What this node is and where it is reached, as it turned out: as good as configured, whoever left it to a default."""
        self._configuration = {**self._configuration, **values}

    def broker_sources(
        self,
    ) -> tuple[Mapping[str, str], Mapping[str, str], Mapping[str, str | None], int]:
        """What broker settings are made of: this node's overrides, those of all, what was agreed on, the number of brokers.

        Overrides are replaced, never changed in place: while these are the same, so is every setting.
        """
        image = self._image
        return (
            image.broker_settings(self._node_id),
            image.broker_settings(None),
            image.agreed_settings,
            image.replica_taker_count,
        )

    def of_topic(self, topic: Topic, name: str) -> EffectiveSetting:
        return self.of_new_topic(topic.settings, topic.replication_factor, name)

    def of_new_topic(
        self, overrides: Mapping[str, str], replication_factor: int, name: str
    ) -> EffectiveSetting:
        """What would apply to a topic with these overrides and that many replicas."""
        setting = known_setting(TOPIC_SETTINGS, name)
        candidates: list[Candidate] = []
        value: str | None = None
        if name in overrides:
            value = overrides[name]
            candidates.append(Candidate(name, value, Source.TOPIC))
        for synonym in setting.synonyms:
            for candidate in self._broker_candidates(synonym.name, replication_factor):
                if not candidates and candidate.value is not None:
                    value = synonym.convert(candidate.value)
                candidates.append(candidate)
        if not candidates:
            value = setting.default
            candidates.append(Candidate(name, value, Source.DEFAULT))
        return EffectiveSetting(setting, tuple(candidates), value)

    def of_broker(self, name: str) -> EffectiveSetting:
        setting = known_setting(BROKER_SETTINGS, name)
        candidates = tuple(self._broker_candidates(name, replication_factor=None))
        return EffectiveSetting(setting, candidates, candidates[0].value if candidates else None)

    def of_all_brokers(self, name: str) -> EffectiveSetting:
        """What was set for all brokers at run time, and nothing else."""
        value = self._image.broker_settings(None)[name]
        return EffectiveSetting(
            known_setting(BROKER_SETTINGS, name), (Candidate(name, value, Source.ALL_BROKERS),), value
        )

    def ignored(self) -> Iterator[tuple[str, str, str]]:
        """What this node's configuration says and the cluster has otherwise: name, value here, value of the cluster."""
        for name in AGREED_SETTINGS:
            here = self._configuration.get(name)
            if here is None:
                continue
            held = next((found.value for found in self._agreed_candidates(name)), None)
            setting = BROKER_SETTINGS[name]
            if held is None and name == "min.insync.replicas":
                yield name, here, "2 with three or more replicas, else 1"
            elif setting.parse(here) != setting.parse(held or setting.default):
                yield name, here, str(held or setting.default)

    def _broker_candidates(self, name: str, replication_factor: int | None) -> Iterator[Candidate]:
        """In the order in which they apply. A setting without any value yields none."""
        if BROKER_SETTINGS[name].agreed:
            yield from self._agreed_candidates(name)
        else:
            yield from self._own_candidates(name)
        default = self._default(name, replication_factor)
        if default is not None:
            yield Candidate(name, default, Source.DEFAULT)

    def _own_candidates(self, name: str) -> Iterator[Candidate]:
        for source, values in (
            (Source.BROKER, self._image.broker_settings(self._node_id)),
            (Source.ALL_BROKERS, self._image.broker_settings(None)),
            (Source.NODE_CONFIGURATION, self._configuration),
        ):
            if name in values:
                yield Candidate(name, values[name], source)

    def _agreed_candidates(self, name: str) -> Iterator[Candidate]:
        """What was agreed on is told as a configuration's: some controller's it was. Until then there is only one's own."""
        changed = self._image.broker_settings(None)
        if name in changed:
            yield Candidate(name, changed[name], Source.ALL_BROKERS)
        agreed = self._image.agreed_settings
        value = agreed[name] if name in agreed else self._configuration.get(name)
        if value is not None:
            yield Candidate(name, value, Source.NODE_CONFIGURATION)

    def _default(self, name: str, replication_factor: int | None) -> str | None:
        if name == "default.replication.factor":
            return str(max(1, min(3, self._image.replica_taker_count)))
        if name == "min.insync.replicas" and replication_factor is not None:
            return "2" if replication_factor >= 3 else "1"
        return BROKER_SETTINGS[name].default


def known_setting(catalogue: Mapping[str, Setting], name: str) -> Setting:
    """The entry of that name, or `InvalidSetting` with the nearest name there is."""
    setting = catalogue.get(name)
    if setting is None:
        nearest = get_close_matches(name, catalogue, n=1)
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        if catalogue is TOPIC_SETTINGS:
            raise InvalidSetting(f"Unknown topic config name: {name}{hint}")  # scripts look for Kafka's words
        raise InvalidSetting(f"there is no setting {name!r}{hint}")
    return setting
