"""Groups whose assignments the broker makes (KIP-848), with the clients that know them, and the way there and back.

As in `test_compat_groups.py` every record that a member is given is counted: once is meant literally.
"""

from collections import Counter

import pytest
from confluent_kafka.admin import AdminClient

from tests.compat.conftest import HireCrew, MakeTopic
from tests.compat.crew import (
    Member,
    Partition,
    received,
    wait_until,
    wait_until_left,
    wait_until_read,
    wait_until_shared,
)
from tests.compat.writing import write, writing

pytestmark = pytest.mark.compat

every_kind = pytest.mark.parametrize("kind", ["confluent-kafka", "java"])


def _all(topic: str, count: int) -> set[Partition]:
    return {(topic, partition) for partition in range(count)}


def _refusals(members: list[Member]) -> list[str]:
    return [refusal for member in members for refusal in member.refusals]


@every_kind
def test_every_record_is_read_once_while_members_come_and_go(
    kind: str, hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(8)

    def join() -> Member:
        return hire(kind).join(group, topic, protocol="consumer")

    with writing(bootstrap, topic, partitions=8) as written:
        members = [join()]
        wait_until_shared(members, _all(topic, 8))
        members += [join(), join(), join()]
        wait_until_shared(members, _all(topic, 8))
        members[1].leave()
        members.append(join())
        members[0].leave()
        staying = members[2:]
        wait_until_shared(staying, _all(topic, 8))
        staying[0].leave()
        wait_until_shared(staying[1:], _all(topic, 8))
    wait_until_read(members, written)
    wait_until_left(members)
    assert received(members) == Counter(written)
    assert _refusals(members) == []


@every_kind
def test_a_static_member_comes_back_to_its_partitions_and_nobody_rebalances(
    kind: str, hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(4)
    crew = hire(kind)

    def join(number: int) -> Member:
        return crew.join(group, topic, instance=f"berth-{number}", protocol="consumer")

    restarted, other = join(0), join(1)
    wait_until_shared([restarted, other], _all(topic, 4))
    held, rounds = restarted.assignment, other.assignment_count
    restarted.leave()
    wait_until(lambda: restarted.has_left, "the static member has closed")
    written = write(bootstrap, topic, partitions=4, count=100)
    again = join(0)
    wait_until_read([again, other], written)
    assert again.assignment == held
    assert other.assignment_count == rounds
    assert received([restarted, again, other]) == Counter(written)
    wait_until_left([again, other])


@every_kind
def test_a_pattern_finds_topics_as_they_are_made(
    kind: str, hire: HireCrew, bootstrap: str, topic: str, group: str
) -> None:
    written = write(bootstrap, f"{topic}-first", partitions=1, count=10)
    member = hire(kind).join(group, pattern=f"^{topic}-.*", protocol="consumer")
    wait_until_read([member], written)
    written += write(bootstrap, f"{topic}-second", partitions=1, count=10)
    wait_until_read([member], written)
    wait_until_left([member])
    assert received([member]) == Counter(written)


def test_what_a_crashed_member_held_goes_to_the_others(
    hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(4)
    crew = hire("confluent-kafka", to_crash=True)
    doomed = crew.join(group, topic, protocol="consumer")
    survivor = hire("java").join(group, topic, protocol="consumer")
    wait_until_shared([doomed, survivor], _all(topic, 4))
    crew.crash()
    wait_until_shared([survivor], _all(topic, 4))
    written = write(bootstrap, topic, partitions=4, count=100)
    wait_until_read([survivor], written)
    wait_until_left([survivor])


@every_kind
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_goes_over_to_the_consumer_protocol_and_back_while_it_reads(
    kind: str, strategy: str, hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(6)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    crew = hire(kind)

    def classic() -> Member:
        return crew.join(group, topic, strategy=strategy)

    def modern() -> Member:
        return crew.join(group, topic, protocol="consumer")

    def group_type() -> str:
        listed = admin.list_consumer_groups(request_timeout=10).result(10)
        (found,) = [each for each in listed.valid if each.group_id == group]
        return str(found.type.name)

    with writing(bootstrap, topic, partitions=6) as written:
        old = [classic(), classic()]
        wait_until_shared(old, _all(topic, 6))
        assert group_type() == "CLASSIC"
        new = [modern()]
        wait_until_shared(old + new, _all(topic, 6))
        assert group_type() == "CONSUMER"
        old[0].leave()
        new.append(modern())
        wait_until_shared([old[1], *new], _all(topic, 6))
        old[1].leave()
        wait_until_shared(new, _all(topic, 6))
        back = [classic()]
        wait_until_shared(new + back, _all(topic, 6))
        assert group_type() == "CONSUMER"
        for member in new:
            member.leave()
        wait_until_shared(back, _all(topic, 6))
        assert group_type() == "CLASSIC"
    members = old + new + back
    wait_until_read(members, written)
    wait_until_left(members)
    assert received(members) == Counter(written)
    assert _refusals(members) == []
