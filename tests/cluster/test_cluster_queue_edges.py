"""Queues where a cluster is in trouble: leaders that hang, disks that are full, too few replicas, queues that are deleted while leaders change.

Whoever asks gets a refusal that SDKs repeat, in a time that they wait; nothing is hidden for good, and other queues go on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus

import pytest

from ropewalk.base.errors import RopewalkError
from ropewalk.base.limits import QUEUE_CALL_MS_MAX
from ropewalk.client.administration.admin import Admin, NewTopic, ResourceKind
from ropewalk.client.producer import Producer
from ropewalk.metadata.queues import Queue
from ropewalk.queues.messages import Delivered, Outgoing, Sent
from ropewalk.records.record import Record
from ropewalk.sim.machines.world import EPOCH_MS
from ropewalk.sqs.errors import fault_of
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_full_disks import SOON, fill, make_room
from tests.cluster.test_cluster_queue_messages import (
    leader_of,
    make,
    messages_at,
    others,
    receive,
    send,
    texts_of,
)

KINDS = [("work", ""), ("work.fifo", "g")]
PATIENCE_S = QUEUE_CALL_MS_MAX / 1000 + 1


def message(text: str, group: str) -> Outgoing:
    return Outgoing(
        body=text.encode(), sent_at_ms=EPOCH_MS, group=group, deduplication_id=text if group else ""
    )


async def refusal_of(asked: Awaitable[object]) -> RopewalkError | None:
    """What a request was refused with: it is raised, or is the outcome of its only entry."""
    try:
        answer = await asked
    except RopewalkError as error:
        return error
    first = answer[0] if isinstance(answer, list | tuple) and answer else None
    return first if isinstance(first, RopewalkError) else None


def is_retried(refusal: RopewalkError | None) -> bool:
    """Whether SDKs ask again by themselves."""
    return refusal is not None and fault_of(refusal).status is HTTPStatus.SERVICE_UNAVAILABLE


async def send_until_taken(nodes: Nodes, node_id: int, queue: Queue, text: str, group: str = "") -> None:
    while True:
        try:
            (outcome,) = await messages_at(nodes, node_id).send(queue, [message(text, group)])
        except RopewalkError:
            outcome = RopewalkError("it was refused")
        if isinstance(outcome, Sent):
            return
        await asyncio.sleep(0.1)


async def delete_until_gone(nodes: Nodes, node_id: int, queue: Queue, delivered: Sequence[Delivered]) -> None:
    """As SDKs do: once more, for as long as they are told to."""
    receipts = [each.receipt for each in delivered]
    while any(outcomes := await messages_at(nodes, node_id).delete(queue, receipts)):
        assert all(each is None or is_retried(each) for each in outcomes), outcomes
        await asyncio.sleep(0.1)


@pytest.mark.parametrize(("name", "group"), KINDS)
def test_whoever_asks_a_leader_that_hangs_is_told_in_time_to_come_again(name: str, group: str) -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, name)
        leader = leader_of(nodes, queue)
        asking = next(each for each in others(leader) if each != 0)
        await send(nodes, asking, queue, "a", "b", group=group)
        delivered = await receive(nodes, asking, queue, visibility_ms=60_000)
        way = messages_at(nodes, asking)
        nodes[leader].pause()
        asked: list[Callable[[], Awaitable[object]]] = [
            lambda: way.send(queue, [message("c", group)]),
            lambda: way.delete(queue, [delivered[0].receipt]),
            lambda: way.change_visibility(queue, [(delivered[1].receipt, 30_000)]),
        ]
        for each in asked:
            began_s = nodes.world.now_s
            assert is_retried(await refusal_of(each()))
            assert nodes.world.now_s - began_s < PATIENCE_S
        nodes[leader].resume()
        await delete_until_gone(nodes, asking, queue, delivered)

    in_a_cluster(story)


def test_a_leader_that_hangs_keeps_nobody_from_what_others_have() -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, "work", 4)
        leaders = [leader_of(nodes, queue, index) for index in range(4)]
        hanging = next(each for each in leaders if each != 0)
        asking = next(each for each in (2, 1) if each != hanging)
        waiting = asyncio.ensure_future(receive(nodes, asking, queue, wait_ms=20_000))
        await asyncio.sleep(2)
        nodes[hanging].pause()
        began_s = nodes.world.now_s
        kept = [index for index in range(4) if leaders[index] != hanging]
        while True:
            way = messages_at(nodes, asking)
            (outcome,) = await way.send(queue, [message("a", "")])
            if isinstance(outcome, Sent) and outcome.partition in kept:
                break
        assert texts_of(await waiting) == ["a"]
        assert nodes.world.now_s - began_s < 5 * PATIENCE_S
        nodes[hanging].resume()

    in_a_cluster(story)


@pytest.mark.parametrize(("name", "group"), KINDS)
def test_a_poll_that_waits_at_a_leader_that_was_cut_off_goes_over_to_the_next(name: str, group: str) -> None:
    """No connection breaks: packets are lost, as with a machine that stands still. The poll does not wait for the old leader's silence to end."""

    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, name)
        leader = leader_of(nodes, queue)
        asking, third = sorted(others(leader), reverse=True)
        waiting = asyncio.ensure_future(receive(nodes, asking, queue, wait_ms=20_000))
        await asyncio.sleep(1)
        names = [machine.name for machine in nodes.etcd.machines] + [f"node{each}" for each in others(leader)]
        for other in names:
            nodes.world.network.partition(f"node{leader}", other)
        await nodes.until(lambda: nodes[asking].image.topic(name).partitions[0].leader not in (None, leader))
        assert not waiting.done()
        began_s = nodes.world.now_s
        await send_until_taken(nodes, third, queue, "a", group)
        assert texts_of(await waiting) == ["a"]
        assert nodes.world.now_s - began_s < 5

    in_a_cluster(story, with_etcd=True)


