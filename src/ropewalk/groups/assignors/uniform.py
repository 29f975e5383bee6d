"""The `uniform` assignor: as even as the subscriptions allow, and with that moving as little as possible.

Where all members subscribe to the same topics, nobody has more than one partition more than anybody else, and no
assignment of that kind would move fewer partitions. Where they differ, no partition could be moved to another of its
subscribers such that the two were more even. Racks are not looked at, as in Kafka.
"""

from collections.abc import Mapping

from ropewalk.base.ids import TopicId
from ropewalk.groups.assignors.kept import kept_shares
from ropewalk.groups.assignors.levelling import hand_out, level
from ropewalk.groups.assignors.model import Candidate, Place, Share


def assign_uniform(
    members: Mapping[str, Candidate], partition_counts: Mapping[TopicId, int]
) -> dict[str, Share]:
    shares, unowned = kept_shares(members, partition_counts)
    if len({member.topics for member in members.values()}) == 1:
        _fill_quotas(shares, unowned)
    else:
        hand_out(shares, unowned, members)
        level(shares, members, is_too_uneven=lambda more, less: more > less + 1)
    return {member_id: frozenset(share) for member_id, share in shares.items()}


def _fill_quotas(shares: dict[str, set[Place]], unowned: list[Place]) -> None:
    """Everyone gets the same number; the ones left over go to those who have most, so that they need not give it up."""
    place_count = len(unowned) + sum(map(len, shares.values()))
    quota, left_over = divmod(place_count, len(shares))
    by_size = sorted(shares, key=lambda member_id: (-len(shares[member_id]), member_id))
    quotas = {member_id: quota + (rank < left_over) for rank, member_id in enumerate(by_size)}
    for member_id, share in shares.items():
        surplus = sorted(share)[quotas[member_id] :]
        share.difference_update(surplus)
        unowned += surplus
    remaining = iter(sorted(unowned))
    for member_id in sorted(shares):
        share = shares[member_id]
        for _ in range(quotas[member_id] - len(share)):
            share.add(next(remaining))
