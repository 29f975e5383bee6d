"""Shares of a classic group: examples that Kafka's documentation gives, and what holds for every group."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.ids import TopicPartition
from ropewalk.client.consuming.assignors import Candidate, Shares, assign

NAMES = ["range", "roundrobin", "sticky", "cooperative-sticky"]

counts = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(1, 9), max_size=3)
subscriptions = st.lists(st.frozensets(st.sampled_from(["a", "b", "c", "gone"])), min_size=1, max_size=6)


alike = st.integers(1, 6).map(lambda count: [frozenset("ab")] * count)


def named(subscribed: list[frozenset[str]]) -> list[Candidate]:
    return [Candidate(f"m{number}", topics) for number, topics in enumerate(subscribed)]


def rejoining(candidates: list[Candidate], shares: Shares, generation: int) -> list[Candidate]:
    return [
        Candidate(each.member_id, each.topics, None, tuple(shares.get(each.member_id, ())), generation)
        for each in candidates
    ]


def settled(name: str, candidates: list[Candidate], partition_counts: dict[str, int]) -> Shares:
    """Rounds until nothing is given up any more."""
    generation = max(each.generation for each in candidates)
    while True:
        shares = assign(name, candidates, partition_counts)
        if not any(set(each.owned) - set(shares[each.member_id]) for each in candidates):
            return shares
        generation += 1
        candidates = rejoining(candidates, shares, generation)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("range", {"m0": "a0 a1 b0 b1", "m1": "a2 b2"}),
        ("roundrobin", {"m0": "a0 a2 b1", "m1": "a1 b0 b2"}),
    ],
)
def test_the_examples_of_kafka(name: str, expected: dict[str, str]) -> None:
    shares = assign(name, named([frozenset("ab"), frozenset("ab")]), {"a": 3, "b": 3})
    written = {
        member: " ".join(f"{partition.topic}{partition.partition}" for partition in share)
        for member, share in shares.items()
    }
    assert written == expected


@pytest.mark.parametrize("name", NAMES)
@given(subscribed=subscriptions, partition_counts=counts)
def test_every_partition_goes_to_one_who_wants_it(
    name: str, subscribed: list[frozenset[str]], partition_counts: dict[str, int]
) -> None:
    candidates = named(subscribed)
    shares = settled(name, candidates, partition_counts)
    given_out = [partition for share in shares.values() for partition in share]
    wanted = {
        TopicPartition(topic, index)
        for topic, count in partition_counts.items()
        for index in range(count)
        if any(topic in each.topics for each in candidates)
    }
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == wanted
    for each in candidates:
        assert all(partition.topic in each.topics for partition in shares[each.member_id])


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@given(
    subscribed=st.one_of(subscriptions, alike),
    newcomers=st.one_of(subscriptions, alike),
    partition_counts=counts,
)
def test_sticky_shares_stay_even_and_move_no_more_than_they_must(
    name: str,
    subscribed: list[frozenset[str]],
    newcomers: list[frozenset[str]],
    partition_counts: dict[str, int],
) -> None:
    before = settled(name, named(subscribed), partition_counts)
    candidates = named([*subscribed, *newcomers])
    after = settled(name, rejoining(candidates, before, 1), partition_counts)
    for one, other in combinations(candidates, 2):
        for rich, poor in ((one, other), (other, one)):
            movable = [each for each in after[rich.member_id] if each.topic in poor.topics]
            assert not movable or len(after[rich.member_id]) - len(after[poor.member_id]) <= 1
    if len({*subscribed, *newcomers}) > 1:
        return  # where not everybody can read everything, evenness may cost a detour
    for number in range(len(subscribed)):
        member = f"m{number}"
        kept = set(before[member]) & set(after[member])
        assert len(kept) == min(len(before[member]), len(after[member])), "nobody swaps one for another"


def test_a_cooperative_member_is_given_nothing_that_another_still_holds() -> None:
    both = frozenset("a")
    first = Candidate("m0", both, owned=tuple(TopicPartition("a", index) for index in range(4)), generation=3)
    shares = assign("cooperative-sticky", [first, Candidate("m1", both)], {"a": 4})
    assert len(shares["m0"]) == 2
    assert shares["m1"] == []
    again = rejoining([first, Candidate("m1", both)], shares, 4)
    assert len(assign("cooperative-sticky", again, {"a": 4})["m1"]) == 2


def test_of_two_who_claim_a_partition_the_later_generation_is_believed() -> None:
    topics, claimed = frozenset("a"), (TopicPartition("a", 0),)
    shares = assign(
        "sticky",
        [
            Candidate("m0", topics, owned=claimed, generation=1),
            Candidate("m1", topics, owned=claimed, generation=2),
        ],
        {"a": 1},
    )
    assert shares == {"m0": [], "m1": [TopicPartition("a", 0)]}
