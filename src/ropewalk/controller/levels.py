"""Which level a cluster works at: the first one, whether it may rise, and which nodes may be part of it.

Behaviour worth knowing
    A cluster that is made works at the newest level that its first controller knows; metadata that is older than levels at the first.
    A level rises when all registered nodes know the next one, in service or not: one that is away would be shut out.
    Whether a node gets on with the others is asked when it registers. What has not said its version is older than levels: it is taken
    for one that knows the first, and for a neighbour of everybody.
"""

from collections.abc import Sequence

from ropewalk.base.errors import LevelRefused, VersionRefused
from ropewalk.base.ids import NodeId
from ropewalk.base.levels import LEVEL_FIRST, Software, are_neighbours
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import BrokerState, LevelChanged, MetadataRecord


def decide_first_level(image: Image, software: Software) -> list[MetadataRecord]:
    """For a controller that begins; nothing where there is a level."""
    if image.level:
        return []
    return [LevelChanged(software.level_max if image.cluster_id is None else LEVEL_FIRST)]


def level_known_to_all(image: Image, software: Software) -> int:
    """The newest level that every registered node works at, and whoever decides."""
    return min([software.level_max, *(broker.level_max for broker in image.brokers.values())])


def hindrances(image: Image, software: Software, level: int) -> list[str]:
    """What keeps `level` from coming into force, each in a few words; nothing where nothing does."""
    found = [
        f"node {broker.node_id} is of version {broker.version or 'unknown'}, which works at {broker.software.range}"
        + (
            ""
            if broker.state is not BrokerState.FENCED
            else "; it is away: start a newer version there, or remove it"
        )
        for broker in image.brokers.values()
        if broker.level_max < level
    ]
    if software.level_max < level:
        found.append(f"the controller is of version {software.version}, which works at {software.range}")
    return found


def decide_raise_level(image: Image, software: Software, level: int | None = None) -> list[MetadataRecord]:
    """To `level`, or to the newest that all know. Nothing where that is in force; refuses to go down, or past what somebody knows."""
    target = level_known_to_all(image, software) if level is None else level
    if level is not None and level < image.level:
        raise LevelRefused(f"the cluster is at level {image.level}, and a level never goes down to {level}")
    held_back = hindrances(image, software, target)
    if held_back:
        raise LevelRefused(f"level {target} is not known to all: {'; '.join(held_back)}")
    return [LevelChanged(target)] if target > image.level else []


def check_software(image: Image, node_id: NodeId, software: Software, others: Sequence[Software]) -> None:
    """Refuse a node that cannot work at the level in force, or is more than one release away from one of `others`."""
    level = image.level or LEVEL_FIRST
    if not software.knows(level):
        raise VersionRefused(
            f"{_named(node_id, software)}, which works at {software.range}; the cluster is at level {level}: "
            f"start {'a newer' if level > software.level_max else 'an older'} version there"
        )
    check_neighbours(node_id, software, others)


def check_neighbours(node_id: NodeId, software: Software, others: Sequence[Software]) -> None:
    """Refuse a node that is more than one release away from one of `others`."""
    for other in others:
        here, there = software.release, other.release
        if here is not None and there is not None and not are_neighbours(here, there):
            raise VersionRefused(
                f"{_named(node_id, software)}, and the cluster has a node of version {other.version}: nodes may be one release apart, "
                "so go by the releases in between"
            )


def _named(node_id: NodeId, software: Software) -> str:
    return f"node {node_id} is of version {software.version or 'unknown'}"
