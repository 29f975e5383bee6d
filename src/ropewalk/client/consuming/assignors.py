"""How the leader of a classic group shares the partitions out. Pure functions: the same input gives the same shares.

| assignor | shares |
|---|---|
| range | of each topic neighbouring partitions, so that partition n of two topics goes to the same member |
| roundrobin | all partitions in turn |
| sticky | even shares, and everybody keeps what it had as far as that allows |
| cooperative-sticky | the same, but a partition that changes hands is first given up and shared out in the next rebalance |

What a reader could get wrong
    The names are Kafka's, and so are the shares of range and roundrobin; a group may mix clients of several kinds. How the
    sticky ones choose among equally even shares is not fixed by anybody.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ropewalk.base.ids import TopicPartition

Shares = dict[str, list[TopicPartition]]


class Candidate(Struct, frozen=True):
    """A member as the leader sees it."""

    member_id: str
    topics: frozenset[str]
    instance_id: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    """Of what it owns; -1 where it does not say."""


def assign(name: str, candidates: Sequence[Candidate], partition_counts: Mapping[str, int]) -> Shares:
    """For each member what it shall read. Topics that are not in `partition_counts` do not exist."""
    match name:
        case "range":
            return _range(candidates, partition_counts)
        case "roundrobin":
            return _round_robin(candidates, partition_counts)
        case "sticky":
            return _sticky(candidates, partition_counts)
        case _:
            held = _kept(_in_order(candidates), partition_counts)
            return _given_up_first(_sticky(candidates, partition_counts), held)


def _in_order(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Static members by the name they keep, the others behind them."""
    return sorted(
        candidates, key=lambda each: (each.instance_id is None, each.instance_id or "", each.member_id)
    )


def _range(candidates: Sequence[Candidate], partition_counts: Mapping[str, int]) -> Shares:
    shares: Shares = {candidate.member_id: [] for candidate in candidates}
    for topic, count in sorted(partition_counts.items()):
        members = [candidate for candidate in _in_order(candidates) if topic in candidate.topics]
        start = 0
        for position, member in enumerate(members):
            size = count // len(members) + (position < count % len(members))
            shares[member.member_id] += [TopicPartition(topic, index) for index in range(start, start + size)]
            start += size
    return shares


def _round_robin(candidates: Sequence[Candidate], partition_counts: Mapping[str, int]) -> Shares:
    shares: Shares = {candidate.member_id: [] for candidate in candidates}
    members = _in_order(candidates)
    turn = 0
    for partition in _partitions(partition_counts):
        if any(partition.topic in member.topics for member in members):
            while partition.topic not in members[turn % len(members)].topics:
                turn += 1
            shares[members[turn % len(members)].member_id].append(partition)
            turn += 1
    return shares


def _sticky(candidates: Sequence[Candidate], partition_counts: Mapping[str, int]) -> Shares:
    members = _in_order(candidates)
    topics = {member.member_id: member.topics for member in members}
    shares = _kept(members, partition_counts)
    taken = {partition for share in shares.values() for partition in share}
    readers = {
        topic: [member.member_id for member in members if topic in member.topics]
        for topic in partition_counts
    }
    # Those that few can read come first: later there may be no room left where they could go.
    free = [partition for partition in _partitions(partition_counts) if partition not in taken]
    for partition in sorted(free, key=lambda each: (len(readers[each.topic]), each)):
        if readers[partition.topic]:
            poorest = min(readers[partition.topic], key=lambda member: len(shares[member]))
            shares[poorest].append(partition)
    _even_out(shares, topics)
    return {member: sorted(share) for member, share in shares.items()}


def _kept(members: Sequence[Candidate], partition_counts: Mapping[str, int]) -> Shares:
    """What each had and may keep. Of two who claim the same the later generation is believed, of equals nobody."""
    claims: dict[TopicPartition, tuple[int, str | None]] = {}
    for member in members:
        for partition in member.owned:
            exists = partition.partition < partition_counts.get(partition.topic, 0)
            if not exists or partition.topic not in member.topics:
                continue
            generation, owner = claims.get(partition, (-2, None))
            if member.generation > generation:
                claims[partition] = (member.generation, member.member_id)
            elif member.generation == generation and owner is not None:
                claims[partition] = (generation, None)
    shares: Shares = {member.member_id: [] for member in members}
    for partition, (_, owner) in sorted(claims.items()):
        if owner is not None:
            shares[owner].append(partition)
    return shares


def _even_out(shares: Shares, topics: Mapping[str, frozenset[str]]) -> None:
    """Move single partitions from rich to poor while that makes a difference of two or more smaller."""
    moved = True
    while moved:
        moved = False
        by_wealth = sorted(shares, key=lambda member: (-len(shares[member]), member))
        for rich in by_wealth:
            for poor in reversed(by_wealth):
                if len(shares[rich]) - len(shares[poor]) < 2:
                    break
                movable = [partition for partition in shares[rich] if partition.topic in topics[poor]]
                if movable:
                    partition = movable[-1]
                    shares[rich].remove(partition)
                    shares[poor].append(partition)
                    moved = True
                    break
            if moved:
                break


def _given_up_first(shares: Shares, held: Shares) -> Shares:
    """Nobody gets what another still holds: that one gives it up now, and it is shared out in the next rebalance."""
    owners = {partition: member for member, share in held.items() for partition in share}
    return {
        member: [partition for partition in share if owners.get(partition, member) == member]
        for member, share in shares.items()
    }


def _partitions(partition_counts: Mapping[str, int]) -> list[TopicPartition]:
    return [
        TopicPartition(topic, index)
        for topic, count in sorted(partition_counts.items())
        for index in range(count)
    ]
