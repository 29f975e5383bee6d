"""The client of queues against a server in memory, in virtual time: what is sent, held, given back, and tried again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from ropewalk.aio import Outgoing, Queue
from ropewalk.base.errors import RopewalkError
from ropewalk.client.errors import ConnectionLost, Misuse, Unreachable
from ropewalk.client.queues.errors import (
    HandleRefused,
    NotAllSent,
    QueueExistsOtherwise,
    QueueMissing,
    QueueRefused,
)
from ropewalk.client.queues.sending import AttributeValue
from ropewalk.runtime.ports import SystemClientPorts
from ropewalk.sim.machines.world import World
from tests.client.fake_queues import FakeQueue, FakeQueues, Fault

T = TypeVar("T")

ENDPOINT = "http://node:9324"


class Shop:
    """A server with the queues `jobs` and `jobs.fifo`, and a client's machine."""

    def __init__(self, world: World) -> None:
        self.ports = SystemClientPorts(
            world.machine("visitor").clock, world.rng_for("visitor"), world.network.host("visitor")
        )
        self.server = FakeQueues(world.machine("node").clock)
        for name in ("jobs", "jobs.fifo"):
            self.server.queues[name] = FakeQueue(name, {"FifoQueue": "true"} if "." in name else {})

    def queue(self, name: str = "jobs", *, create: bool = False, request_timeout_ms: int = 5_000) -> Queue:
        return Queue(
            name,
            endpoint=ENDPOINT,
            access_key="a",
            secret_key="b",
            create=create,
            request_timeout_ms=request_timeout_ms,
            ports=self.ports,
        )

    def bodies(self, name: str = "jobs") -> list[str]:
        return [message.entry["MessageBody"] for message in self.server.queues[name].messages]


def in_the_shop(story: Callable[[Shop], Awaitable[T]]) -> T:
    async def main(world: World) -> T:
        shop = Shop(world)
        await shop.server.start(world.network.host("node"), "node", 9324)
        return await story(shop)

    with World(0) as world:
        return world.run(main(world), limit_s=100_000)


def test_a_message_comes_out_as_it_went_in() -> None:
    async def story(shop: Shop) -> None:
        sent: dict[str, AttributeValue] = {"text": "ü", "whole": 7, "part": 0.5, "bytes": b"\x00\xff"}
        async with shop.queue() as queue:
            receipt = await queue.send("rope", attributes=sent, group="dock")
            (message,) = await queue.receive()
            assert (message.body, message.attributes, message.group) == ("rope", sent, "dock")
            assert message.message_id == receipt.message_id
            assert message.receive_count == 1
            await message.delete()
        assert shop.bodies() == []

    in_the_shop(story)


def test_every_request_is_signed_for_the_host_it_goes_to() -> None:
    async def story(shop: Shop) -> None:
        async with shop.queue() as queue:
            await queue.send("rope")
        for headers in shop.server.headers:
            assert headers["host"] == "node:9324"
            assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=a/")
            assert "SignedHeaders=content-type;host;x-amz-date;x-amz-target" in headers["authorization"]

    in_the_shop(story)


def test_many_messages_travel_in_tens_and_in_mebibytes() -> None:
    async def story(shop: Shop) -> None:
        large = "x" * 400_000
        async with shop.queue() as queue:
            sent = await queue.send_many([*map(str, range(23)), large, large, large])
        batches = [fields["Entries"] for target, fields in shop.server.asked if "SendMessageBatch" in target]
        assert [len(batch) for batch in batches] == [10, 10, 5, 1]
        assert shop.bodies() == [*map(str, range(23)), large, large, large]
        assert [each.message_id for each in sent] == [f"m-{number}" for number in range(1, 27)]

    in_the_shop(story)


def test_of_several_messages_each_ones_fate_is_told() -> None:
    async def story(shop: Shop) -> None:
        shop.server.refused_bodies = {"bad"}
        async with shop.queue() as queue:
            with pytest.raises(NotAllSent, match="1 of 3 messages were not sent") as caught:
                await queue.send_many(["a", "bad", Outgoing(body="c")])
        fates = [type(outcome).__name__ for outcome in caught.value.outcomes]
        assert fates == ["Sent", "QueueRefused", "Sent"]
        assert shop.bodies() == ["a", "c"]

    in_the_shop(story)


def test_nothing_is_sent_to_a_fifo_queue_behind_a_message_that_was_refused() -> None:
    async def story(shop: Shop) -> None:
        shop.server.refused_bodies = {"9"}
        messages = [Outgoing(body=str(n), group="g", deduplication_id=str(n)) for n in range(12)]
        async with shop.queue("jobs.fifo") as queue:
            with pytest.raises(NotAllSent) as caught:
                await queue.send_many(messages)
        assert [isinstance(outcome, RopewalkError) for outcome in caught.value.outcomes] == [False] * 9 + [
            True
        ] * 3
        assert shop.bodies("jobs.fifo") == [str(n) for n in range(9)]

    in_the_shop(story)


