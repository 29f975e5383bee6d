"""Messages of queues through nodes that do not lead them: nothing is lost, given twice or hidden for nobody."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import pytest

from ropewalk.base.errors import QueueNotReady, RopewalkError, ShardUnavailable
from ropewalk.base.flow import Waiting
from ropewalk.broker.queues import settings as queue_settings
from ropewalk.broker.queues.group_partitions import partition_of_group
from ropewalk.metadata.queues import Queue
from ropewalk.queues.errors import TooManyInFlight
from ropewalk.queues.messages import Delivered, Outgoing, Sent
from ropewalk.sim.machines.world import EPOCH_MS
from ropewalk.sqs.engine import Messages
from tests.cluster.nodes import Nodes, in_a_cluster

NODES = (0, 1, 2)


class Client:
    """Of a receive: it may go while that waits."""

    def __init__(self) -> None:
        self._waiting: list[Waiting] = []

    def begin_wait(self, waiting: Waiting) -> None:
        self._waiting.append(waiting)

    def end_wait(self, waiting: Waiting) -> None:
        self._waiting.remove(waiting)

    def go(self) -> None:
        for each in list(self._waiting):
            each.abandon()


def messages_at(nodes: Nodes, node_id: int) -> Messages:
    return nodes[node_id].to_queues


async def make(nodes: Nodes, name: str, partition_count: int = 1, **attributes: str) -> Queue:
    made = await nodes[0].queue_changes.create(
        name, attributes=attributes, tags={}, owner=None, partition_count=partition_count
    )
    await nodes.until(lambda: all(nodes[each].image.queues.get(name) for each in nodes.members))
    return made


def leader_of(nodes: Nodes, queue: Queue, index: int = 0) -> int:
    leader = nodes[0].image.topic(queue.topic).partitions[index].leader
    assert leader is not None
    return leader


def others(leader: int) -> list[int]:
    return [each for each in NODES if each != leader]


async def send(nodes: Nodes, node_id: int, queue: Queue, *texts: str, group: str = "") -> list[Sent]:
    outcomes = await messages_at(nodes, node_id).send(
        queue,
        [
            Outgoing(
                body=text.encode(), sent_at_ms=EPOCH_MS, group=group, deduplication_id=text if group else ""
            )
            for text in texts
        ],
    )
    assert all(isinstance(each, Sent) for each in outcomes), outcomes
    return [each for each in outcomes if isinstance(each, Sent)]


async def receive(
    nodes: Nodes,
    node_id: int,
    queue: Queue,
    *,
    wait_ms: int = 0,
    visibility_ms: int = 30_000,
    client: Client | None = None,
    request_id: bytes = b"",
) -> Sequence[Delivered]:
    return await messages_at(nodes, node_id).receive(
        queue,
        count_max=10,
        visibility_ms=visibility_ms,
        wait_ms=wait_ms,
        request_id=request_id,
        hold=client or Client(),
    )


def texts_of(delivered: Sequence[Delivered]) -> list[str]:
    return [(each.record.value or b"").decode() for each in delivered]


async def delete(nodes: Nodes, node_id: int, queue: Queue, delivered: Sequence[Delivered]) -> None:
    outcomes = await messages_at(nodes, node_id).delete(queue, [each.receipt for each in delivered])
    assert list(outcomes) == [None] * len(delivered)


@pytest.mark.parametrize(("name", "group"), [("work", ""), ("work.fifo", "g")])
def test_a_message_is_sent_received_and_deleted_through_nodes_that_do_not_lead(name: str, group: str) -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, name)
        one, other = others(leader_of(nodes, queue))
        await send(nodes, one, queue, "a", "b", group=group)
        delivered = await receive(nodes, other, queue)
        assert texts_of(delivered) == ["a", "b"]
        assert await receive(nodes, one, queue) == ()
        changed = await messages_at(nodes, one).change_visibility(
            queue, [(each.receipt, 60_000) for each in delivered]
        )
        assert list(changed) == [None, None]
        await delete(nodes, other, queue, delivered)
        totals = await messages_at(nodes, one).totals(queue)
        assert (totals.visible_count, totals.in_flight_count) == (0, 0)

    in_a_cluster(story)


def test_a_duplicate_through_another_node_is_answered_with_the_first() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, "work.fifo")
        one, other = others(leader_of(nodes, queue))
        (first,) = await send(nodes, one, queue, "a", group="g")
        (second,) = await send(nodes, other, queue, "a", group="g")
        assert (second.offset, second.is_duplicate) == (first.offset, True)

    in_a_cluster(story)


def test_a_long_poll_at_another_node_is_woken_by_a_send() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, "work")
        one, other = others(leader_of(nodes, queue))
        waiting = asyncio.ensure_future(receive(nodes, one, queue, wait_ms=20_000))
        await asyncio.sleep(5)
        assert not waiting.done()
        began_s = nodes.world.now_s
        await send(nodes, other, queue, "a")
        assert texts_of(await waiting) == ["a"]
        assert nodes.world.now_s - began_s < 1

    in_a_cluster(story)


def test_a_long_poll_for_which_nothing_comes_is_answered_empty_in_time() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, "work")
        (one, _) = others(leader_of(nodes, queue))
        began_s = nodes.world.now_s
        assert await receive(nodes, one, queue, wait_ms=20_000) == ()
        assert 19.5 < nodes.world.now_s - began_s < 21.5

    in_a_cluster(story)


def test_one_message_in_any_of_four_partitions_is_found_by_the_first_receive() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, "work", 4)
        for number in range(8):
            await send(nodes, number % 3, queue, f"m{number}")
            delivered = await receive(nodes, (number + 1) % 3, queue)
            assert texts_of(delivered) == [f"m{number}"]
            await delete(nodes, (number + 2) % 3, queue, delivered)

    in_a_cluster(story)


def test_a_client_that_goes_while_it_waits_hides_nothing() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, "work", 4)
        client = Client()
        waiting = asyncio.ensure_future(receive(nodes, 0, queue, wait_ms=20_000, client=client))
        await asyncio.sleep(2)
        client.go()
        assert await waiting == ()
        await send(nodes, 1, queue, "a")
        delivered = await receive(nodes, 2, queue, wait_ms=2_000)
        assert texts_of(delivered) == ["a"]
        assert delivered[0].receive_count == 1

    in_a_cluster(story)


def test_what_crosses_is_given_back_uncounted() -> None:
    """Two partitions give something to the same receive; the second is for whoever asks next."""

    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, "work", 4)
        waiting = asyncio.ensure_future(receive(nodes, 0, queue, wait_ms=20_000))
        await asyncio.sleep(2)
        await asyncio.gather(*(send(nodes, node_id, queue, f"m{node_id}") for node_id in NODES for _ in "ab"))
        seen = texts_of(await waiting)
        counts = []
        while delivered := await receive(nodes, 0, queue, wait_ms=2_000):
            seen += texts_of(delivered)
            counts += [each.receive_count for each in delivered]
        assert sorted(seen) == ["m0", "m0", "m1", "m1", "m2", "m2"]
        assert set(counts) == {1}

    in_a_cluster(story)


def test_polls_of_an_idle_queue_go_on_when_its_leader_is_killed() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, "work")
        leader = leader_of(nodes, queue)
        front_end = next(each for each in others(leader) if each != 0)
        waiting = asyncio.ensure_future(receive(nodes, front_end, queue, wait_ms=20_000))
        await asyncio.sleep(3)
        nodes.members[leader].kill()
        await nodes.until(
            lambda: nodes[front_end].image.topic("work").partitions[0].leader not in (None, leader)
        )
        outcome: Sequence[Sent | RopewalkError] = ()
        while not outcome or not isinstance(outcome[0], Sent):
            try:
                outcome = await messages_at(nodes, front_end).send(
                    queue, [Outgoing(body=b"a", sent_at_ms=EPOCH_MS)]
                )
            except RopewalkError:
                await asyncio.sleep(0.1)
        assert texts_of(await waiting) == ["a"]

    in_a_cluster(story, with_etcd=True)


async def go_on_sending(nodes: Nodes, node_id: int, queue: Queue, text: str, group: str) -> None:
    """Until it is taken."""
    outcome: Sequence[Sent | RopewalkError] = ()
    while not outcome or not isinstance(outcome[0], Sent):
        outcome = await messages_at(nodes, node_id).send(
            queue,
            [Outgoing(body=text.encode(), sent_at_ms=EPOCH_MS, group=group, deduplication_id=text)],
        )
        await asyncio.sleep(0.1)


async def make_by_groups(nodes: Nodes) -> Queue:
    """A FIFO queue of four partitions."""
    limits = {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}
    return await make(nodes, "work.fifo", 4, **limits)


def group_in(queue: Queue, index: int) -> str:
    """One whose messages lie in that partition."""
    return next(f"g{number}" for number in range(99) if partition_of_group(queue, f"g{number}", 4) == index)


@pytest.mark.parametrize("wait_ms", [0, 20_000])
def test_a_receive_that_is_repeated_finds_its_messages_whatever_has_come_elsewhere(wait_ms: int) -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_by_groups(nodes)
        for index in range(4):
            await send(nodes, 0, queue, f"a{index}", group=group_in(queue, index))
            given = await receive(nodes, 1, queue, wait_ms=wait_ms, request_id=b"again")
            assert texts_of(given) == [f"a{index}"]
            for other in range(4):
                if other != index:
                    await send(nodes, 2, queue, f"b{index}{other}", group=group_in(queue, other))
            repeated = await receive(nodes, 2, queue, wait_ms=wait_ms, request_id=b"again")
            assert [each.receipt for each in repeated] == [each.receipt for each in given]
            assert [each.receive_count for each in repeated] == [1]
            await delete(nodes, 0, queue, given)
            while rest := await receive(nodes, 0, queue):
                await delete(nodes, 0, queue, rest)

    in_a_cluster(story)


def test_a_repeated_receive_takes_nothing_else_while_its_messages_may_be_where_nobody_can_ask() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_by_groups(nodes)
        leaders = [leader_of(nodes, queue, index) for index in range(4)]
        gone = next(each for each in leaders if each != 0)
        index, other = leaders.index(gone), leaders.index(next(each for each in leaders if each != gone))
        await send(nodes, 0, queue, "a", group=group_in(queue, index))
        await send(nodes, 0, queue, "b", group=group_in(queue, other))
        given: Sequence[Delivered] = ()
        number = 0
        while texts_of(given) != ["a"]:
            number += 1
            given = await receive(nodes, 0, queue, request_id=b"%d" % number)
            if texts_of(given) == ["b"]:
                await messages_at(nodes, 0).change_visibility(queue, [(given[0].receipt, 0)])
        nodes.members[gone].kill()
        with pytest.raises(QueueNotReady):
            await receive(nodes, 0, queue, request_id=b"%d" % number)
        repeated = await receive(nodes, 0, queue, wait_ms=20_000, request_id=b"%d" % number)
        assert [each.receipt for each in repeated] == [each.receipt for each in given]

    in_a_cluster(story, with_etcd=True)


def test_a_partition_that_nobody_leads_keeps_no_receive_with_an_id_from_the_others() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_by_groups(nodes)
        leaders = [leader_of(nodes, queue, index) for index in range(4)]
        gone = next(each for each in leaders if each != 0)
        index = next(index for index in range(4) if leaders[index] != gone)
        await send(nodes, 0, queue, "a", group=group_in(queue, index))
        nodes.members[gone].kill()
        unled = leaders.index(gone)
        await nodes.until(lambda: nodes[0].image.topic(queue.topic).partitions[unled].leader is None)
        assert texts_of(await receive(nodes, 0, queue, wait_ms=20_000, request_id=b"new")) == ["a"]

    in_a_cluster(story, "default.replication.factor=1", with_etcd=True)


@pytest.mark.parametrize("begins", ["before", "after"])
@pytest.mark.parametrize("is_door_a_leader", [True, False])
def test_a_poll_at_several_partitions_goes_on_at_the_next_leader_of_each(
    begins: str, is_door_a_leader: bool
) -> None:
    """One of four leaders is killed, before or after the poll begins; what is sent to its partition afterwards is the answer."""

    async def story(nodes: Nodes) -> None:
        queue = await make_by_groups(nodes)
        leaders = [leader_of(nodes, queue, index) for index in range(4)]
        gone = next(each for each in leaders if each != 0)
        index = leaders.index(gone)
        group = group_in(queue, index)
        door = 0 if is_door_a_leader else next(each for each in NODES if each not in (0, gone))
        waiting = asyncio.ensure_future(receive(nodes, door, queue, wait_ms=20_000))
        if begins == "before":
            await asyncio.sleep(3)
        nodes.members[gone].kill()
        if begins == "after":
            waiting.cancel()
            waiting = asyncio.ensure_future(receive(nodes, door, queue, wait_ms=20_000))
        await nodes.until(
            lambda: nodes[door].image.topic(queue.topic).partitions[index].leader not in (None, gone)
        )
        await go_on_sending(nodes, door, queue, "a", group)
        assert texts_of(await waiting) == ["a"]

    in_a_cluster(story, with_etcd=True)


def test_a_client_that_goes_while_there_is_no_leader_is_waited_for_no_longer() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, "work")
        gone = leader_of(nodes, queue)
        door = next(each for each in others(gone) if each != 0)
        client = Client()
        nodes.members[gone].kill()
        waiting = asyncio.ensure_future(receive(nodes, door, queue, wait_ms=20_000, client=client))
        await asyncio.sleep(0.7)
        assert not waiting.done()
        client.go()
        began_s = nodes.world.now_s
        assert await waiting == ()
        assert nodes.world.now_s - began_s < 0.1

    in_a_cluster(story, with_etcd=True)


def test_a_short_poll_is_not_empty_where_a_leader_could_not_be_asked() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, "work", 4)
        leaders = [leader_of(nodes, queue, index) for index in range(4)]
        gone = next(each for each in leaders if each != 0)
        nodes.members[gone].kill()
        for _ in range(4):
            with pytest.raises(QueueNotReady):
                await receive(nodes, 0, queue)
        began_s = nodes.world.now_s
        while True:  # until others lead
            try:
                assert await receive(nodes, 0, queue) == ()
                break
            except QueueNotReady:
                await asyncio.sleep(0.1)
        assert nodes.world.now_s > began_s

    in_a_cluster(story, with_etcd=True)


@pytest.mark.parametrize("name", ["work", "work.fifo"])
def test_the_bound_of_messages_in_flight_is_that_of_the_queue(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its partitions are led by several nodes. What is deleted at one makes room at another."""
    monkeypatch.setattr(queue_settings, "QUEUE_IN_FLIGHT_MAX", 24)

    async def story(nodes: Nodes) -> None:
        queue = await (make_by_groups(nodes) if name == "work.fifo" else make(nodes, name, 4))
        for number in range(60):
            group = f"g{number}" if queue.is_fifo else ""
            await send(nodes, number % 3, queue, f"m{number}", group=group)
        given = await receive_until_full(nodes, queue)
        assert 24 <= len(given) <= 32, "about as many as are allowed"
        await asyncio.sleep(1)
        assert await receive_until_full(nodes, queue) == []
        half = [each for each in given if each.receipt.partition == given[0].receipt.partition]
        await delete(nodes, 0, queue, half)
        await asyncio.sleep(1)
        more = await receive_until_full(nodes, queue)
        assert 0 < len(given) - len(half) + len(more) <= 32
        assert more

    in_a_cluster(story)


