"""What members may keep of their former shares."""

from collections.abc import Mapping

from ropewalk.base.ids import TopicId
from ropewalk.groups.assignors.model import Candidate, Place


def kept_shares(
    members: Mapping[str, Candidate], partition_counts: Mapping[TopicId, int]
) -> tuple[dict[str, set[Place]], list[Place]]:
    """What everybody had and may still have, and what nobody has, in order.

    Former shares that overlap (they never should) leave a partition with the first of its owners.
    """
    owned: set[Place] = set()
    shares: dict[str, set[Place]] = {}
    for member_id in sorted(members):
        member = members[member_id]
        kept = {
            partition
            for partition in member.share
            if partition[0] in member.topics
            and partition[1] < partition_counts[partition[0]]
            and partition not in owned
        }
        owned |= kept
        shares[member_id] = kept
    subscribed = frozenset().union(*(member.topics for member in members.values()))
    unowned = [
        partition
        for topic_id in sorted(subscribed)
        for index in range(partition_counts[topic_id])
        if (partition := (topic_id, index)) not in owned
    ]
    return shares, unowned