@pytest.mark.parametrize(
    ("fault", "name", "sent_count"),
    [
        pytest.param(Fault.BUSY, "jobs", 1, id="who is busy has done nothing"),
        pytest.param(Fault.BUSY, "jobs.fifo", 1, id="who is busy has done nothing, FIFO"),
        pytest.param(
            Fault.LOST, "jobs.fifo", 1, id="a lost answer is asked for again where the server knows the first"
        ),
        pytest.param(Fault.BROKEN, "jobs.fifo", 1, id="an unclear failure likewise"),
        pytest.param(Fault.DROPPED, "jobs.fifo", 1, id="a lost request likewise"),
    ],
)
def test_a_send_is_repeated_where_that_cannot_send_twice(fault: Fault, name: str, sent_count: int) -> None:
    async def story(shop: Shop) -> None:
        shop.server.fail_next("SendMessage", fault)
        async with shop.queue(name) as queue:
            await queue.send("rope", group="g", deduplication_id="d" if queue.is_fifo else None)
        assert shop.server.actions().count("SendMessage") == 2
        assert len(shop.bodies(name)) == sent_count

    in_the_shop(story)


@pytest.mark.parametrize(
    ("fault", "error"),
    [(Fault.LOST, ConnectionLost), (Fault.DROPPED, ConnectionLost), (Fault.BROKEN, QueueRefused)],
)
def test_a_send_that_may_have_arrived_is_not_repeated(fault: Fault, error: type[RopewalkError]) -> None:
    async def story(shop: Shop) -> None:
        shop.server.fail_next("SendMessage", fault)
        async with shop.queue() as queue:
            with pytest.raises(error):
                await queue.send("rope")
        assert shop.server.actions().count("SendMessage") == 1

    in_the_shop(story)


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("action", ["ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"])
def test_what_may_be_done_twice_is_tried_again(action: str, fault: Fault) -> None:
    async def story(shop: Shop) -> None:
        async with shop.queue() as queue:
            await queue.send("rope")
            shop.server.fail_next(action, fault)
            (message,) = await queue.receive(visibility_s=1)
            await message.extend(60)
            await message.delete()
        assert shop.server.actions().count(action) >= 2
        assert shop.bodies() == []

    in_the_shop(story)


def test_a_receive_of_a_fifo_queue_that_is_repeated_says_that_it_is_the_same() -> None:
    async def story(shop: Shop) -> None:
        async with shop.queue("jobs.fifo") as queue:
            await queue.send("rope", group="g", deduplication_id="d")
            shop.server.fail_next("ReceiveMessage", Fault.BROKEN)
            await queue.receive()
            await queue.receive(wait_s=0)
        ids = [
            fields["ReceiveRequestAttemptId"] for target, fields in shop.server.asked if "Receive" in target
        ]
        assert ids[0] == ids[1] != ids[2]

    in_the_shop(story)


def test_a_server_that_is_not_there_is_told_with_its_address() -> None:
    async def story(shop: Shop) -> None:
        shop.server.stop()
        with pytest.raises(Unreachable, match="http://node:9324"):
            await shop.queue(request_timeout_ms=500).__aenter__()

    in_the_shop(story)


def test_refusals_are_told_with_the_servers_own_words() -> None:
    async def story(shop: Shop) -> None:
        with pytest.raises(QueueMissing, match="The specified queue does not exist") as caught:
            await shop.queue("nowhere").__aenter__()
        assert caught.value.code == "QueueDoesNotExist"
        shop.server.queues["other"] = FakeQueue("other", {"DelaySeconds": "5"})
        with pytest.raises(QueueExistsOtherwise):
            await shop.queue("other", create=True).__aenter__()

    in_the_shop(story)


def test_a_queue_is_made_if_that_was_asked_for() -> None:
    async def story(shop: Shop) -> None:
        async with shop.queue("new.fifo", create=True) as queue:
            await queue.send("rope", group="g", deduplication_id="d")
        assert shop.server.queues["new.fifo"].attributes == {"FifoQueue": "true"}

    in_the_shop(story)


def test_a_block_that_ends_deletes_its_message() -> None:
    async def story(shop: Shop) -> None:
        async with shop.queue() as queue:
            await queue.send("rope")
            async with (await queue.receive())[0] as message:
                assert message.body == "rope"
            assert message.is_settled
        assert shop.bodies() == []

    in_the_shop(story)


def test_a_block_that_fails_gives_its_message_back_at_once() -> None:
    async def story(shop: Shop) -> None:
        async with shop.queue() as queue:
            await queue.send("rope")
            with pytest.raises(ZeroDivisionError):
                async with (await queue.receive())[0]:
                    _ = 1 / 0
            (again,) = await queue.receive(wait_s=0)
            assert again.receive_count == 2

    in_the_shop(story)


