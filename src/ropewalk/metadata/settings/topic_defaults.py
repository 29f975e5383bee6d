"""Broker settings that give topics their defaults.

They are the topic catalogue under the names Kafka gives them on a broker (`log.segment.bytes` for
`segment.bytes`), so they are derived from it. Where a topic setting has several broker names with units of their
own (`log.retention.ms`, `.minutes`, `.hours`), the coarsest carries the default and the finer ones have no value
until somebody sets them; the finest one that is set wins.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import structs

from ropewalk.metadata.settings.setting import Change, Kind, Setting, Synonym
from ropewalk.metadata.settings.topic import TOPIC_SETTINGS


def _derive() -> Iterator[Setting]:
    for setting in TOPIC_SETTINGS.values():
        for synonym in setting.synonyms:
            is_coarsest = synonym is setting.synonyms[-1]
            yield structs.replace(
                setting,
                name=synonym.name,
                kind=_kind(setting, synonym),
                default=_scaled_down(setting, synonym) if is_coarsest else None,
                documentation=_documentation(setting, synonym),
                change=setting.change if synonym.factor == 1 else Change.READ_ONLY,
                synonyms=(),
            )


def _kind(setting: Setting, synonym: Synonym) -> Kind:
    return setting.kind if synonym.factor == 1 else Kind.INT


def _scaled_down(setting: Setting, synonym: Synonym) -> str | None:
    if setting.default is None or synonym.factor == 1:
        return setting.default
    return str(int(setting.default) // synonym.factor)


def _documentation(setting: Setting, synonym: Synonym) -> str:
    if synonym.name == setting.name:
        return setting.documentation
    unit = synonym.name.rpartition(".")[2]
    in_unit = f", in {unit}" if synonym.factor != 1 else ""
    return f"Default of the topic setting {setting.name}{in_unit}: {setting.documentation[0].lower()}{setting.documentation[1:]}"


TOPIC_DEFAULT_SETTINGS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _derive()}