async def receive_when_it_can(nodes: Nodes, node_id: int, queue: Queue) -> Sequence[Delivered]:
    while True:
        try:
            return await receive(nodes, node_id, queue, wait_ms=5_000)
        except RopewalkError as error:
            if not is_retried(error):
                raise
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("through_the_leader", [True, False])
@pytest.mark.parametrize(("name", "group"), KINDS)
def test_a_queue_on_a_full_disk_refuses_for_now_and_hides_nothing(
    name: str, group: str, through_the_leader: bool
) -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, name)
        leader = leader_of(nodes, queue)
        elsewhere = next(
            each
            for each in [await make(nodes, f"other{n}") for n in range(4)]
            if leader_of(nodes, each) != leader
        )
        asking = leader if through_the_leader else others(leader)[0]
        await send(nodes, asking, queue, "a", "b", "c", group=group)
        (first, *_) = await receive(nodes, asking, queue, visibility_ms=10_000)
        fill(nodes, leader)
        way = messages_at(nodes, asking)
        asked: list[Callable[[], Awaitable[object]]] = [
            lambda: way.send(queue, [message("d", group)]),
            lambda: way.delete(queue, [first.receipt]),
            lambda: way.change_visibility(queue, [(first.receipt, 1_000)]),
        ]
        for each in asked:
            began_s = nodes.world.now_s
            refusal = await refusal_of(each())
            assert is_retried(refusal), refusal
            assert nodes.world.now_s - began_s < PATIENCE_S
        node_id = leader_of(nodes, elsewhere)
        await send_until_taken(
            nodes, node_id, elsewhere, "x"
        )  # whose follower on the full disk falls out of sync
        assert "x" in texts_of(await receive(nodes, node_id, elsewhere))
        await asyncio.sleep(
            20
        )  # what was received is due again, and cannot be given out where that must be written
        make_room(nodes)
        seen: set[str] = set()
        while len(seen) < 3:
            delivered = await receive_when_it_can(nodes, asking, queue)
            await delete_until_gone(nodes, asking, queue, delivered)
            seen |= set(texts_of(delivered))
        assert seen == {"a", "b", "c"}
        await send_until_taken(nodes, asking, queue, "e", group)

    in_a_cluster(story, SOON)


