"""Cutting a replica's log: what is left is what was there before, and no power cut makes it look damaged."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import pytest

from ropewalk.base.errors import NodeStopping, NotLeader
from ropewalk.base.ids import LeaderEpoch, NodeId, Offset
from ropewalk.broker.partitions.cutting import Cutting
from ropewalk.broker.partitions.home import Home
from ropewalk.broker.partitions.log_work import LogWork
from ropewalk.broker.partitions.replica import Replica
from ropewalk.log.directory import DataDirectory
from ropewalk.log.log import Log
from ropewalk.log.settings import LogSettings
from ropewalk.log.storage import Storage
from ropewalk.records.batch import decode_header
from ropewalk.records.record import Record, build
from ropewalk.sim.machines.process import Died
from ropewalk.sim.machines.world import EPOCH_MS, NodePorts, World
from tests.broker.partition_bench import NAME, TOPIC_ID

T = TypeVar("T")
SETTINGS = LogSettings(segment_bytes=600)


def open_home(ports: NodePorts) -> Home:
    directory = DataDirectory.open(Storage(ports.disk), "/data", node_id=NodeId(0), rng=ports.rng)
    directory.create_partition(NAME, TOPIC_ID)
    return Home(directory, ports.pool, ports.clock)


def open_log(home: Home) -> Log:
    return home.directory.open_log(NAME, TOPIC_ID, SETTINGS, now_ms=EPOCH_MS)


class Copy:
    """A replica with ten durable batches of two records, and everything that works for it."""

    def __init__(self, ports: NodePorts, home: Home, log: Log) -> None:
        self.home = home
        self.log = log
        self.work = LogWork()
        self.cutting = Cutting(self.work, ports.pool, ports.clock)
        self.replica = Replica(
            NAME,
            TOPIC_ID,
            log,
            leader=NodeId(1),
            leader_epoch=LeaderEpoch(0),
            high_watermark=Offset(0),
            durable_first=True,
            in_memory=False,
            commits=home.commits,
        )
        self.tasks = [asyncio.ensure_future(work()) for _, work in home.works()]

    async def fill(self, value: str = "v", *, epoch: int = 0) -> None:
        self.write(value, epoch=epoch)
        await self.save()

    def write(self, value: str, *, epoch: int = 9) -> None:
        for number in range(10):
            batch = build([Record(timestamp=EPOCH_MS, value=value.encode() * 20) for _ in range(2)])
            self.log.append(
                memoryview(batch),
                decode_header(batch),
                leader_epoch=LeaderEpoch(epoch + number),
                now_ms=EPOCH_MS,
            )

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.wait(self.tasks)

    async def save(self) -> None:
        self.home.commits.note(self.replica)
        await self.home.commits.settle()
        self.home.directory.note(NAME, TOPIC_ID, self.log)
        await self.home.recovery_points.save()


async def begin(ports: NodePorts) -> Copy:
    home = await ports.pool.run(open_home, ports)
    return Copy(ports, home, await ports.pool.run(open_log, home))


def with_a_copy(story: Callable[[Copy], Awaitable[T]]) -> T:
    async def life(ports: NodePorts) -> T:
        copy = await begin(ports)
        await copy.fill()
        told = await story(copy)
        await copy.stop()
        return told

    with World(0) as world:
        return world.run(world.machine("node").start(life), limit_s=100)


def test_a_cut_leaves_whole_batches_and_the_high_watermark_with_them() -> None:
    async def story(copy: Copy) -> tuple[int, int, int, int]:
        copy.replica.know_high_watermark(Offset(18))
        await copy.cutting.cut_back(copy.replica, copy.home, Offset(13), leader_epoch=LeaderEpoch(0))
        log, replica = copy.log, copy.replica
        return log.end_offset, log.durable_offset, log.leader_epoch_latest, replica.high_watermark

    assert with_a_copy(story) == (12, 12, 5, 12)


def test_a_log_begins_anew_where_it_is_told_to() -> None:
    async def story(copy: Copy) -> tuple[int, int, int, int]:
        await copy.cutting.begin_anew(copy.replica, copy.home, Offset(100), leader_epoch=LeaderEpoch(0))
        log = copy.log
        await copy.fill("other")
        return log.start_offset, log.end_offset, log.durable_offset, log.epoch_at(Offset(100))

    assert with_a_copy(story) == (100, 120, 120, 0)


@pytest.mark.parametrize("to_offset", [12, 100, 4], ids=["cut back", "begin anew above", "begin anew within"])
@pytest.mark.parametrize("operation_count", range(0, 24, 2))
def test_no_power_cut_on_the_way_makes_the_log_look_damaged(to_offset: int, operation_count: int) -> None:
    """What was made durable afterwards is there; if the cut was not made, what was there before is."""

    async def main(world: World) -> tuple[bool, Log]:
        machine = world.machine("node")
        is_whole, is_done = to_offset != 12, False

        async def life(ports: NodePorts) -> None:
            nonlocal is_done
            copy = await begin(ports)
            await copy.fill()
            machine.cut_power_after(operation_count)
            if is_whole:
                await copy.cutting.begin_anew(
                    copy.replica, copy.home, Offset(to_offset), leader_epoch=LeaderEpoch(0)
                )
            else:
                await copy.cutting.cut_back(
                    copy.replica, copy.home, Offset(to_offset), leader_epoch=LeaderEpoch(0)
                )
            await copy.fill("other", epoch=10)
            is_done = True
            await copy.stop()

        with suppress(Died):
            await machine.start(life)
        if machine.is_running:
            machine.cut_power()

        async def next_life(ports: NodePorts) -> Log:
            copy = await begin(ports)
            await copy.stop()
            return copy.log

        return is_done, await machine.start(next_life)

    with World(operation_count) as world:
        is_done, log = world.run(main(world), limit_s=100)
    assert log.damaged == ()
    if is_done:
        assert log.end_offset == to_offset + 20
        assert log.start_offset == (0 if to_offset == 12 else to_offset)
    else:
        assert log.start_offset in (0, to_offset)
        assert log.start_offset <= log.end_offset <= to_offset + 20


def test_a_cut_waits_for_work_that_is_under_way_and_keeps_other_work_out() -> None:
    async def story(copy: Copy) -> None:
        copy.work.begin(copy.log)
        cutting = asyncio.ensure_future(
            copy.cutting.cut_back(copy.replica, copy.home, Offset(12), leader_epoch=LeaderEpoch(0))
        )
        await asyncio.sleep(5)
        assert (copy.work.is_wanted(copy.log), copy.log.end_offset) == (True, 20)
        copy.work.end(copy.log)
        await cutting
        assert (copy.work.is_wanted(copy.log), copy.log.end_offset) == (False, 12)

    with_a_copy(story)


@pytest.mark.parametrize("delay_us", range(0, 6_000, 400))
@pytest.mark.parametrize("to_offset", [4, 38])
def test_a_setting_may_change_while_a_log_is_cut_that_is_not_durable(to_offset: int, delay_us: int) -> None:
    """With `flush=os` it hardly ever is. A sync in the middle of a cut is about files that go, and about an end that is no more."""

    async def story(copy: Copy) -> tuple[bool, int, int]:
        copy.replica.set_durable_first(False)
        copy.write("more")
        cutting = asyncio.ensure_future(
            copy.cutting.cut_back(copy.replica, copy.home, Offset(to_offset), leader_epoch=LeaderEpoch(0))
        )
        await asyncio.sleep(delay_us / 1e6)
        copy.replica.set_durable_first(False)  # as with every change of its topic
        await cutting
        copy.home.commits.note(copy.replica)
        await asyncio.sleep(0.1)
        return any(task.done() for task in copy.tasks), copy.log.durable_offset, copy.log.end_offset

    assert with_a_copy(story) == (False, to_offset, to_offset)


def test_what_is_read_while_a_log_begins_anew_leaves_no_file_open_that_is_gone() -> None:
    """Whoever appended there would write to a file without a name, and sync it, and have it acknowledged."""

    async def story(copy: Copy) -> tuple[int, tuple[object, ...]]:
        pool = copy.cutting._pool
        span = copy.log.locate(Offset(0), limit_offset=Offset(20), bytes_max=1 << 20)
        assert span is not None
        await pool.run(span.read)
        cutting = asyncio.ensure_future(
            copy.cutting.begin_anew(copy.replica, copy.home, Offset(0), leader_epoch=LeaderEpoch(0))
        )
        while not cutting.done():
            copy.log.on_read(span)
            await asyncio.sleep(0.0001)
        await copy.fill("other")
        found = await pool.run(open_log, copy.home)
        return found.end_offset, found.damaged

    assert with_a_copy(story) == (20, ())


def test_who_has_let_go_of_a_log_cuts_nothing_of_it() -> None:
    """Its fetcher may have decided so a moment before; the log belongs to whoever leads now."""

    async def story(copy: Copy) -> int:
        copy.replica.end(NotLeader("this node leads it"))
        for cut in (copy.cutting.cut_back, copy.cutting.begin_anew):
            with pytest.raises(NotLeader):
                await cut(copy.replica, copy.home, Offset(13), leader_epoch=LeaderEpoch(0))
        return copy.log.end_offset

    assert with_a_copy(story) == 20


def test_a_cut_that_has_begun_is_ended_though_nobody_waits_for_it() -> None:
    async def story(copy: Copy) -> None:
        cutting = asyncio.ensure_future(
            copy.cutting.cut_back(copy.replica, copy.home, Offset(12), leader_epoch=LeaderEpoch(0))
        )
        while not copy.replica.is_at_work:
            await asyncio.sleep(0.0001)
        cutting.cancel()
        await asyncio.wait([cutting])
        assert (cutting.cancelled(), copy.replica.is_at_work, copy.log.end_offset) == (True, False, 12)

    with_a_copy(story)


@pytest.mark.parametrize("delay_us", range(0, 2_000, 200))
@pytest.mark.parametrize("to_offset", [12, 100])
def test_a_cut_comes_to_its_end_although_nobody_writes_checkpoints_any_more(
    to_offset: int, delay_us: int
) -> None:
    """It cannot be cancelled, so whoever it waits for must say that he has gone."""

    async def story(copy: Copy) -> bool:
        operation = copy.cutting.cut_back if to_offset == 12 else copy.cutting.begin_anew
        cutting = asyncio.ensure_future(
            operation(copy.replica, copy.home, Offset(to_offset), leader_epoch=LeaderEpoch(0))
        )
        await asyncio.sleep(delay_us / 1e6)
        await copy.stop()
        cutting.cancel()
        with suppress(asyncio.CancelledError, NodeStopping):
            await cutting
        return copy.replica.is_at_work

    assert with_a_copy(story) is False


@pytest.mark.parametrize("to_offset", [12, 4], ids=["cut back", "begin anew"])
def test_a_cut_lowers_the_high_watermark_that_the_next_start_believes(to_offset: int) -> None:
    """What is copied afterwards at these offsets may be another history, of which nothing is committed yet."""

    async def main(world: World) -> int:
        machine = world.machine("node")

        async def life(ports: NodePorts) -> None:
            copy = await begin(ports)
            await copy.fill()
            copy.home.directory.note_high_watermark(NAME, TOPIC_ID, Offset(18))
            await copy.home.high_watermarks.save()
            cut = copy.cutting.cut_back if to_offset == 12 else copy.cutting.begin_anew
            await cut(copy.replica, copy.home, Offset(to_offset), leader_epoch=LeaderEpoch(0))
            await copy.fill("other", epoch=10)
            await copy.stop()

        await machine.start(life)
        machine.cut_power()

        async def next_life(ports: NodePorts) -> int:
            copy = await begin(ports)
            await copy.stop()
            return copy.home.directory.high_watermarks.get(str(NAME), TOPIC_ID)

        return await machine.start(next_life)

    with World(0) as world:
        assert world.run(main(world), limit_s=100) == to_offset
