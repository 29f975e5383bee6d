"""`subscribe()` with every real client: members join, share, leave and crash, and what is written is read once.

"Once" is meant literally: every member says which records it was given, all of them are counted, and a record that
a group was given twice, or never, fails the test.
"""

from collections import Counter
from collections.abc import Iterable

import pytest

from tests.compat.conftest import HireCrew, MakeTopic
from tests.compat.crew import (
    KINDS,
    STRATEGIES,
    Member,
    Partition,
    kinds_here,
    received,
    wait_until,
    wait_until_left,
    wait_until_read,
    wait_until_shared,
)
from tests.compat.node_process import StartNode
from tests.compat.writing import write, writing

pytestmark = pytest.mark.compat

every_kind = pytest.mark.parametrize("kind", KINDS)
every_strategy = pytest.mark.parametrize(
    ("kind", "strategy"), [(kind, strategy) for kind in KINDS for strategy in STRATEGIES[kind]]
)


def _all(topic: str, count: int) -> set[Partition]:
    return {(topic, partition) for partition in range(count)}


def _refusals(members: Iterable[Member]) -> list[str]:
    return [refusal for member in members for refusal in member.refusals]


@every_strategy
def test_members_share_the_partitions_and_take_over_from_one_that_leaves(
    kind: str, strategy: str, hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(6)
    members = [hire(kind).join(group, topic, strategy=strategy) for _ in range(3)]
    wait_until_shared(members, _all(topic, 6))
    before = write(bootstrap, topic, partitions=6, count=300)
    members[0].leave()
    wait_until_shared(members[1:], _all(topic, 6))
    after = write(bootstrap, topic, partitions=6, count=300)
    wait_until_read(members, before + after)
    wait_until_left(members)
    assert received(members) == Counter(before + after)
    assert _refusals(members) == []


@every_kind
def test_every_record_is_read_once_while_members_come_and_go(
    kind: str, hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(8)
    strategy = STRATEGIES[kind][-1]

    def join() -> Member:
        return hire(kind).join(group, topic, strategy=strategy)

    with writing(bootstrap, topic, partitions=8) as written:
        members = [join()]
        wait_until_shared(members, _all(topic, 8))
        members += [join(), join(), join()]
        wait_until_shared(members, _all(topic, 8))
        members[1].leave()
        members.append(join())
        members[0].leave()  # it leads the group
        staying = members[2:]
        wait_until_shared(staying, _all(topic, 8))
        staying[0].leave()
        wait_until_shared(staying[1:], _all(topic, 8))
    wait_until_read(members, written)
    wait_until_left(members)
    assert received(members) == Counter(written)
    assert _refusals(members) == []


@pytest.mark.parametrize("kind", ["confluent-kafka", "java"])
def test_twenty_members_rebalance_sixty_partitions_and_keep_what_they_can(
    kind: str, hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(60)
    crew = hire(kind)

    def join(count: int) -> list[Member]:
        return [crew.join(group, topic, strategy="cooperative-sticky") for _ in range(count)]

    with writing(bootstrap, topic, partitions=60) as written:
        first = join(10)
        wait_until_shared(first, _all(topic, 60))
        had = {member.name: member.assignment for member in first}
        revoked = {member.name: member.revoked.copy() for member in first}
        second = join(10)
        wait_until_shared(first + second, _all(topic, 60))
        for member in first:
            kept = member.assignment & had[member.name]
            assert len(kept) == 3
            assert not kept & set(member.revoked - revoked[member.name])
        for member in second[:5]:
            member.leave()
        wait_until_shared(first + second[5:], _all(topic, 60))
    wait_until_read(first + second, written)
    wait_until_left(first + second)
    assert received(first + second) == Counter(written)
    assert _refusals(first + second) == []


def test_clients_of_every_kind_share_one_group(
    hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(8)
    with writing(bootstrap, topic, partitions=8) as written:
        members = [hire(kind).join(group, topic) for kind in kinds_here()]
        wait_until_shared(members, _all(topic, 8))
        members[0].leave()
        wait_until_shared(members[1:], _all(topic, 8))
        members.append(hire(kinds_here()[0]).join(group, topic))
        wait_until_shared(members[1:], _all(topic, 8))
    wait_until_read(members, written)
    wait_until_left(members)
    assert received(members) == Counter(written)
    assert _refusals(members) == []


def test_each_group_reads_everything(
    hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(4)
    written = write(bootstrap, topic, partitions=4, count=400)
    members = [hire(kind).join(f"{group}-{kind}", topic) for kind in kinds_here()]
    for member in members:
        wait_until_read([member], written)
    wait_until_left(members)
    assert [member.received for member in members] == [Counter(written)] * len(members)


def test_what_a_crashed_member_held_goes_to_the_others_and_nothing_is_lost(
    hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(4)
    doomed_crews = [hire(kind, to_crash=True) for kind in kinds_here()]
    doomed = [crew.join(f"{group}-{crew.kind}", topic) for crew in doomed_crews]
    survivors = [hire(kind).join(f"{group}-{kind}", topic) for kind in kinds_here()]
    for pair in zip(doomed, survivors, strict=True):
        wait_until_shared(pair, _all(topic, 4))
    before = write(bootstrap, topic, partitions=4, count=100)
    for pair in zip(doomed, survivors, strict=True):
        wait_until_read(pair, before)
    for crew in doomed_crews:
        crew.crash()
    during = write(bootstrap, topic, partitions=4, count=100)
    for survivor in survivors:
        wait_until_shared([survivor], _all(topic, 4))
        wait_until_read([survivor], during)
    wait_until_left(survivors)
    # What a member has read and not committed is given to the next: at least once, and here exactly twice.
    for lost, survivor in zip(doomed, survivors, strict=True):
        twice = dict.fromkeys(lost.received, 2)
        assert received([lost, survivor]) == Counter(before + during) | Counter(twice)


@every_kind
def test_a_static_member_comes_back_to_its_partitions_and_nobody_rebalances(
    kind: str, hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(4)
    crew = hire(kind)
    restarted, other = (crew.join(group, topic, instance=f"berth-{number}") for number in range(2))
    wait_until_shared([restarted, other], _all(topic, 4))
    held, rounds = restarted.assignment, other.assignment_count
    restarted.leave()
    wait_until(lambda: restarted.has_left, "the static member has closed")
    written = write(bootstrap, topic, partitions=4, count=100)
    again = crew.join(group, topic, instance="berth-0")
    wait_until_read([again, other], written)
    assert again.assignment == held
    assert other.assignment_count == rounds
    assert received([restarted, again, other]) == Counter(written)
    wait_until_left([again, other])


# aiokafka says its name only when it joins: it would take it back, and lose it again, without end.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "aiokafka"])
def test_a_member_whose_name_another_took_can_no_longer_commit(
    kind: str, hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(1)
    written = write(bootstrap, topic, partitions=1, count=10)
    crew = hire(kind)
    fenced = crew.join(group, topic, instance="berth", commit="asked")
    wait_until_read([fenced], written)
    usurper = crew.join(group, topic, instance="berth", commit="asked")
    wait_until_shared([usurper], _all(topic, 1))
    fenced.commit()
    wait_until(lambda: bool(fenced.refusals or fenced.commit_count), "the commit is answered")
    assert fenced.commit_count == 0
    assert "fence" in fenced.refusals[0].lower()
    wait_until_left([usurper, fenced])


@every_kind
def test_a_pattern_finds_topics_as_they_are_made(
    kind: str, hire: HireCrew, bootstrap: str, topic: str, group: str
) -> None:
    written = write(bootstrap, f"{topic}-first", partitions=1, count=10)
    member = hire(kind).join(group, pattern=f"^{topic}-.*")
    wait_until_read([member], written)
    written += write(bootstrap, f"{topic}-second", partitions=1, count=10)
    wait_until_read([member], written)
    wait_until_left([member])
    # aiokafka forgets its positions when the pattern finds more, and begins again from what it has committed.
    assert set(member.received) == set(written)


def test_the_first_members_of_a_group_wait_for_each_other(
    start_node: StartNode, hire: HireCrew, topic: str, group: str
) -> None:
    node = start_node("--memory", "--set", "num.partitions=6")
    write(node.bootstrap, topic, partitions=6, count=6)
    members = [hire("confluent-kafka").join(group, topic, bootstrap=node.bootstrap) for _ in range(3)]
    wait_until_shared(members, _all(topic, 6))
    assert [member.assignment_count for member in members] == [1, 1, 1]
    wait_until_left(members)