@pytest.mark.parametrize("through_the_leader", [True, False])
@pytest.mark.parametrize(("name", "group"), KINDS)
def test_a_queue_with_too_few_replicas_refuses_for_now_and_hides_nothing(
    name: str, group: str, through_the_leader: bool
) -> None:
    async def story(nodes: Nodes) -> None:
        queue = await make(nodes, name)
        leader = leader_of(nodes, queue)
        lost = next(each for each in others(leader) if each != 0)
        asking = leader if through_the_leader else next(each for each in others(leader) if each != lost)
        for text in ("a", "b"):
            await send_until_taken(nodes, asking, queue, text, group)
        (first, *_) = await receive(nodes, asking, queue, visibility_ms=10_000)
        await nodes.members[lost].stop()
        await nodes.until(lambda: lost not in nodes[leader].image.topic(name).partitions[0].isr)
        way = messages_at(nodes, asking)
        asked: list[Callable[[], Awaitable[object]]] = [
            lambda: way.send(queue, [message("d", group)]),
            lambda: way.delete(queue, [first.receipt]),
            lambda: way.change_visibility(queue, [(first.receipt, 1_000)]),
        ]
        for each in asked:
            began_s = nodes.world.now_s
            refusal = await refusal_of(each())
            assert is_retried(refusal), refusal
            assert nodes.world.now_s - began_s < PATIENCE_S
        await nodes.members[lost].start()
        seen: set[str] = set()
        while len(seen) < 2:
            delivered = await receive_when_it_can(nodes, asking, queue)
            await delete_until_gone(nodes, asking, queue, delivered)
            seen |= set(texts_of(delivered))
        assert seen == {"a", "b"}

    in_a_cluster(story, "min.insync.replicas=3", SOON)


def test_an_adopted_queue_that_is_deleted_while_its_leader_changes_is_gone_everywhere_and_its_topic_stays() -> (
    None
):
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await Admin(client).create_topics([NewTopic("orders", 1, 3)])
            await Producer(client, "orders").send([Record(timestamp=EPOCH_MS, value=b"a")], partition=0)
        queue = await nodes[0].queue_changes.create(
            "work", attributes={}, tags={}, owner=None, topic="orders"
        )
        leader = leader_of(nodes, queue)
        left = others(leader)
        await nodes.until(lambda: all(nodes[each].image.queues.get("work") for each in left))
        waiting = asyncio.ensure_future(receive(nodes, left[0], queue, wait_ms=20_000))
        await asyncio.sleep(1)
        nodes.members[leader].kill()
        while is_retried(await refusal_of(nodes[left[0]].queue_changes.delete("work"))):
            await asyncio.sleep(0.1)
        await refusal_of(waiting)  # with the message, with nothing, or with a refusal: it ends
        await nodes.until(lambda: all(nodes[each].image.queues.get("work") is None for each in left))
        await nodes.until(lambda: not any(nodes[each].queues.of_queue(queue) for each in left))
        await nodes.until(lambda: nodes[left[0]].image.topic("orders").partitions[0].leader in left)

    in_a_cluster(story, with_etcd=True)


def test_doors_make_the_same_queues_whatever_their_own_configuration_says() -> None:
    """What the first controller's says counts, and changes for all at once."""

    async def story(nodes: Nodes) -> None:
        rules = {node_id: nodes[node_id].broker_settings for node_id in range(3)}
        assert {each.sqs_account for each in rules.values()} == {"111111111111"}
        assert {each.sqs_fifo_partitions for each in rules.values()} == {4}
        async with nodes.client() as client:
            await Admin(client).alter_settings(ResourceKind.BROKER, "", {"sqs.fifo.partitions": "2"})
        await nodes.until(
            lambda: {nodes[each].broker_settings.sqs_fifo_partitions for each in range(3)} == {2}
        )

    in_a_cluster(
        story,
        differing={
            0: ("sqs.account=111111111111", "sqs.fifo.partitions=4"),
            1: ("sqs.account=222222222222", "sqs.fifo.partitions=8"),
        },
    )