async def receive_until_full(nodes: Nodes, queue: Queue) -> list[Delivered]:
    """One at a time, with time for leaders to tell each other."""
    given: list[Delivered] = []
    try:
        while delivered := await messages_at(nodes, 1).receive(
            queue, count_max=1, visibility_ms=3_600_000, wait_ms=0, hold=Client()
        ):
            given += delivered
            await asyncio.sleep(0.3)
    except TooManyInFlight:
        assert not queue.is_fifo
    else:
        assert queue.is_fifo or not given
    return given


@pytest.mark.parametrize("partition_count", [1, 4])
def test_a_receive_is_not_empty_where_a_leader_has_not_answered(partition_count: int) -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, "work", partition_count)
        hanging = leader_of(nodes, queue)
        asking = others(hanging)[0]
        assert await receive(nodes, asking, queue) == ()
        nodes[hanging].pause()
        with pytest.raises(ShardUnavailable):
            await receive(nodes, asking, queue)
        nodes[hanging].resume()

    in_a_cluster(story, with_etcd=True)


def test_what_a_leader_that_is_gone_cannot_take_goes_to_another_partition() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, "work", 4)
        leaders = [leader_of(nodes, queue, index) for index in range(4)]
        gone = next(each for each in leaders if each != 0)
        for number in range(4):
            await send(nodes, 0, queue, f"before{number}")
        nodes.members[gone].kill()
        await asyncio.sleep(0.5)
        assert leader_of(nodes, queue, leaders.index(gone)) == gone, "nobody leads in its place yet"
        for number in range(8):
            await send(nodes, 0, queue, f"m{number}")
        seen: list[str] = []
        while any(leader_of(nodes, queue, index) == gone for index in range(4)):
            await asyncio.sleep(0.5)
        while delivered := await receive(nodes, 0, queue, wait_ms=5_000, visibility_ms=60_000):
            seen += texts_of(delivered)
        assert sorted(seen) == sorted([f"before{n}" for n in range(4)] + [f"m{n}" for n in range(8)])

    in_a_cluster(story, with_etcd=True)


