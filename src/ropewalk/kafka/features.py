"""The features that clients are told of, with the levels that are in force.

Clients act upon what is finalized: from `transaction.version` 2 on they leave it to their writes to add partitions to a transaction, and
expect another epoch with every one that ends. `group.version` 1 says that the broker makes assignments (KIP-848). Tools tell the
version of a cluster by `metadata.version`: it is the level of Kafka 4.0, and no client acts upon it.
"""

from typing import Final

from ropewalk.wire.messages.api_versions import FinalizedFeatureKey, SupportedFeatureKey

FEATURES_EPOCH: Final = 3
"""Grows whenever the finalized levels change: clients keep what has the highest."""

_METADATA_FIRST: Final = 7
"""What Kafka calls 3.3-IV3, the first that its present tools know."""

_METADATA_LEVEL: Final = 25
"""4.0-IV3."""

_SUPPORTED: Final = (
    SupportedFeatureKey("transaction.version", 0, 2),
    SupportedFeatureKey("group.version", 0, 1),
    SupportedFeatureKey("metadata.version", _METADATA_FIRST, _METADATA_LEVEL),
)

FINALIZED: Final = (
    FinalizedFeatureKey("transaction.version", 2, 2),
    FinalizedFeatureKey("group.version", 1, 1),
    FinalizedFeatureKey("metadata.version", _METADATA_LEVEL, _METADATA_LEVEL),
)

_FROM_ZERO_SINCE: Final = 4


def supported(version: int) -> tuple[SupportedFeatureKey, ...]:
    """As ApiVersions of that version can say it: clients of older ones fail at a feature that may be off."""
    if version >= _FROM_ZERO_SINCE:
        return _SUPPORTED
    return tuple(feature for feature in _SUPPORTED if feature.min_version > 0)
