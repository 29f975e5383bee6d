"""The `range` assignor: the partitions of every topic are cut into stretches, one for each of its subscribers.

Members stand in the order of their instance ids, then of their member ids, so that topics with the same number of
partitions and the same subscribers are cut alike: what has the same key is read by the same member. The first
members get one partition more where the numbers do not divide. What members had before is not looked at.
"""

from collections.abc import Mapping

from ropewalk.base.ids import TopicId
from ropewalk.groups.assignors.model import Candidate, Place, Share


def assign_range(
    members: Mapping[str, Candidate], partition_counts: Mapping[TopicId, int]
) -> dict[str, Share]:
    in_order = sorted(members, key=lambda member_id: _rank(member_id, members[member_id]))
    shares: dict[str, set[Place]] = {member_id: set() for member_id in members}
    for topic_id in frozenset().union(*(member.topics for member in members.values())):
        subscribers = [member_id for member_id in in_order if topic_id in members[member_id].topics]
        quota, left_over = divmod(partition_counts[topic_id], len(subscribers))
        start = 0
        for rank, member_id in enumerate(subscribers):
            end = start + quota + (rank < left_over)
            shares[member_id].update((topic_id, index) for index in range(start, end))
            start = end
    return {member_id: frozenset(share) for member_id, share in shares.items()}


def _rank(member_id: str, member: Candidate) -> tuple[bool, str, str]:
    """Static members first: they keep their place, and so their stretches, over a restart."""
    return member.instance_id is None, member.instance_id or "", member_id