def test_what_a_leader_may_have_taken_is_not_sent_to_another_partition() -> None:
    """It hangs: what was sent to it has an unknown outcome, which is what the sender hears."""

    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, "work", 4)
        leaders = [leader_of(nodes, queue, index) for index in range(4)]
        hanging = next(each for each in leaders if each != 0)
        known, unknown = [f"before{number}" for number in range(4)], []
        for text in known:
            await send(nodes, 0, queue, text)  # so there is a connection
        nodes[hanging].pause()
        for number in range(4):
            try:
                known += [f"m{number}" for _ in await send(nodes, 0, queue, f"m{number}")]
            except ShardUnavailable:
                unknown.append(f"m{number}")
        nodes[hanging].resume()
        assert unknown
        seen: list[str] = []
        while not set(known) <= set(seen):
            with suppress(RopewalkError):  # connections are to be made again
                seen += texts_of(await receive(nodes, 0, queue, wait_ms=5_000, visibility_ms=600_000))
        seen += texts_of(await receive(nodes, 0, queue, wait_ms=5_000))
        assert len(set(seen)) == len(seen)
        assert set(seen) <= {*known, *unknown}

    in_a_cluster(story)


def test_a_leader_that_is_gone_does_not_hide_what_others_have() -> None:
    """A short poll asks every partition; one of them is led by a node that was killed a moment ago."""

    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, "work", 4)
        leaders = [leader_of(nodes, queue, index) for index in range(4)]
        gone = next(each for each in leaders if each != 0)
        kept = next(each for each in NODES if each not in (0, gone))
        while leaders[(await send(nodes, kept, queue, "a"))[0].partition] == gone:
            pass  # the next goes to another partition
        nodes.members[gone].kill()
        for _ in range(4):  # beginning with another partition each time
            delivered = await receive(nodes, kept, queue, visibility_ms=0)
            assert texts_of(delivered) == ["a"]

    in_a_cluster(story, with_etcd=True)


