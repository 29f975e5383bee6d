"""Elections that somebody asks for, and the balance of leaders that nobody has to ask for.

Behaviour worth knowing
    The preferred leader is the first replica. Asking for what is so already is refused with `ElectionNotNeeded`, which
    tools take for success.
    An election by force takes a replica out of sync only where nobody in sync or eligible is there to lead. It is told as a
    loss: what those hold who are passed over, and the elected one lacks, is gone when they come back.
"""

from collections.abc import Mapping

from ropewalk.base.errors import ElectionNotNeeded, LeaderNotAvailable, NobodyEligible
from ropewalk.base.ids import NodeId
from ropewalk.controller.elections import Elections, Standing, all_partitions
from ropewalk.metadata.image import Image, Partition
from ropewalk.metadata.records import MetadataRecord
from ropewalk.metadata.settings.applied import AppliedSettings


def decide_elect_preferred(
    image: Image, topic_name: str, index: int, *, settings: AppliedSettings, now_ms: int
) -> list[MetadataRecord]:
    partition = image.partition(topic_name, index)
    preferred = partition.replicas[0]
    if partition.leader == preferred:
        raise ElectionNotNeeded(f"{topic_name}-{index} is led by its preferred replica {preferred}")
    if image.brokers[preferred].in_maintenance:
        raise LeaderNotAvailable(f"{topic_name}-{index} is not led by {preferred}, which is in maintenance")
    if preferred not in partition.isr or not Standing(image).may_lead(preferred):
        raise LeaderNotAvailable(f"{topic_name}-{index} cannot be led by {preferred}, which is not in sync")
    return _elected(image, topic_name, partition, settings, now_ms, leader=preferred)


def decide_elect_any(
    image: Image, topic_name: str, index: int, *, settings: AppliedSettings, now_ms: int
) -> list[MetadataRecord]:
    """For a partition that has lost its leader: somebody in sync or eligible, or the last leader."""
    partition = _leaderless(image, topic_name, index)
    records = _elected(image, topic_name, partition, settings, now_ms)
    if not records:
        raise NobodyEligible(
            f"{topic_name}-{index} has no replica that could lead it without a loss: {_away(partition)}"
        )
    return records


def decide_elect_unclean(
    image: Image,
    topic_name: str,
    index: int,
    *,
    settings: AppliedSettings,
    now_ms: int,
    leader: NodeId | None = None,
) -> list[MetadataRecord]:
    """By force; `leader` is taken rather than another. The `LossRecorded` among the records says what is at stake."""
    partition = _leaderless(image, topic_name, index)
    if leader is not None and leader not in partition.replicas:
        raise LeaderNotAvailable(f"{leader} is no replica of {topic_name}-{index}")
    reason = f"elected by force, out of sync: {_away(partition)}"
    records = _elected(image, topic_name, partition, settings, now_ms, leader=leader, unclean=reason)
    if not records:
        raise NobodyEligible(f"{topic_name}-{index} has no replica on a broker in service")
    return records


def decide_balance_leaders(
    image: Image, *, settings: AppliedSettings, now_ms: int, changes_max: int
) -> list[MetadataRecord]:
    """Preferred replicas that are in sync lead again, so many partitions at a time."""
    standing = Standing(image)
    elections = Elections(standing, settings, now_ms)
    for topic, partition in all_partitions(image):
        if len(elections.records) >= changes_max:
            break
        preferred = partition.replicas[0]
        if standing.rests(preferred):
            continue
        if partition.leader not in (preferred, None) and preferred in partition.isr:
            elections.settle(topic, partition, partition, leader=preferred)
    return elections.records


def leaders_by_broker(image: Image) -> Mapping[NodeId, int]:
    """How many partitions each broker leads."""
    counts = dict.fromkeys(image.brokers, 0)
    for _, partition in all_partitions(image):
        if partition.leader is not None:
            counts[partition.leader] = counts.get(partition.leader, 0) + 1
    return counts


def _leaderless(image: Image, topic_name: str, index: int) -> Partition:
    partition = image.partition(topic_name, index)
    if partition.leader is not None:
        raise ElectionNotNeeded(f"{topic_name}-{index} is led by {partition.leader}")
    return partition


def _elected(
    image: Image,
    topic_name: str,
    partition: Partition,
    settings: AppliedSettings,
    now_ms: int,
    *,
    leader: NodeId | None = None,
    unclean: str | None = None,
) -> list[MetadataRecord]:
    elections = Elections(Standing(image), settings, now_ms)
    after = elections.settle(image.topic(topic_name), partition, partition, leader=leader, unclean=unclean)
    return [] if after.leader is None else elections.records


def _away(partition: Partition) -> str:
    """Who holds what was acknowledged, and is not there."""
    holders = partition.eligible or partition.isr
    if not holders:
        last = partition.last_leader
        return "nobody is known to hold all that was acknowledged" + (
            "" if last is None else f"; {last} led last"
        )
    named = ", ".join(str(node_id) for node_id in holders)
    return f"all that was acknowledged is held by {named}, not in service"
