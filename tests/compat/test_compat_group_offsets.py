"""Committed offsets with every real client: a successor goes on where its predecessor stopped, whatever befell the node."""

import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.compat.committed import committed
from tests.compat.conftest import AT_ONCE, HireCrew, MakeTopic
from tests.compat.crew import KINDS, kinds_here, wait_until, wait_until_left, wait_until_read
from tests.compat.node_process import StartNode
from tests.compat.writing import write

pytestmark = pytest.mark.compat

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_a_successor_begins_where_a_commit_on_demand_was(
    kind: str, hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(2)
    before = write(bootstrap, topic, partitions=2, count=100)
    member = hire(kind).join(group, topic, commit="asked")
    wait_until_read([member], before)
    member.commit()
    wait_until(lambda: member.commit_count == 1, "the commit is answered")
    assert committed(bootstrap, group) == {(topic, 0): 50, (topic, 1): 50}
    uncommitted = write(bootstrap, topic, partitions=2, count=10)
    wait_until_read([member], uncommitted)
    wait_until_left([member])
    assert committed(bootstrap, group) == {(topic, 0): 50, (topic, 1): 50}
    successor = hire(kind).join(group, topic)
    wait_until_read([successor], uncommitted)
    wait_until_left([successor])
    assert successor.received == Counter(uncommitted)


@every_kind
def test_a_client_that_commits_by_itself_has_done_so_when_it_leaves(
    kind: str, hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(2)
    before = write(bootstrap, topic, partitions=2, count=100)
    member = hire(kind).join(group, topic, commit="auto")
    wait_until_read([member], before)
    wait_until_left([member])
    after = write(bootstrap, topic, partitions=2, count=10)
    successor = hire(kind).join(group, topic, commit="auto")
    wait_until_read([successor], after)
    wait_until_left([successor])
    assert successor.received == Counter(after)


@every_kind
def test_a_member_can_read_again_from_where_it_likes(
    kind: str, hire: HireCrew, bootstrap: str, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(1)
    written = write(bootstrap, topic, partitions=1, count=50)
    member = hire(kind).join(group, topic)
    wait_until_read([member], written)
    member.seek(topic, 0, 40)
    wait_until(lambda: member.received.total() == 60, "the last ten are read again")
    wait_until_left([member])
    assert member.received == Counter(written) + Counter(written[40:])


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
def test_groups_live_through_the_end_of_their_node(
    how: signal.Signals, start_node: StartNode, hire: HireCrew, topic: str, group: str, tmp_path: Path
) -> None:
    """The members stay, and find their node again; what they had committed is there, and nothing is read twice.

    Java's forgets all metadata while it searches, and then joins anew: it commits what it gives away, as all do here.
    """
    on_disk = ("--data", str(tmp_path / "data"), "--set", "num.partitions=2", *AT_ONCE)
    node = start_node(*on_disk)
    before = write(node.bootstrap, topic, partitions=2, count=100)
    groups = {kind: f"{group}-{kind}" for kind in kinds_here()}
    members = [hire(kind).join(group, topic, bootstrap=node.bootstrap) for kind, group in groups.items()]
    for member in members:
        wait_until_read([member], before)
        member.commit()
    wait_until(lambda: all(member.commit_count == 1 for member in members), "all commits are answered")
    node.stop(how)

    node = start_node(*on_disk, "--kafka", node.bootstrap)
    for name in groups.values():
        assert committed(node.bootstrap, name) == {(topic, 0): 50, (topic, 1): 50}
    after = write(node.bootstrap, topic, partitions=2, count=100)
    for member in members:
        wait_until_read([member], after)
    wait_until_left(members)
    assert [member.received for member in members] == [Counter(before + after)] * len(members)
