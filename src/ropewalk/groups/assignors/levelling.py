"""Handing out partitions, and moving them from those with many to those with few, where members subscribe differently.

Partitions of one topic are alike, so only topics are compared: for every topic, its subscriber with the most and the
one with the fewest partitions. That is a few comparisons for each move, however many partitions there are.
"""

from collections.abc import Callable, Mapping

from ropewalk.base.ids import TopicId
from ropewalk.groups.assignors.model import Candidate, Place


def hand_out(shares: dict[str, set[Place]], unowned: list[Place], members: Mapping[str, Candidate]) -> None:
    """Each to its subscriber with the fewest; topics with few subscribers first, since others have more choice."""
    subscribers = _subscribers(members)
    for partition in sorted(unowned, key=lambda partition: (len(subscribers[partition[0]]), partition)):
        fewest = min(subscribers[partition[0]], key=lambda member_id: (len(shares[member_id]), member_id))
        shares[fewest].add(partition)


def level(
    shares: dict[str, set[Place]],
    members: Mapping[str, Candidate],
    *,
    is_too_uneven: Callable[[int, int], bool],
) -> None:
    """Move partitions one by one until no two subscribers of a topic differ too much.

    `is_too_uneven` is asked about the sizes of two shares, the first of which would give a partition of a topic that both
    subscribe to. It must not hold for sizes that differ by one or less, or this would never end: every move then
    makes the sum of the squares of the sizes smaller.
    """
    subscribers = _subscribers(members)
    has_moved = True
    while has_moved:
        has_moved = False
        for topic_id in sorted(subscribers):
            while _move_one(topic_id, subscribers[topic_id], shares, is_too_uneven):
                has_moved = True


def _move_one(
    topic_id: TopicId,
    subscribers: list[str],
    shares: dict[str, set[Place]],
    is_too_uneven: Callable[[int, int], bool],
) -> bool:
    fewest = min(subscribers, key=lambda member_id: (len(shares[member_id]), member_id))
    givers = sorted(subscribers, key=lambda member_id: (-len(shares[member_id]), member_id))
    for giver in givers:
        if not is_too_uneven(len(shares[giver]), len(shares[fewest])):
            return False
        partition = max((partition for partition in shares[giver] if partition[0] == topic_id), default=None)
        if partition is not None:
            shares[giver].remove(partition)
            shares[fewest].add(partition)
            return True
    return False


def _subscribers(members: Mapping[str, Candidate]) -> dict[TopicId, list[str]]:
    subscribers: dict[TopicId, list[str]] = {}
    for member_id in sorted(members):
        for topic_id in members[member_id].topics:
            subscribers.setdefault(topic_id, []).append(member_id)
    return subscribers
