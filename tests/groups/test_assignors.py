"""The assignors by their promises: everything has one owner who wants it, evenness, and how little moves."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.ids import TopicId
from ropewalk.groups.assignors.catalogue import ASSIGNORS
from ropewalk.groups.assignors.model import Candidate, Place, Share

T, U = TopicId(b"t" * 16), TopicId(b"u" * 16)
_TOPICS = tuple(TopicId(bytes([index]) * 16) for index in range(1, 5))


@st.composite
def groups(draw: st.DrawFn, *, alike: bool = False) -> tuple[dict[str, Candidate], dict[TopicId, int]]:
    """Members with subscriptions and former shares, which name what is gone and what they no longer want, too."""
    counts = {topic_id: draw(st.integers(0, 9)) for topic_id in _TOPICS}
    members = draw(st.sets(st.sampled_from("abcdefgh"), min_size=1))
    common = draw(st.frozensets(st.sampled_from(_TOPICS)))
    former: dict[str, set[Place]] = {member_id: set() for member_id in members}
    for topic_id in _TOPICS:
        for index in range(draw(st.integers(0, 10))):
            owner = draw(st.sampled_from([*sorted(members), None]))
            if owner is not None:
                former[owner].add((topic_id, index))
    return {
        member_id: Candidate(
            topics=common if alike else draw(st.frozensets(st.sampled_from(_TOPICS))),
            share=frozenset(former[member_id]),
            instance_id=draw(st.sampled_from([None, f"i-{member_id}"])),
        )
        for member_id in members
    }, counts


def _kept(members: dict[str, Candidate], shares: dict[str, Share]) -> int:
    return sum(len(members[member_id].share & share) for member_id, share in shares.items())


@pytest.mark.parametrize("name", ASSIGNORS)
@given(group=groups())
def test_every_partition_that_is_wanted_has_one_owner_who_wants_it(
    name: str, group: tuple[dict[str, Candidate], dict[TopicId, int]]
) -> None:
    members, counts = group
    shares = ASSIGNORS[name](members, counts)
    owners = Counter(place for share in shares.values() for place in share)
    wanted = {topic_id for member in members.values() for topic_id in member.topics}
    assert owners == Counter((topic_id, index) for topic_id in wanted for index in range(counts[topic_id]))
    assert shares.keys() == members.keys()
    assert all(place[0] in members[member_id].topics for member_id in members for place in shares[member_id])


@pytest.mark.parametrize("name", ASSIGNORS)
@given(group=groups())
def test_the_order_in_which_members_are_told_makes_no_difference(
    name: str, group: tuple[dict[str, Candidate], dict[TopicId, int]]
) -> None:
    members, counts = group
    backwards = dict(reversed(members.items())), dict(reversed(counts.items()))
    assert ASSIGNORS[name](members, counts) == ASSIGNORS[name](*backwards)


@pytest.mark.parametrize("name", ["uniform", "sticky"])
@given(group=groups())
def test_assigning_again_moves_nothing(
    name: str, group: tuple[dict[str, Candidate], dict[TopicId, int]]
) -> None:
    members, counts = group
    shares = ASSIGNORS[name](members, counts)
    settled = {key: Candidate(member.topics, shares[key]) for key, member in members.items()}
    assert ASSIGNORS[name](settled, counts) == shares


@given(group=groups(alike=True))
def test_uniform_is_even_and_moves_as_little_as_an_even_assignment_can(
    group: tuple[dict[str, Candidate], dict[TopicId, int]],
) -> None:
    members, counts = group
    shares = ASSIGNORS["uniform"](members, counts)
    sizes = [len(share) for share in shares.values()]
    assert max(sizes) - min(sizes) <= 1
    (topics,) = {member.topics for member in members.values()}
    held = sorted(
        (
            sum(place[0] in topics and place[1] < counts[place[0]] for place in member.share)
            for member in members.values()
        ),
        reverse=True,
    )
    quota, left_over = divmod(sum(sizes), len(sizes))
    most = sum(min(count, quota + (rank < left_over)) for rank, count in enumerate(held))
    assert _kept(members, shares) == most


@given(group=groups())
def test_uniform_leaves_no_partition_that_would_be_better_elsewhere(
    group: tuple[dict[str, Candidate], dict[TopicId, int]],
) -> None:
    members, counts = group
    shares = ASSIGNORS["uniform"](members, counts)
    for owner, share in shares.items():
        for other, member in members.items():
            if any(place[0] in member.topics for place in share):
                assert len(share) <= len(shares[other]) + 1, (owner, other)


@given(group=groups())
def test_sticky_takes_nothing_from_whoever_has_at_most_twice_as_much(
    group: tuple[dict[str, Candidate], dict[TopicId, int]],
) -> None:
    members, counts = group
    shares = ASSIGNORS["sticky"](members, counts)
    for owner, share in shares.items():
        for other, member in members.items():
            if any(place[0] in member.topics for place in share):
                assert len(share) <= max(2 * len(shares[other]), len(shares[other]) + 1), (owner, other)


def test_sticky_moves_less_than_uniform_for_a_newcomer() -> None:
    members = {
        f"m{owner}": Candidate(frozenset({T}), frozenset((T, 6 * owner + index) for index in range(6)))
        for owner in range(10)
    }
    members["newcomer"] = Candidate(frozenset({T}))
    sizes = {name: len(ASSIGNORS[name](members, {T: 60})["newcomer"]) for name in ("uniform", "sticky")}
    assert sizes == {"uniform": 5, "sticky": 3}


def test_range_cuts_topics_that_are_alike_in_the_same_places() -> None:
    both = frozenset({T, U})
    members = {
        "b": Candidate(both),
        "a": Candidate(both),
        "z": Candidate(both, instance_id="first"),
    }
    shares = ASSIGNORS["range"](members, {T: 4, U: 4})
    assert shares == {
        "z": frozenset({(T, 0), (T, 1), (U, 0), (U, 1)}),
        "a": frozenset({(T, 2), (U, 2)}),
        "b": frozenset({(T, 3), (U, 3)}),
    }
