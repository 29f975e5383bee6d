"""The features that clients are told of, with the levels that are in force.

Clients act upon what is finalized: from `transaction.version` 2 on they leave it to their writes to add partitions to a transaction, and
expect another epoch with every one that ends. `group.version` 1 says that the broker makes assignments (KIP-848). Tools tell the
version of a cluster by `metadata.version`: it is the level of Kafka 4.0, and no client acts upon it. `ropewalk.level` is the level that the
cluster works at (`base/levels.py`), and the only one that changes.
"""

from typing import Final

from ropewalk.base.levels import Software
from ropewalk.wire.messages.api_versions import FinalizedFeatureKey, SupportedFeatureKey

LEVEL_FEATURE: Final = "ropewalk.level"

_EPOCH_BASE: Final = 3
"""How often the levels of Kafka's own features have changed."""

_METADATA_FIRST: Final = 7
"""What Kafka calls 3.3-IV3, the first that its present tools know."""

_METADATA_LEVEL: Final = 25
"""4.0-IV3."""

_FIXED: Final = (
    SupportedFeatureKey("transaction.version", 0, 2),
    SupportedFeatureKey("group.version", 0, 1),
    SupportedFeatureKey("metadata.version", _METADATA_FIRST, _METADATA_LEVEL),
)

_FINALIZED: Final = (
    FinalizedFeatureKey("transaction.version", 2, 2),
    FinalizedFeatureKey("group.version", 1, 1),
    FinalizedFeatureKey("metadata.version", _METADATA_LEVEL, _METADATA_LEVEL),
)

_FROM_ZERO_SINCE: Final = 4


def features_epoch(level: int) -> int:
    """Grows whenever the finalized levels change: clients keep what has the highest."""
    return _EPOCH_BASE + level


def supported(version: int, software: Software) -> tuple[SupportedFeatureKey, ...]:
    """As ApiVersions of that version can say it: clients of older ones fail at a feature that may be off."""
    every = (*_FIXED, SupportedFeatureKey(LEVEL_FEATURE, software.level_min, software.level_max))
    if version >= _FROM_ZERO_SINCE:
        return every
    return tuple(feature for feature in every if feature.min_version > 0)


def finalized(level: int) -> tuple[FinalizedFeatureKey, ...]:
    """With the level in force; 0 while nobody has said."""
    return (*_FINALIZED, FinalizedFeatureKey(LEVEL_FEATURE, level, level)) if level else _FINALIZED


def fixed_level(name: str) -> int | None:
    """Of a feature that never changes; None for one that there is not."""
    return next((feature.max_version_level for feature in _FINALIZED if feature.name == name), None)