def test_what_was_received_through_a_front_end_that_is_lost_comes_back() -> None:
    """It was given to a client of that node, which may have it: its deadline counts. What the node had not taken is free at once."""

    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, "work")
        leader = leader_of(nodes, queue)
        lost, left = sorted(others(leader), reverse=True)
        waiting = asyncio.ensure_future(receive(nodes, lost, queue, wait_ms=20_000))
        await asyncio.sleep(2)
        nodes.members[lost].kill()
        waiting.cancel()
        await send(nodes, left, queue, "a")
        began_s = nodes.world.now_s
        seen: list[str] = []
        while not seen:
            seen = texts_of(await receive(nodes, left, queue, wait_ms=20_000))
        assert seen == ["a"]
        assert nodes.world.now_s - began_s < 29

    in_a_cluster(story, with_etcd=True)


def test_a_dead_letter_arrives_once_in_a_queue_that_another_node_leads() -> None:
    async def story(nodes: Nodes) -> None:
        made = [await make(nodes, f"dead{number}") for number in range(3)]
        work = await make(nodes, "work")
        dead = next(each for each in made if leader_of(nodes, each) != leader_of(nodes, work))
        policy = f'{{"deadLetterTargetArn":"arn:aws:sqs:here:000000000000:{dead.name}","maxReceiveCount":1}}'
        await nodes[0].queue_changes.change("work", {"RedrivePolicy": policy})
        await send(nodes, 0, work, "a")
        (given,) = await receive(nodes, 1, work, visibility_ms=1_000)
        assert given.receive_count == 1
        (letter,) = await receive(nodes, 2, dead, wait_ms=20_000)
        assert (letter.record.value, dict(letter.record.headers)["rw.dlq.source.queue"]) == (b"a", b"work")
        assert await receive(nodes, 2, work, wait_ms=3_000) == ()
        assert await receive(nodes, 2, dead, wait_ms=3_000) == ()

    in_a_cluster(story)
