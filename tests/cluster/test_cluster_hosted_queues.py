"""Queues on several nodes: whoever leads, nothing that was acknowledged is lost and nothing that was deleted comes back."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ropewalk.base.errors import PurgeInProgress, RopewalkError, Throttled
from ropewalk.base.flow import Waiting
from ropewalk.base.ids import Offset
from ropewalk.base.limits import QUEUE_PEEK_BYTES_MAX
from ropewalk.base.state_machine import Command
from ropewalk.broker.dispatch.to_queues import ToQueues
from ropewalk.broker.queues.headers import DEDUPLICATION_ID, MESSAGE_ID, RECEIVE_COUNT, SOURCE_QUEUE
from ropewalk.broker.queues.hosted_queue import Asked
from ropewalk.broker.queues.message_ids import make_message_id, topic_digest
from ropewalk.broker.queues.opened import header_of
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.calls.partitioner import Partitioner
from ropewalk.metadata.queues import Queue
from ropewalk.queues.commands import EndMove
from ropewalk.queues.messages import Delivered, Outgoing, Receipt, Sent
from ropewalk.records.record import Record, build
from ropewalk.sim.machines.world import EPOCH_MS
from tests.cluster.nodes import Nodes, in_a_cluster


class Client:
    """Stays, unless it is told to go."""

    def __init__(self) -> None:
        self.waits: list[Waiting] = []

    def begin_wait(self, waiting: Waiting) -> None:
        self.waits.append(waiting)

    def end_wait(self, waiting: Waiting) -> None:
        self.waits.remove(waiting)

    def go(self) -> None:
        for waiting in list(self.waits):
            waiting.abandon()


async def make_queue(
    nodes: Nodes, name: str, *, partitions: int = 1, attributes: dict[str, str] | None = None
) -> Queue:
    queue = await nodes[0].queue_changes.create(
        name, attributes=attributes or {}, tags={}, owner=None, partition_count=partitions
    )
    await nodes.until(lambda: serving(nodes, queue) is not None)
    return queue


def serving(nodes: Nodes, queue: Queue, index: int = 0) -> ToQueues | None:
    """The way through whoever leads, once it is ready."""
    for member in nodes.members.values():
        if not member.machine.has_started:
            continue
        for hosted in member.node.queues.of_queue(queue):
            if hosted.index == index and hosted.is_serving:
                return member.node.to_queues
    return None


def leader_of(nodes: Nodes, queue: Queue) -> int:
    for node_id, member in nodes.members.items():
        if member.machine.has_started and any(
            hosted.is_serving for hosted in member.node.queues.of_queue(queue)
        ):
            return node_id
    raise AssertionError("nobody leads it")


def outgoing(body: str, *, group: str = "") -> Outgoing:
    headers: tuple[tuple[str, bytes | None], ...] = ((DEDUPLICATION_ID, body.encode()),) if group else ()
    return Outgoing(
        body=body.encode(), headers=headers, sent_at_ms=1_800_000_000_000, group=group, deduplication_id=body
    )


async def through(nodes: Nodes, queue: Queue) -> ToQueues:
    await nodes.until(lambda: serving(nodes, queue) is not None)
    way = serving(nodes, queue)
    assert way is not None
    return way


async def receive(
    nodes: Nodes,
    queue: Queue,
    count_max: int = 10,
    *,
    visibility_ms: int = 30_000,
    wait_ms: int = 0,
    client: Client | None = None,
) -> Sequence[Delivered]:
    way = await through(nodes, queue)
    return await way.receive(
        queue, count_max=count_max, visibility_ms=visibility_ms, wait_ms=wait_ms, hold=client or Client()
    )


def bodies(delivered: Sequence[Delivered]) -> list[str]:
    return [(each.record.value or b"").decode() for each in delivered]


def test_a_queue_outlives_its_leader_with_everything_that_was_acknowledged() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_queue(nodes, "jobs")
        way = await through(nodes, queue)
        sent: set[str] = set()
        for number in range(20):
            outcomes = await way.send(queue, [outgoing(f"m{number}")])
            assert isinstance(outcomes[0], Sent)
            sent.add(f"m{number}")
        delivered = await receive(nodes, queue, visibility_ms=20_000)
        deleted = set(bodies(delivered[:5]))
        assert await way.delete(queue, [each.receipt for each in delivered[:5]]) == [None] * 5
        nodes.members[leader_of(nodes, queue)].kill()
        seen: list[str] = []
        for _ in range(60):
            batch = await receive(nodes, queue, visibility_ms=600_000)
            seen += bodies(batch)
            await asyncio.sleep(1)
        assert set(seen) == sent - deleted
        assert len(seen) == len(set(seen)), "each was received once after the change of leader"

    in_a_cluster(story)


def test_a_leader_that_stops_in_order_brings_nothing_back() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_queue(nodes, "jobs")
        way = await through(nodes, queue)
        await way.send(queue, [outgoing("one"), outgoing("two")])
        assert bodies(await receive(nodes, queue, 1)) == ["one"]
        leader = leader_of(nodes, queue)
        await nodes.members[leader].stop()
        assert bodies(await receive(nodes, queue)) == ["two"], "that the other was given out is known"
        await asyncio.sleep(60)
        assert sorted(bodies(await receive(nodes, queue))) == ["one", "two"]

    in_a_cluster(story)


def test_a_fifo_queue_keeps_order_and_knows_duplicates_whoever_leads() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_queue(nodes, "jobs.fifo")
        way = await through(nodes, queue)
        first = await way.send(queue, [outgoing(f"m{number}", group="g") for number in range(4)])
        (head,) = await receive(nodes, queue, 1, visibility_ms=5000)
        nodes.members[leader_of(nodes, queue)].kill()
        way = await through(nodes, queue)
        again = await way.send(queue, [outgoing("m1", group="g"), outgoing("m4", group="g")])
        assert isinstance(again[0], Sent)
        assert isinstance(first[1], Sent)
        assert (again[0].offset, again[0].is_duplicate) == (first[1].offset, True)
        assert not await receive(nodes, queue), "the head of the group is in flight"
        await asyncio.sleep(20)
        assert bodies(await receive(nodes, queue)) == ["m0", "m1", "m2", "m3", "m4"]
        assert bodies([head]) == ["m0"]

    in_a_cluster(story)


def test_a_long_poll_gets_the_next_message_though_the_leader_died() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_queue(nodes, "jobs")
        nodes.members[leader_of(nodes, queue)].kill()
        way = await through(nodes, queue)
        waiting = asyncio.ensure_future(receive(nodes, queue, wait_ms=20_000))
        await asyncio.sleep(1)
        await way.send(queue, [outgoing("late")])
        assert bodies(await waiting) == ["late"]

    in_a_cluster(story)


POLICY = '{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":2}'


async def die(nodes: Nodes, queue: Queue) -> None:
    for _ in range(2):
        assert bodies(await receive(nodes, queue, visibility_ms=1000)) == ["poison"]
        await asyncio.sleep(2)


def test_dead_letters_arrive_once_with_what_they_were() -> None:
    async def story(nodes: Nodes) -> None:
        dead = await make_queue(nodes, "dead")
        queue = await make_queue(nodes, "jobs", attributes={"RedrivePolicy": POLICY})
        way = await through(nodes, queue)
        (sent,) = await way.send(queue, [outgoing("poison")])
        assert isinstance(sent, Sent)
        await die(nodes, queue)
        assert not await receive(nodes, queue)
        (letter,) = await receive(nodes, dead, wait_ms=5000)
        assert bodies([letter]) == ["poison"]
        assert header_of(letter.record, SOURCE_QUEUE) == b"jobs"
        assert header_of(letter.record, RECEIVE_COUNT) == b"2"
        assert header_of(letter.record, MESSAGE_ID) == make_message_id(
            topic_digest(queue.topic_id), 0, sent.offset
        )
        assert letter.record.timestamp == 1_800_000_000_000
        await nodes.members[0].stop()
        await nodes.members[0].start()
        await asyncio.sleep(60)
        assert not await receive(nodes, queue)
        assert bodies(await receive(nodes, dead)) == ["poison"]
        assert not await receive(nodes, dead)

    in_a_cluster(story, nodes=1)


def test_a_dead_letter_is_there_once_though_the_node_died_before_it_was_settled() -> None:
    async def story(nodes: Nodes) -> None:
        dead = await make_queue(nodes, "dead")
        queue = await make_queue(nodes, "jobs", attributes={"RedrivePolicy": POLICY})
        way = await through(nodes, queue)
        await way.send(queue, [outgoing("poison")])
        source = nodes[0].queues.find(queue, 0)
        target = nodes[0].partitions.find("dead", 0)
        end_offset = target.log.end_offset
        ask = source.ask

        def refuse_the_end(command: Command[Any]) -> Asked[Any]:
            if isinstance(command, EndMove):
                raise Throttled("not now")
            return ask(command)

        setattr(source, "ask", refuse_the_end)  # noqa: B010
        await die(nodes, queue)
        await nodes.until(lambda: target.high_watermark > end_offset)
        assert source.core is not None
        assert source.core.state.move is not None, "that it has arrived is not written"
        nodes.members[0].kill()
        await nodes.members[0].start()
        await nodes.until(lambda: serving(nodes, queue) is not None and serving(nodes, dead) is not None)
        await asyncio.sleep(10)
        assert nodes[0].partitions.find("dead", 0).log.end_offset == end_offset + 1
        assert bodies(await receive(nodes, dead)) == ["poison"]
        assert not await receive(nodes, queue)

    in_a_cluster(story, nodes=1)


def test_a_client_that_has_gone_hides_nothing_and_counts_for_nothing() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_queue(nodes, "jobs", partitions=4)
        way = await through(nodes, queue)
        client = Client()
        waiting = asyncio.ensure_future(receive(nodes, queue, wait_ms=20_000, client=client))
        await asyncio.sleep(1)
        assert client.waits
        client.go()
        assert not await waiting
        await way.send(queue, [outgoing("one")])
        (delivered,) = await receive(nodes, queue)
        assert delivered.receive_count == 1

    in_a_cluster(story, nodes=1)


def test_one_message_in_the_last_of_four_partitions_is_found_by_the_first_receive() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_queue(nodes, "jobs", partitions=4)
        for index in range(4):
            await nodes[0].queues.find(queue, index).send([outgoing(f"in {index}")])
            assert bodies(await receive(nodes, queue)) == [f"in {index}"]
        totals = await (await through(nodes, queue)).totals(queue)
        assert (totals.visible_count, totals.in_flight_count) == (0, 4)

    in_a_cluster(story, nodes=1)


def test_of_what_crosses_at_several_partitions_only_the_answer_counts() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_queue(nodes, "jobs", partitions=4)
        waiting = asyncio.ensure_future(receive(nodes, queue, 1, wait_ms=20_000))
        await asyncio.sleep(1)
        sent = [nodes[0].queues.find(queue, index).send([outgoing(f"in {index}")]) for index in range(4)]
        await asyncio.gather(*sent)
        (first,) = await waiting
        others = [each for _ in range(3) for each in await receive(nodes, queue)]
        assert sorted(bodies([first, *others])) == [f"in {index}" for index in range(4)]
        assert {each.receive_count for each in others} == {1}

    in_a_cluster(story, nodes=1)


def test_deleting_records_of_a_queues_topic_waits_for_a_snapshot_and_then_goes_on() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_queue(nodes, "jobs")
        way = await through(nodes, queue)
        await way.send(queue, [outgoing(f"m{number}") for number in range(10)])
        partition = nodes[0].partitions.find("jobs", 0)
        place = partition.log.places.last_of(queue.queue_id)
        assert place is not None
        await nodes[0].partitions.trim(partition, Offset(6))
        assert partition.log.start_offset <= place.start_offset
        await nodes.until(lambda: partition.log.start_offset == 6)
        assert bodies(await receive(nodes, queue)) == [f"m{number}" for number in range(5, 10)]

    in_a_cluster(story, nodes=1)


def test_a_purge_is_refused_within_a_minute_of_the_last() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_queue(nodes, "jobs", partitions=2)
        way = await through(nodes, queue)
        await way.send(queue, [outgoing("one")])
        await way.purge(queue)
        with pytest.raises(PurgeInProgress):
            await way.purge(queue)
        assert not await receive(nodes, queue)
        await asyncio.sleep(61)
        await way.purge(queue)

    in_a_cluster(story, nodes=1)


def test_a_purge_that_failed_half_way_is_done_when_it_is_asked_for_again() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_queue(nodes, "jobs", partitions=3)
        way = await through(nodes, queue)
        hindered = nodes[0].queues.find(queue, 1)
        purge = hindered.purge

        def refuse() -> Asked[Any]:
            raise Throttled("not now")

        setattr(hindered, "purge", refuse)  # noqa: B010
        await way.send(queue, [outgoing("one")])
        with pytest.raises(Throttled):
            await way.purge(queue)
        setattr(hindered, "purge", purge)  # noqa: B010
        for number in range(9):
            await way.send(queue, [outgoing(f"m{number}")])
        await way.purge(queue)
        assert not await receive(nodes, queue)
        with pytest.raises(PurgeInProgress):
            await way.purge(queue)

    in_a_cluster(story, nodes=1)


async def make_queue_led_by_another_than_the_first(nodes: Nodes, attributes: dict[str, str]) -> Queue:
    """So that nobody at its leader waits for what the first node changes."""
    for number in range(8):
        queue = await make_queue(nodes, f"jobs{number}", attributes=attributes)
        if leader_of(nodes, queue) != 0:
            return queue
    raise AssertionError("the first node leads everything")


def test_dead_letters_stay_when_their_target_is_deleted_and_its_topic_is_not() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await Admin(client).create_topics([NewTopic("dead", 1, 1)])
        changes = nodes[0].queue_changes
        await changes.create("dead", attributes={}, tags={}, owner=None, topic="dead")
        queue = await make_queue_led_by_another_than_the_first(nodes, {"RedrivePolicy": POLICY})
        way = await through(nodes, queue)
        await way.send(queue, [outgoing("poison")])
        await die(nodes, queue)
        assert not await receive(nodes, queue), "it has gone where it should"
        await changes.delete("dead")
        await way.send(queue, [outgoing("poison")])
        await die(nodes, queue)
        assert bodies(await receive(nodes, queue, visibility_ms=1_000)) == ["poison"], "once more than it may"
        await changes.create("dead", attributes={}, tags={}, owner=None, topic="dead")
        await asyncio.sleep(5)
        assert not await receive(nodes, queue)

    in_a_cluster(story)


def test_dead_letters_have_no_target_when_kafka_deletes_its_topic() -> None:
    async def story(nodes: Nodes) -> None:
        await make_queue(nodes, "dead")
        queue = await make_queue_led_by_another_than_the_first(nodes, {"RedrivePolicy": POLICY})
        hosted = nodes[leader_of(nodes, queue)].queues.find(queue, 0)
        assert hosted.settings.dead_letters is not None
        async with nodes.client() as client:
            await Admin(client).delete_topics(["dead"])
        await nodes.until(lambda: hosted.settings.dead_letters is None)

    in_a_cluster(story)


def test_whoever_leads_knows_when_a_queue_was_purged() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_queue(nodes, "jobs")
        await (await through(nodes, queue)).purge(queue)
        nodes.members[leader_of(nodes, queue)].kill()
        await nodes.until(lambda: serving(nodes, queue) is not None)
        way = await through(nodes, queue)
        with pytest.raises(PurgeInProgress):
            await way.purge(queue)
        await asyncio.sleep(61)
        await way.purge(queue)

    in_a_cluster(story)


def test_what_became_of_a_message_can_be_seen_without_taking_it() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_queue(nodes, "jobs")
        way = await through(nodes, queue)
        sent = await way.send(queue, [outgoing("one"), outgoing("two"), outgoing("three")])
        one, two = await receive(nodes, queue, 2)
        await way.delete(queue, [one.receipt])
        assert [seen.state for seen in await way.peek(queue, count_max=10)] == ["in flight", "visible"]
        looked = [await way.look_at(queue, 0, each.offset) for each in sent if isinstance(each, Sent)]
        assert [seen.state if seen else None for seen in looked] == ["settled", "in flight", "visible"]
        assert looked[1] is not None
        assert looked[1].attempt == two.receipt.attempt
        assert await way.look_at(queue, 0, 0) is None, "a snapshot is no message"

    in_a_cluster(story, nodes=1)


def test_a_look_shows_no_more_than_its_bytes_and_never_nothing() -> None:
    """Far from the leader, too: whatever is shown goes over the link first."""

    async def story(nodes: Nodes) -> None:
        queue = await make_queue(nodes, "jobs", partitions=2)
        big = Outgoing(body=bytes(QUEUE_PEEK_BYTES_MAX // 4), sent_at_ms=1_800_000_000_000)
        for _ in range(12):
            assert isinstance((await nodes[0].to_queues.send(queue, [big]))[0], Sent)
        for way in (nodes[0].to_queues, nodes[1].to_queues):
            shown = await way.peek(queue, count_max=100)
            assert 4 <= len(shown) <= 5
            assert len(await way.peek(queue, count_max=1)) == 1

    in_a_cluster(story, nodes=2)


def test_places_that_no_message_has_are_looked_at_and_settled_in_vain_wherever_the_leader_is() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_queue(nodes, "jobs")
        leader = leader_of(nodes, queue)
        for way in (nodes[leader].to_queues, nodes[1 - leader].to_queues):
            await way.send(queue, [outgoing("one")])
            for partition, offset in ((0, 1_000_000), (0, 2**63 - 1), (1, 0), (2**16 - 1, 0)):
                assert await way.look_at(queue, partition, offset) is None
            wild = [Receipt(0, 2**63 - 1, 2**63 - 1), Receipt(0, 0, 1), Receipt(2**32 - 1, 0, 1)]
            for outcomes in (
                await way.delete(queue, wild),
                await way.change_visibility(queue, [(receipt, 1_000) for receipt in wild]),
            ):
                assert all(outcome is None or isinstance(outcome, RopewalkError) for outcome in outcomes)
            await way.rewind(queue, to_ms=2**63 - 1)
            await way.send(queue, [outgoing("two")])
            (delivered,) = await way.receive(
                queue, count_max=10, visibility_ms=30_000, wait_ms=5_000, hold=Client()
            )
            await way.delete(queue, [delivered.receipt])

    in_a_cluster(story, nodes=2)


def test_what_is_deleted_leaves_the_log_and_never_the_last_snapshot() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_queue(nodes, "jobs")
        way = await through(nodes, queue)
        await way.send(queue, [outgoing(f"m{number}") for number in range(50)])
        while delivered := await receive(nodes, queue):
            outcomes = await way.delete(queue, [each.receipt for each in delivered])
            assert not any(isinstance(each, RopewalkError) for each in outcomes)
        leader = nodes[leader_of(nodes, queue)]
        partition = leader.partitions.find("jobs", 0)
        await nodes.until(lambda: partition.log.start_offset > 50)
        place = partition.log.places.last_of(queue.queue_id)
        assert place is not None
        assert partition.log.start_offset <= place.start_offset
        end_offset = partition.log.end_offset
        await asyncio.sleep(60)
        assert partition.log.end_offset == end_offset, "an idle queue writes nothing"
        await way.send(queue, [outgoing("after")])
        nodes.members[leader_of(nodes, queue)].kill()
        assert bodies(await receive(nodes, queue)) == ["after"]

    in_a_cluster(story)


def test_of_a_fifo_message_it_is_told_which_one_of_its_group_holds_it_up() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make_queue(nodes, "steps.fifo")
        way = await through(nodes, queue)
        sent = [(await way.send(queue, [outgoing(f"m{n}", group=f"g{n % 2}")]))[0] for n in range(4)]
        offsets = [each.offset for each in sent if isinstance(each, Sent)]
        for member in nodes.members.values():
            seen = [await member.node.to_queues.look_at(queue, 0, offset) for offset in offsets]
            assert [each.state if each else None for each in seen] == ["unread"] * 4
        await receive(nodes, queue, 1)
        for member in nodes.members.values():
            seen = [await member.node.to_queues.look_at(queue, 0, offset) for offset in offsets]
            told = [(each.state, each.behind_offset) for each in seen if each]
            assert told == [("in flight", -1), ("visible", -1), ("visible", offsets[0]), ("visible", -1)]

    in_a_cluster(story)


def test_a_group_of_an_adopted_topic_is_in_one_partition_whoever_sends() -> None:
    groups = [f"ship {number}" for number in range(8)]

    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await Admin(client).create_topics([NewTopic("orders", 4, 1)])
            queue = await nodes[0].queue_changes.create(
                "orders.fifo", attributes={}, tags={}, owner=None, topic="orders"
            )
            await nodes.until(lambda: all(serving(nodes, queue, index) for index in range(4)))
            for group in groups:
                record = Record(timestamp=EPOCH_MS, key=group.encode(), value=b"by Kafka")
                partition = Partitioner().choose(group.encode(), 4)
                await client.produce("orders", partition, build([record]))
                way = await through(nodes, queue)
                (sent,) = await way.send(queue, [outgoing(f"by SQS {group}", group=group)])
                assert isinstance(sent, Sent)
                assert sent.partition == partition
        given: list[bytes] = []
        while delivered := await receive(nodes, queue, 1):
            given += [each.record.key or b"" for each in delivered]
        assert sorted(given) == sorted(group.encode() for group in groups), "one of each, and none beside it"

    in_a_cluster(story)
