"""Move tasks on several nodes: every message arrives once, where it came from or where it is sent, whoever leads meanwhile."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ropewalk.base.errors import BatchExceedsSegment, MoveTaskOver, MoveTaskRunning, RopewalkError, Throttled
from ropewalk.base.state_machine import Command
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.queues.arrivals import Arrivals
from ropewalk.broker.queues.headers import (
    MESSAGE_ID,
    MOVED_FROM,
    RECEIVE_COUNT,
    SOURCE_PARTITION,
    SOURCE_QUEUE,
)
from ropewalk.broker.queues.hosted_queue import Asked
from ropewalk.broker.queues.opened import header_of
from ropewalk.broker.queues.tasks import NO_ORIGIN, NO_TARGET, NOT_TAKEN
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.metadata.queues import MoveTask, Queue
from ropewalk.queues.commands import EndMove
from ropewalk.queues.messages import Outgoing, Shipment
from ropewalk.records.record import Record, build
from ropewalk.sim.machines.world import EPOCH_MS
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_hosted_queues import (
    bodies,
    leader_of,
    make_queue,
    outgoing,
    receive,
    serving,
    through,
)


def policy(target: str) -> dict[str, str]:
    arn = f"arn:aws:sqs:us-east-1:000000000000:{target}"
    return {"RedrivePolicy": f'{{"deadLetterTargetArn":"{arn}","maxReceiveCount":1}}'}


def letter(body: str, source: str | None, *, group: str = "") -> Outgoing:
    """As it lies in a dead-letter queue."""
    sent = outgoing(body, group=group)
    headers: tuple[tuple[str, bytes | None], ...] = ()
    if source is not None:
        headers = (
            (SOURCE_QUEUE, source.encode()),
            (SOURCE_PARTITION, b"0"),
            (RECEIVE_COUNT, b"3"),
            (MESSAGE_ID, bytes(16)),
        )
    return Outgoing(
        body=sent.body,
        headers=(*sent.headers, *headers),
        sent_at_ms=sent.sent_at_ms,
        group=sent.group,
        deduplication_id=sent.deduplication_id,
    )


async def dead_letters(nodes: Nodes, queue: Queue, letters: Sequence[Outgoing]) -> None:
    way = await through(nodes, queue)
    for start in range(0, len(letters), 20):
        outcomes = await way.send(queue, letters[start : start + 20])
        assert not [each for each in outcomes if isinstance(each, RopewalkError)]


async def ended(nodes: Nodes, queue: Queue, task: MoveTask) -> MoveTask:
    def look() -> MoveTask | None:
        for member in nodes.members.values():
            if member.machine.has_started:
                for each in member.node.cluster.image.queues.moves_of(queue.queue_id):
                    if each.task_id == task.task_id and each.ended_at_ms is not None:
                        return each
        return None

    await nodes.until(lambda: look() is not None)
    found = look()
    assert found is not None
    return found


async def everything(nodes: Nodes, queue: Queue) -> list[str]:
    """What can be received, each once."""
    seen: list[str] = []
    for _ in range(3):
        while batch := await receive(nodes, queue, visibility_ms=600_000):
            seen += bodies(batch)
        await asyncio.sleep(1)
    return seen


def test_messages_go_back_each_to_where_it_came_from() -> None:
    async def story(nodes: Nodes) -> None:
        dead = await make_queue(nodes, "dead", partitions=2)
        jobs = await make_queue(nodes, "jobs", attributes=policy("dead"))
        mail = await make_queue(nodes, "mail", partitions=2, attributes=policy("dead"))
        await dead_letters(nodes, dead, [letter(f"j{n}", "jobs") for n in range(60)])
        await dead_letters(nodes, dead, [letter(f"m{n}", "mail") for n in range(60)])
        task = await nodes[0].queue_changes.start_move_task("dead", to_move_count=120)
        over = await ended(nodes, dead, task)
        assert (over.status, over.moved_count, over.reason) == ("COMPLETED", 120, None)
        assert sorted(await everything(nodes, mail)) == sorted(f"m{n}" for n in range(60))
        (first, *rest) = await receive(nodes, jobs)
        assert first.receive_count == 1
        kept = [header_of(first.record, name) for name in (SOURCE_QUEUE, MESSAGE_ID, RECEIVE_COUNT)]
        assert kept == [None, None, None], "it is a new message"
        assert header_of(first.record, MOVED_FROM) == b"dead"
        assert sorted([*bodies([first, *rest]), *await everything(nodes, jobs)]) == sorted(
            f"j{n}" for n in range(60)
        )
        assert not await everything(nodes, dead)

    in_a_cluster(story)


def test_a_task_goes_on_where_it_was_when_the_leader_dies() -> None:
    async def story(nodes: Nodes) -> None:
        dead = await make_queue(nodes, "dead")
        jobs = await make_queue(nodes, "jobs", attributes=policy("dead"))
        await dead_letters(nodes, dead, [letter(f"j{n}", "jobs") for n in range(150)])
        leader = leader_of(nodes, dead)
        other = next(node_id for node_id in nodes.members if node_id != leader)
        changes = nodes[other].queue_changes
        task = await changes.start_move_task("dead", messages_per_second_max=20, to_move_count=150)
        await asyncio.sleep(2)
        nodes.members[leader].kill()
        await asyncio.sleep(4)
        way = await through(nodes, dead)
        assert 0 < await way.moved_count(dead, task.task_id) < 150
        over = await ended(nodes, dead, task)
        assert (over.status, over.moved_count) == ("COMPLETED", 150)
        assert sorted(await everything(nodes, jobs)) == sorted(f"j{n}" for n in range(150))
        assert not await everything(nodes, dead)

    in_a_cluster(story)


def test_what_had_arrived_when_the_leader_died_is_not_moved_again() -> None:
    async def story(nodes: Nodes) -> None:
        dead = await make_queue(nodes, "dead")
        jobs = await make_queue(nodes, "jobs", attributes=policy("dead"))
        await dead_letters(nodes, dead, [letter(f"j{n}", "jobs") for n in range(10)])
        source, target = nodes[0].queues.find(dead, 0), nodes[0].partitions.find("jobs", 0)
        end_offset, ask = target.log.end_offset, source.ask

        def refuse_the_end(command: Command[Any]) -> Asked[Any]:
            if isinstance(command, EndMove):
                raise Throttled("not now")
            return ask(command)

        setattr(source, "ask", refuse_the_end)  # noqa: B010
        task = await nodes[0].queue_changes.start_move_task("dead")
        await nodes.until(lambda: target.high_watermark >= end_offset + 10)
        nodes.members[0].kill()
        await nodes.members[0].start()
        await nodes.until(lambda: serving(nodes, dead) is not None and serving(nodes, jobs) is not None)
        over = await ended(nodes, dead, task)
        assert (over.status, over.moved_count) == ("COMPLETED", 10)
        assert await everything(nodes, jobs) == [f"j{n}" for n in range(10)]
        assert not await everything(nodes, dead)

    in_a_cluster(story, nodes=1)


def test_a_message_without_an_origin_fails_the_task_and_stays() -> None:
    async def story(nodes: Nodes) -> None:
        dead = await make_queue(nodes, "dead")
        jobs = await make_queue(nodes, "jobs", attributes=policy("dead"))
        await dead_letters(nodes, dead, [letter("a", "jobs"), letter("sent here", None), letter("b", "jobs")])
        changes = nodes[0].queue_changes
        over = await ended(nodes, dead, await changes.start_move_task("dead"))
        assert (over.status, over.moved_count, over.reason) == ("FAILED", 1, NO_ORIGIN)
        assert await everything(nodes, jobs) == ["a"]
        over = await ended(nodes, dead, await changes.start_move_task("dead", target="jobs"))
        assert (over.status, over.moved_count, over.reason) == ("COMPLETED", 2, None)
        assert sorted(await everything(nodes, jobs)) == ["b", "sent here"]

    in_a_cluster(story, nodes=1)


def test_a_task_ends_when_it_is_cancelled_or_its_target_is_deleted() -> None:
    async def story(nodes: Nodes) -> None:
        dead = await make_queue(nodes, "dead", partitions=2)
        await make_queue(nodes, "jobs", attributes=policy("dead"))
        await make_queue(nodes, "other")
        for index in range(2):
            await nodes[0].queues.find(dead, index).send([letter(f"{index}-{n}", "jobs") for n in range(20)])
        changes = nodes[0].queue_changes
        task = await changes.start_move_task("dead", messages_per_second_max=2)
        with pytest.raises(MoveTaskRunning):
            await changes.start_move_task("dead")
        await asyncio.sleep(3)
        await changes.cancel_move_task("dead", task.task_id)
        over = await ended(nodes, dead, task)
        assert over.status == "CANCELLED"
        assert 2 <= over.moved_count <= 10
        with pytest.raises(MoveTaskOver):
            await changes.cancel_move_task("dead", task.task_id)
        again = await changes.start_move_task("dead", target="other", messages_per_second_max=2)
        await asyncio.sleep(2)
        await changes.delete("other")
        failed = await ended(nodes, dead, again)
        assert (failed.status, failed.reason) == ("FAILED", NO_TARGET)
        totals = await (await through(nodes, dead)).totals(dead)
        assert totals.visible_count == 40 - over.moved_count - failed.moved_count

    in_a_cluster(story, nodes=1)


def test_groups_keep_their_order_on_the_way_back() -> None:
    async def story(nodes: Nodes) -> None:
        dead = await make_queue(nodes, "dead.fifo")
        jobs = await make_queue(nodes, "jobs.fifo", attributes=policy("dead.fifo"))
        letters = [letter(f"{group}{n}", "jobs.fifo", group=group) for n in range(20) for group in "ab"]
        await dead_letters(nodes, dead, letters)
        over = await ended(nodes, dead, await nodes[0].queue_changes.start_move_task("dead.fifo"))
        assert (over.status, over.moved_count) == ("COMPLETED", 40)
        seen = await everything_in_order(nodes, jobs)
        for group in "ab":
            assert [each for each in seen if each[0] == group] == [f"{group}{n}" for n in range(20)]

    in_a_cluster(story, nodes=1)


async def everything_in_order(nodes: Nodes, queue: Queue) -> list[str]:
    """Received and deleted, as long as there is something."""
    way, seen = await through(nodes, queue), []
    while batch := await receive(nodes, queue, 7):
        seen += bodies(batch)
        await way.delete(queue, [each.receipt for each in batch])
    return seen


def test_deleting_the_source_ends_its_task() -> None:
    async def story(nodes: Nodes) -> None:
        dead = await make_queue(nodes, "dead")
        await make_queue(nodes, "jobs", attributes=policy("dead"))
        await dead_letters(nodes, dead, [letter(f"j{n}", "jobs") for n in range(20)])
        changes = nodes[0].queue_changes
        await changes.start_move_task("dead", messages_per_second_max=1)
        await asyncio.sleep(2)
        await changes.change("jobs", {"RedrivePolicy": None})
        await changes.delete("dead")
        await asyncio.sleep(3)
        again = await make_queue(nodes, "dead")
        assert not nodes[0].cluster.image.queues.moves_of(again.queue_id)

    in_a_cluster(story, nodes=1)


def test_a_message_that_its_target_cannot_take_fails_the_task_and_those_before_it_are_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(nodes: Nodes) -> None:
        dead = await make_queue(nodes, "dead")
        jobs = await make_queue(nodes, "jobs", attributes=policy("dead"))
        large = letter("x" * 5_000, "jobs")
        append = Arrivals._append

        def append_small_ones(
            self: Arrivals, target: Partition, shipment: Shipment, skipped_count: int
        ) -> None:
            if any(len(value or b"") > 2_000 for _, value, _, _ in shipment.entries):
                raise BatchExceedsSegment("too large for a segment")
            append(self, target, shipment, skipped_count)

        monkeypatch.setattr(Arrivals, "_append", append_small_ones)
        await dead_letters(nodes, dead, [*[letter(f"j{n}", "jobs") for n in range(40)], large])
        await dead_letters(nodes, dead, [letter("behind it", "jobs")])
        over = await ended(nodes, dead, await nodes[0].queue_changes.start_move_task("dead"))
        assert (over.status, over.moved_count, over.reason) == ("FAILED", 40, NOT_TAKEN)
        assert sorted(await everything(nodes, jobs)) == sorted(f"j{n}" for n in range(40))
        assert [len(each) for each in await everything(nodes, dead)] == [5_000, 9], "nothing is dropped"

    in_a_cluster(story, nodes=1)


def test_a_dead_letter_of_an_adopted_topic_goes_back_to_the_partition_where_its_group_is() -> None:
    """Its producer had chosen that in its own way."""

    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await Admin(client).create_topics([NewTopic("orders", 4, 1)])
            await make_queue(nodes, "dead.fifo")
            changes = nodes[0].queue_changes
            orders = await changes.create(
                "orders.fifo", attributes=policy("dead.fifo"), tags={}, owner=None, topic="orders"
            )
            dead = nodes[0].image.queues.get("dead.fifo")
            assert dead is not None
            await nodes.until(lambda: all(serving(nodes, orders, index) for index in range(4)))
            for index in range(4):
                record = Record(timestamp=EPOCH_MS, key=b"%d" % (3 - index), value=b"%d" % index)
                await client.produce("orders", index, build([record]))
        got = 0
        while got < 4:
            got += len(await receive(nodes, orders, visibility_ms=1_000, wait_ms=1_000))
        hosted = [member.node.queues.of_queue(dead) for member in nodes.members.values()]
        await nodes.until(
            lambda: (
                sum(
                    each.serving().known_count + each.unread_message_count()
                    for part in hosted
                    for each in part
                )
                == 4
            )
        )
        await ended(nodes, dead, await changes.start_move_task("dead.fifo", to_move_count=4))
        back: list[tuple[int, bytes]] = []
        while len(back) < 4:
            delivered = await receive(nodes, orders, visibility_ms=600_000, wait_ms=1_000)
            back += [(each.receipt.partition, each.record.value or b"") for each in delivered]
        assert sorted(back) == [(index, b"%d" % index) for index in range(4)]

    in_a_cluster(story)
