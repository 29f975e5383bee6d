"""Marks of what was acknowledged from the page cache: on disk before it counts, and there until all of it is synced."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ropewalk.base.ids import LeaderEpoch, NodeId
from ropewalk.broker.partitions.acknowledgements import Acks, Ticket
from ropewalk.broker.partitions.home import Home
from ropewalk.broker.partitions.page_cache_marks import PageCacheMarks
from ropewalk.broker.partitions.partition import Partition
from ropewalk.log.directory import DataDirectory
from ropewalk.log.log import Log
from ropewalk.log.settings import LogSettings
from ropewalk.log.storage import Storage
from ropewalk.records.record import Record, build
from ropewalk.records.validate import Rules
from ropewalk.sim.machines.platters import Platters
from ropewalk.sim.machines.world import EPOCH_MS, Machine, NodePorts, World
from tests.broker.partition_bench import NAME, TOPIC_ID

T = TypeVar("T")


class Life:
    """One process: a partition that leads alone, and the marks of its directory."""

    def __init__(self, ports: NodePorts, directory: DataDirectory, log: Log, platters: Platters) -> None:
        self.platters = platters
        self.home = Home(directory, ports.pool, ports.clock)
        self.marks = PageCacheMarks(self.home)
        self.partition = Partition(
            NAME,
            TOPIC_ID,
            log,
            leader_epoch=LeaderEpoch(0),
            rules=Rules(bytes_max=1 << 20),
            durable_first=True,
            in_memory=False,
            commits=self.home.commits,
            clock=ports.clock,
        )
        self.task = asyncio.ensure_future(self.home.unsynced.run())

    def append(self) -> Ticket:
        batch = memoryview(build([Record(timestamp=EPOCH_MS, value=b"v")]))
        return self.partition.append(self.partition.prepare(batch), Acks.ALL, 1000)

    def is_acknowledged(self, ticket: Ticket) -> bool:
        return ticket.acknowledged is None or ticket.acknowledged.done()


def open_log(directory: DataDirectory) -> Log:
    return directory.open_log(NAME, TOPIC_ID, LogSettings(segment_bytes=2000), now_ms=EPOCH_MS)


def lives(*stories: Callable[[Life], Awaitable[None]]) -> DataDirectory:
    """One after the other, with a power cut between them; what the last one would find."""

    def claim(ports: NodePorts) -> DataDirectory:
        directory = DataDirectory.open(Storage(ports.disk), "/data", node_id=NodeId(0), rng=ports.rng)
        directory.create_partition(NAME, TOPIC_ID)
        return directory

    async def last(ports: NodePorts) -> DataDirectory:
        return await ports.pool.run(claim, ports)

    async def main(machine: Machine) -> DataDirectory:
        for story in stories:

            async def live(ports: NodePorts, story: Callable[[Life], Awaitable[None]] = story) -> None:
                directory = await ports.pool.run(claim, ports)
                log = await ports.pool.run(open_log, directory)
                await story(Life(ports, directory, log, machine.platters))

            await machine.start(live)
            machine.cut_power()
        return await machine.start(last)

    with World(0) as world:
        return world.run(main(world.machine("node")), limit_s=100)


KEY = (TOPIC_ID, 0)


def test_nothing_counts_from_the_page_cache_before_its_mark_is_on_disk() -> None:
    async def story(life: Life) -> None:
        life.marks.note(life.partition, "os")
        early = life.append()
        assert not life.is_acknowledged(early)
        await life.marks.step()
        assert life.is_acknowledged(early)
        assert life.is_acknowledged(life.append())

    assert lives(story).unsynced_before == frozenset({KEY})


def test_a_mark_stays_until_all_of_the_log_is_synced_under_group() -> None:
    async def story(life: Life) -> None:
        life.marks.note(life.partition, "os")
        await life.marks.step()
        life.append()
        life.marks.note(life.partition, "group")
        await life.marks.step()
        assert life.marks.is_marked(NAME, TOPIC_ID), "what was acknowledged is not on disk yet"
        life.append()
        await life.home.commits.commit()
        await life.marks.step()
        assert not life.marks.is_marked(NAME, TOPIC_ID)
        late = life.append()
        assert not life.is_acknowledged(late)

    assert lives(story).unsynced_before == frozenset()


def test_what_a_former_process_left_is_not_unmarked_before_this_one_has_registered() -> None:
    async def first(life: Life) -> None:
        life.marks.note(life.partition, "os")
        await life.marks.step()

    async def second(life: Life) -> None:
        """It is set to group, syncs everything, and dies before it could register."""
        life.marks.note(life.partition, "group")
        await life.home.commits.commit()
        life.marks.tick()
        await asyncio.sleep(1)

    assert lives(first, second).unsynced_before == frozenset({KEY})


def test_a_directory_that_was_written_without_marks_says_so_until_there_are_some() -> None:
    async def without(life: Life) -> None:
        life.append()

    async def with_marks(life: Life) -> None:
        assert life.home.directory.unsynced_before is None
        await life.marks.step()

    assert lives(without).unsynced_before is None
    assert lives(without, with_marks).unsynced_before == frozenset()


def test_a_full_disk_keeps_a_partition_waiting_for_the_disk_and_no_longer() -> None:
    async def story(life: Life) -> None:
        life.marks.note(life.partition, "os")
        room_bytes = life.platters.capacity_bytes
        life.platters.capacity_bytes = life.platters.used_bytes
        await life.marks.step()
        assert life.partition.durable_first
        life.platters.capacity_bytes = room_bytes
        life.marks.tick()
        await life.marks.step()
        assert not life.partition.durable_first

    assert lives(story).unsynced_before == frozenset({KEY})


def test_a_partition_of_the_same_name_inherits_no_mark() -> None:
    async def story(life: Life) -> None:
        life.marks.note(life.partition, "os")
        await life.marks.step()
        life.home.directory.forget_partition(NAME)
        life.marks.drop(NAME)
        assert not life.marks.is_marked(NAME, TOPIC_ID)

    lives(story)