def test_a_message_that_the_block_has_settled_itself_is_left_alone() -> None:
    async def story(shop: Shop) -> None:
        async with shop.queue() as queue:
            await queue.send("rope")
            async with (await queue.receive())[0] as message:
                await message.release()
            assert shop.bodies() == ["rope"]
        assert "DeleteMessageBatch" not in shop.server.actions()

    in_the_shop(story)


@pytest.mark.parametrize("visibility_s", [2, 30, 3600])
def test_while_a_block_runs_nobody_else_gets_its_message(visibility_s: int) -> None:
    async def story(shop: Shop) -> None:
        async with shop.queue() as queue, shop.queue() as other:
            await queue.send("rope")
            async with (await queue.receive(visibility_s=visibility_s))[0]:
                ends_s = asyncio.get_running_loop().time() + 10 * visibility_s
                while asyncio.get_running_loop().time() < ends_s:
                    assert await other.receive(wait_s=0) == []
                    await asyncio.sleep(visibility_s / 3)
        changes = shop.server.actions().count("ChangeMessageVisibilityBatch")
        assert 15 <= changes <= 25
        assert shop.bodies() == []

    in_the_shop(story)


def test_a_message_is_extended_for_twelve_hours_and_no_longer() -> None:
    async def story(shop: Shop) -> None:
        async with shop.queue() as queue, shop.queue() as other:
            await queue.send("rope")
            began_s = asyncio.get_running_loop().time()
            message = (await queue.receive(visibility_s=1000))[0]
            await message.__aenter__()
            again: list[object] = []
            while not again:
                again = list(await other.receive())
            waited_s = asyncio.get_running_loop().time() - began_s
        assert 12 * 3600 - 2 <= waited_s <= 12 * 3600 + 2

    in_the_shop(story)


def test_an_extension_that_fails_is_tried_again_in_time() -> None:
    async def story(shop: Shop) -> None:
        async with shop.queue(request_timeout_ms=1_000) as queue, shop.queue() as other:
            await queue.send("rope")
            async with (await queue.receive(visibility_s=30))[0]:
                shop.server.fail_next("ChangeMessageVisibilityBatch", *[Fault.BROKEN] * 20)
                assert await other.receive(wait_s=20) == []
                assert await other.receive(wait_s=20) == []
        assert shop.bodies() == []

    in_the_shop(story)


def test_of_a_fifo_queue_a_message_that_was_lost_cannot_be_deleted_and_says_so() -> None:
    async def story(shop: Shop) -> None:
        async with shop.queue("jobs.fifo") as queue, shop.queue("jobs.fifo") as other:
            await queue.send("rope", group="g", deduplication_id="d")
            message = (await queue.receive(visibility_s=1))[0]
            assert len(await other.receive(wait_s=20)) == 1
            with pytest.raises(HandleRefused, match="has expired"):
                await message.delete()

    in_the_shop(story)


def test_iterating_takes_ten_at_a_time_and_keeps_those_that_wait_hidden() -> None:
    async def story(shop: Shop) -> None:
        shop.server.queues["jobs"].attributes["VisibilityTimeout"] = "5"
        seen = []
        async with shop.queue() as queue, shop.queue() as other:
            await queue.send_many(map(str, range(12)))
            async for message in queue:
                async with message:
                    await asyncio.sleep(4)
                    seen.append(message.body)
                if len(seen) == 10:
                    break
            assert [each.body for each in await other.receive()] == ["10", "11"]
        assert seen == [str(number) for number in range(10)]

    in_the_shop(story)


def test_what_waited_for_its_turn_is_given_back_when_the_queue_is_closed() -> None:
    async def story(shop: Shop) -> None:
        async with shop.queue() as queue:
            await queue.send_many(["a", "b", "c"])
            async for message in queue:
                await message.delete()
                break
        async with shop.queue() as other:
            assert [each.body for each in await other.receive(wait_s=0)] == ["b", "c"]

    in_the_shop(story)


def test_a_queue_that_was_not_started_says_how_to() -> None:
    async def story(shop: Shop) -> None:
        with pytest.raises(Misuse, match="use it as a context manager"):
            await shop.queue().send("rope")

    in_the_shop(story)


@pytest.mark.parametrize("value", [True, None, ["list"]])
def test_an_attribute_of_no_type_is_refused_before_it_is_sent(value: AttributeValue) -> None:
    async def story(shop: Shop) -> None:
        async with shop.queue() as queue:
            with pytest.raises(Misuse, match="attribute colour"):
                await queue.send("rope", attributes={"colour": value})
        assert shop.bodies() == []

    in_the_shop(story)
