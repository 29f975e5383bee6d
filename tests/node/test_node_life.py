"""A node's life on simulated ports: start, stop, start again, and what it finds then."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from structlog.testing import capture_logs

from ropewalk.base.errors import CorruptMetadata, DirectoryRefused, StorageFailed
from ropewalk.base.ids import TopicPartition
from ropewalk.base.syncs import SyncFailed
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import Address
from ropewalk.client.consumer import Consumer
from ropewalk.client.errors import RemoteError
from ropewalk.client.producer import Producer
from ropewalk.node import life
from ropewalk.node.config import load
from ropewalk.node.life import Node
from ropewalk.node.options import NodeOptions
from ropewalk.records.record import Record
from ropewalk.sim.machines.storage import StoredFile
from ropewalk.sim.machines.world import EPOCH_MS, Machine, NodePorts, World
from ropewalk.wire.messages.list_offsets import EARLIEST, LATEST

T = TypeVar("T")


def options(*settings: str) -> NodeOptions:
    return NodeOptions(
        kafka="node:9092",
        http="none",
        data="/data",
        settings=("telemetry.interval.ms=0", "audit.topic=false", "node.reserve.bytes=65536", *settings),
    )


async def start(machine: Machine, *settings: str) -> Node:
    return await machine.start(lambda ports: life.start(load(options(*settings), {}), ports))


def in_a_world(story: Callable[[World, Machine], Awaitable[T]], *, can_sync_everything: bool = True) -> T:
    async def main(world: World) -> T:
        return await story(world, world.machine("node", can_sync_everything=can_sync_everything))

    with World(1) as world:
        return world.run(main(world), limit_s=1000)


def client_of(world: World) -> Client:
    host = "client"
    clock = world.machine(f"{host}-{world.now_s}").clock
    return Client(world.network.host(host), clock, world.rng_for(host), (Address("node", 9092),))


async def produce(world: World, *values: str) -> None:
    async with client_of(world) as client:
        await Producer(client, "t").send(
            [Record(timestamp=EPOCH_MS, value=value.encode()) for value in values], partition=0
        )


async def consume(world: World, count: int) -> list[str]:
    async with client_of(world) as client:
        consumer = Consumer(client, {TopicPartition("t", 0): 0})
        found: list[str] = []
        while len(found) < count:
            for batch in await consumer.poll(wait_ms=1000):
                found += [(record.value or b"").decode() for record in batch.records]
        return found


@pytest.mark.parametrize("how", ["stop", "kill", "cut power"])
@pytest.mark.parametrize("syncfs", [True, False], ids=["syncfs", "file by file"])
def test_acknowledged_records_and_the_topic_survive(how: str, syncfs: bool) -> None:
    async def story(world: World, machine: Machine) -> tuple[list[str], bool]:
        node = await start(machine)
        cluster_id = node.cluster_id
        await produce(world, "a", "b")
        if how == "stop":
            await node.stop()
            machine.kill()
        elif how == "kill":
            machine.kill()
        else:
            machine.cut_power()
        again = await start(machine)
        await produce(world, "c")
        return await consume(world, 3), again.cluster_id == cluster_id

    assert in_a_world(story, can_sync_everything=syncfs) == (["a", "b", "c"], True)


def test_a_deleted_topic_stays_deleted() -> None:
    async def story(world: World, machine: Machine) -> list[str]:
        await start(machine)
        async with client_of(world) as client:
            admin = Admin(client)
            await admin.create_topics([NewTopic("gone", 1), NewTopic("kept", 1)])
            await admin.delete_topics(["gone"])
        machine.cut_power()
        await start(machine)
        async with client_of(world) as client:
            return [topic.name for topic in (await client.metadata()).topics]

    assert in_a_world(story) == ["kept"]


def test_retention_deletes_what_is_too_much_and_the_new_start_survives() -> None:
    async def story(world: World, machine: Machine) -> tuple[int, int]:
        settings = (
            "log.retention.bytes=2000000",
            "log.segment.bytes=1048576",
            "log.retention.check.interval.ms=1000",
        )
        await start(machine, *settings)
        for number in range(8):
            await produce(world, f"{number}" * 900_000)
        await time_passes(world, 5)
        async with client_of(world) as client:
            before = await earliest(client)
        machine.cut_power()
        await start(machine, *settings)
        async with client_of(world) as client:
            return before, await earliest(client)

    before, after = in_a_world(story)
    assert before > 0
    assert after == before


def test_another_nodes_directory_is_refused() -> None:
    async def story(world: World, machine: Machine) -> None:
        await start(machine)
        machine.kill()
        with pytest.raises(DirectoryRefused, match="belongs to node 0"):
            await start(machine, "node.id=7")

    in_a_world(story)


async def time_passes(world: World, seconds: float) -> None:
    until_s = world.now_s + seconds
    while world.now_s < until_s:
        await asyncio.sleep(0.5)


async def earliest(client: Client) -> int:
    return (await client.list_offsets("t", {0: EARLIEST}))[0].offset


def test_a_node_without_its_metadata_refuses_to_start_rather_than_delete_its_records() -> None:
    async def story(world: World, machine: Machine) -> None:
        await start(machine)
        await produce(world, "a")
        machine.kill()

        async def lose_metadata(ports: NodePorts) -> None:
            await ports.pool.run(ports.disk.remove, "/data/metadata")

        await machine.start(lose_metadata)
        machine.kill()
        with pytest.raises(CorruptMetadata, match="holds 1 partitions"):
            await start(machine)

    in_a_world(story)


def test_what_another_topic_of_the_same_name_left_is_set_aside_and_keeps_nobody_from_starting() -> None:
    """A node that was away while a topic was deleted, and 10,000 others after it, finds one that nobody remembers."""

    async def story(world: World, machine: Machine) -> tuple[list[str], list[str]]:
        await start(machine)
        async with client_of(world) as client:
            await Admin(client).create_topics([NewTopic("t", 1), NewTopic("other", 1)])
        await produce(world, "a")
        machine.kill()

        async def swap(ports: NodePorts) -> None:
            await ports.pool.run(ports.disk.remove, "/data/other-0")
            await ports.pool.run(ports.disk.rename, "/data/t-0", "/data/other-0")

        await machine.start(swap)
        machine.kill()
        with capture_logs() as lines:
            await start(machine)
        await produce(world, "b")
        names = sorted({path.split("/")[2] for path, _ in machine.platters.files() if path.endswith(".log")})
        assert [line["event"] for line in lines if "set aside" in line["event"]]
        return await consume(world, 1), names

    values, names = in_a_world(story)
    assert values == ["b"]
    (stray,) = [name for name in names if name.endswith(".stray")]
    assert names == sorted(["other-0", "t-0", stray])


@pytest.mark.parametrize(
    ("flush", "said"),
    [
        (
            "group",
            "logs that were not closed in order are recovered; what was cut had been acknowledged to nobody",
        ),
        ("os", "ends of logs were cut that may have been acknowledged from the page cache"),
    ],
)
def test_a_cut_is_only_said_to_concern_nobody_where_nothing_was_acknowledged_from_the_page_cache(
    flush: str, said: str
) -> None:
    async def story(world: World, machine: Machine) -> list[list[str]]:
        await start(machine)
        async with client_of(world) as client:
            await Admin(client).create_topics([NewTopic("t", 1, settings=(("flush", flush),))])
        await produce(world, "a")
        machine.kill()
        log = machine.platters.find("/data/t-0/00000000000000000000.log")
        assert isinstance(log, StoredFile)
        log.truncate(len(log.data) - 1)
        with capture_logs() as lines:
            await start(machine)
        return [line["cut_in"] for line in lines if line["event"] == said]

    assert in_a_world(story) == [["t-0"]]


def test_a_topic_made_on_a_full_disk_works_once_there_is_room() -> None:
    async def story(world: World, machine: Machine) -> list[str]:
        await start(machine)
        async with client_of(world) as client:
            # Room for the metadata records, of which one says who asked, none for the partition's files.
            machine.platters.capacity_bytes = machine.platters.used_bytes + 665
            await Admin(client).create_topics([NewTopic("t", 1)])
            assert [topic.name for topic in (await client.metadata()).topics] == ["t"]
            with pytest.raises(RemoteError, match="KAFKA_STORAGE_ERROR"):
                await client.list_offsets("t", {0: EARLIEST}, deadline_ms=world.now_s * 1000 + 500)
            machine.platters.make_room()
        await time_passes(world, 5)
        await produce(world, "a")
        return await consume(world, 1)

    assert in_a_world(story) == ["a"]


@pytest.mark.parametrize("syncfs", [True, False], ids=["syncfs", "file by file"])
def test_what_a_failed_sync_left_in_the_page_cache_is_not_taken_for_durable(syncfs: bool) -> None:
    """The kernel calls the pages clean, and shows what the disk lacks. What the next process tells of must be there for good."""

    async def story(world: World, machine: Machine) -> list[str]:
        node = await start(machine)
        await produce(world, "a")
        machine.platters.fail_syncs(1)
        producing = asyncio.ensure_future(produce(world, "b"))
        await node.failed
        machine.kill()
        producing.cancel()
        await start(machine)
        await produce(world, "c")
        async with client_of(world) as client:
            end_offset = (await client.list_offsets("t", {0: LATEST}))[0].offset
        seen = await consume(world, end_offset)
        machine.cut_power()
        await start(machine)
        assert await consume(world, end_offset) == seen
        return seen

    assert in_a_world(story, can_sync_everything=syncfs) in (["a", "b", "c"], ["a", "c"])


def test_a_node_whose_disk_fails_while_it_starts_does_not_serve() -> None:
    async def story(world: World, machine: Machine) -> list[str]:
        await start(machine)
        await produce(world, "a")
        machine.kill()
        failures: list[str] = []
        for skipped in range(12):
            machine.platters.fail_syncs(1, after=skipped)
            try:
                await start(machine)
            except (StorageFailed, OSError) as error:
                failures.append(type(error).__name__)
            machine.platters.heal()
            machine.cut_power()
        await start(machine)
        assert failures, "no sync was made to fail"
        return await consume(world, 1)

    assert in_a_world(story) == ["a"]


def test_the_end_of_a_partition_is_never_told_to_be_lower_after_a_restart() -> None:
    async def story(world: World, machine: Machine) -> int:
        await start(machine)
        for number in range(5):
            await produce(world, str(number))
        machine.kill()
        await start(machine)
        async with client_of(world) as client:
            return (await client.list_offsets("t", {0: LATEST}))[0].offset

    assert in_a_world(story) == 5


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("skipped", range(8))
@pytest.mark.parametrize("syncfs", [True, False], ids=["syncfs", "file by file"])
def test_a_stop_in_which_a_sync_fails_is_not_marked_as_clean(syncfs: bool, skipped: int, code: int) -> None:
    """Whichever sync it is, also one that is under way and that nobody waits for: what was acknowledged is on disk, and the rest is checked."""

    async def story(world: World, machine: Machine) -> tuple[bool, list[str]]:
        node = await start(machine)
        await produce(world, "a")
        failure_count = machine.platters.sync_failure_count
        machine.platters.fail_syncs(1, after=skipped, code=code)
        producing = asyncio.ensure_future(produce(world, "b"))
        await asyncio.sleep(0.003)
        outcome = (await asyncio.gather(node.stop(), return_exceptions=True))[0]
        has_failed = machine.platters.sync_failure_count > failure_count
        assert isinstance(outcome, SyncFailed) == has_failed
        is_marked = machine.platters.find("/data/clean-shutdown") is not None
        assert is_marked == (not has_failed)
        producing.cancel()
        machine.kill()
        machine.platters.heal()
        await start(machine)
        await produce(world, "c")
        machine.cut_power()
        await start(machine)
        found = await consume(world, 2)
        return "a" in found and ("c" in found or "b" in found), []

    assert in_a_world(story, can_sync_everything=syncfs) == (True, [])


def test_a_sync_that_is_under_way_is_heard_out_by_an_orderly_stop() -> None:
    """It is slow, its error comes once, and whoever asked for it has been cancelled."""

    async def story(world: World, machine: Machine) -> tuple[str, bool]:
        node = await start(machine)
        await produce(world, "a")
        machine.platters.fail_syncs(1)
        machine.platters.stall(world.now_s + 2)
        producing = asyncio.ensure_future(produce(world, "b"))
        await asyncio.sleep(0.5)
        with pytest.raises(SyncFailed) as failed:
            await node.stop()
        producing.cancel()
        return failed.value.reason, machine.platters.find("/data/clean-shutdown") is not None

    assert in_a_world(story) == ("write-back failed", False)
