"""The `sticky` assignor: for members to whom a partition is dear, because of what they have cached or counted of it.

A partition stays where it is until somebody who could read it has so little that it is no longer worth it: less than
half of what its owner has. Partitions that nobody has go to whoever has least. A member that joins a group
of ten with six partitions each gets three of them instead of five.
"""

from collections.abc import Mapping

from ropewalk.base.ids import TopicId
from ropewalk.groups.assignors.kept import kept_shares
from ropewalk.groups.assignors.levelling import hand_out, level
from ropewalk.groups.assignors.model import Candidate, Share


def assign_sticky(
    members: Mapping[str, Candidate], partition_counts: Mapping[TopicId, int]
) -> dict[str, Share]:
    shares, unowned = kept_shares(members, partition_counts)
    hand_out(shares, unowned, members)
    level(shares, members, is_too_uneven=_is_too_uneven)
    return {member_id: frozenset(share) for member_id, share in shares.items()}


def _is_too_uneven(more: int, less: int) -> bool:
    return more > 2 * less and more > less + 1
