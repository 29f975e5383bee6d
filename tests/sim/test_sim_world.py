"""Machines, their processes, and the ports they are given."""

import asyncio
import errno
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from ropewalk.base.ports import Disk, Ports, read_whole, write_atomically
from ropewalk.sim.machines.disk import BlockedTheLoop
from ropewalk.sim.machines.process import Died, Process
from ropewalk.sim.machines.storage import PAGE_BYTES
from ropewalk.sim.machines.world import EPOCH_MS, Machine, NodePorts, World

T = TypeVar("T")


def run(main: Callable[[World], Coroutine[Any, Any, T]], seed: int = 1) -> T:
    with World(seed) as world:
        return world.run(main(world), limit_s=1000)


async def in_pool(machine: Machine, function: Callable[[Disk], T]) -> T:
    """Start a process whose whole life is one blocking function, and end it with kill -9."""

    async def main(ports: Ports) -> T:
        return await ports.pool.run(function, ports.disk)

    result = await machine.start(main)
    machine.kill()
    return result


def _write(path: str, data: bytes, *, sync: bool) -> Callable[[Disk], None]:
    def write(disk: Disk) -> None:
        file = disk.open(path, create=True)
        file.append(data)
        if sync:
            file.sync()
            disk.sync_directory(path.rpartition("/")[0])

    return write


def test_kill_9_keeps_what_was_written_without_a_sync() -> None:
    async def main(world: World) -> bytes:
        machine = world.machine("node")
        await in_pool(machine, _write("/f", b"unsynced", sync=False))
        return await in_pool(machine, lambda disk: read_whole(disk, "/f"))

    assert run(main) == b"unsynced"


@pytest.mark.parametrize("seed", range(10))
def test_what_only_the_page_cache_has_is_still_at_stake_after_kill_9(seed: int) -> None:
    async def main(world: World) -> bool:
        machine = world.machine("node")
        await in_pool(machine, _write("/f", b"unsynced", sync=False))
        machine.cut_power()
        return await in_pool(machine, lambda disk: disk.exists("/f"))

    outcomes = {run(main, seed * 100 + n) for n in range(10)}
    assert outcomes == {True, False}


@pytest.mark.parametrize("seed", range(10))
def test_synced_data_under_a_synced_name_survives_a_power_cut(seed: int) -> None:
    async def main(world: World) -> bytes:
        machine = world.machine("node")
        await in_pool(machine, _write("/f", b"synced", sync=True))
        machine.cut_power()
        return await in_pool(machine, lambda disk: read_whole(disk, "/f"))

    assert run(main, seed) == b"synced"


@pytest.mark.parametrize("seed", range(10))
def test_sync_everything_makes_files_and_names_durable_at_once(seed: int) -> None:
    def write(disk: Disk) -> None:
        disk.make_directory("/a/b")
        disk.open("/a/b/c", create=True).append(b"content")
        disk.sync_everything()

    async def main(world: World) -> bytes:
        machine = world.machine("node")
        await in_pool(machine, write)
        machine.cut_power()
        return await in_pool(machine, lambda disk: read_whole(disk, "/a/b/c"))

    assert run(main, seed) == b"content"


def test_a_disk_that_cannot_sync_everything_says_so_and_refuses() -> None:
    async def main(world: World) -> None:
        machine = world.machine("node", can_sync_everything=False)
        assert await in_pool(machine, lambda disk: disk.can_sync_everything) is False
        with pytest.raises(AssertionError):
            await in_pool(machine, lambda disk: disk.sync_everything())

    run(main)


@pytest.mark.parametrize("seed", range(30))
def test_an_atomic_write_is_whole_wherever_the_power_fails(seed: int) -> None:
    """The power fails within the write, before its n-th operation; the file is the former or the latter."""

    async def main(world: World) -> bytes:
        machine = world.machine("node")
        await in_pool(machine, lambda disk: write_atomically(disk, "/f", b"former" * 2000))
        machine.cut_power_after(seed % 6)
        with pytest.raises(Died, match="power cut"):
            await in_pool(machine, lambda disk: write_atomically(disk, "/f", b"latter" * 3000))
        return await in_pool(machine, lambda disk: read_whole(disk, "/f"))

    assert run(main, seed) in (b"former" * 2000, b"latter" * 3000)


def test_the_same_write_without_its_syncs_is_caught() -> None:
    def careless(disk: Disk) -> None:
        disk.open("/f.tmp", create=True).append(b"latter" * 3000)
        disk.rename("/f.tmp", "/f")

    async def main(world: World) -> bytes:
        machine = world.machine("node")
        await in_pool(machine, lambda disk: write_atomically(disk, "/f", b"former"))
        await in_pool(machine, careless)
        machine.cut_power()
        return await in_pool(machine, lambda disk: read_whole(disk, "/f"))

    outcomes = {run(main, seed) for seed in range(50)}
    assert outcomes - {b"former", b"latter" * 3000}
    assert b"former" in outcomes


def test_after_a_power_cut_bytes_must_be_waited_for() -> None:
    async def main(world: World) -> None:
        machine = world.machine("node")
        await in_pool(machine, _write("/f", b"x" * 3 * PAGE_BYTES, sync=True))

        async def look(ports: Ports) -> bytes | None:
            cached = ports.disk.open("/f").read_cached(0, 10)
            return None if cached is None else bytes(cached)

        assert await machine.start(look) == b"x" * 10
        machine.cut_power()
        assert await machine.start(look) is None
        machine.kill()
        await in_pool(machine, lambda disk: read_whole(disk, "/f"))
        assert await machine.start(look) == b"x" * 10

    run(main)


@pytest.mark.parametrize(
    "wait",
    [
        pytest.param(lambda disk: disk.open("/f").sync(), id="sync"),
        pytest.param(lambda disk: disk.sync_directory("/"), id="sync of a directory"),
        pytest.param(lambda disk: disk.sync_everything(), id="sync of everything"),
        pytest.param(lambda disk: disk.open("/f").read(0, 1), id="cold read"),
    ],
)
def test_waiting_for_the_disk_on_the_loop_is_an_error(wait: Callable[[Disk], object]) -> None:
    async def main(world: World) -> None:
        machine = world.machine("node")
        await in_pool(machine, _write("/f", b"content", sync=True))
        machine.cut_power()

        async def misbehave(ports: Ports) -> None:
            wait(ports.disk)

        await machine.start(misbehave)

    with pytest.raises(BlockedTheLoop):
        run(main)


def test_a_full_disk_takes_a_part_then_nothing_and_recovers() -> None:
    async def main(world: World) -> None:
        machine = world.machine("node")

        def fill(disk: Disk) -> None:
            file = disk.open("/f", create=True)
            file.append(b"1234")
            machine.platters.capacity_bytes = machine.platters.used_bytes + 3
            assert disk.free_bytes("/") == 3
            assert file.append(b"56789") == 3
            with pytest.raises(OSError) as refused:
                file.append(b"8")
            assert refused.value.errno == errno.ENOSPC
            with pytest.raises(OSError):
                disk.open("/g", create=True)
            file.truncate(2)
            assert file.append(b"abc") == 3
            disk.remove("/f")
            assert machine.platters.used_bytes == 0

        await in_pool(machine, fill)

    run(main)


def test_an_armed_sync_failure_is_an_input_output_error_once() -> None:
    async def main(world: World) -> None:
        machine = world.machine("node")
        machine.platters.fail_syncs(1)
        with pytest.raises(OSError) as failed:
            await in_pool(machine, _write("/f", b"x", sync=True))
        assert failed.value.errno == errno.EIO
        assert not machine.is_running
        await in_pool(machine, _write("/f", b"x", sync=True))

    run(main)


def test_a_failure_can_be_kept_for_a_sync_that_nobody_waits_for() -> None:
    async def main(world: World) -> None:
        machine = world.machine("node")
        machine.platters.fail_syncs(1, only_unawaited=True)

        async def live(ports: NodePorts) -> str | None:
            def sync(path: str) -> None:
                _write(path, b"x", sync=True)(ports.disk)

            await ports.pool.run(sync, "/awaited")
            assert ports.disk.syncs.failure is None
            ports.pool.run(sync, "/given up").cancel()
            await ports.pool.drain()
            return ports.disk.syncs.failure

        assert await machine.start(live) == "write-back failed"

    run(main)


def test_a_stalled_disk_answers_late() -> None:
    async def main(world: World) -> float:
        machine = world.machine("node")
        machine.platters.stall(until_s=30)
        await in_pool(machine, lambda disk: disk.exists("/"))
        return world.now_s

    assert 30 <= run(main) < 31


def test_a_lock_is_held_by_a_life_and_not_beyond_it() -> None:
    async def main(world: World) -> None:
        machine = world.machine("node")

        async def take(ports: Ports) -> None:
            ports.disk.lock("/lock")
            ports.disk.lock("/lock")

        async def take_and_let_go(ports: Ports) -> None:
            ports.disk.lock("/lock")
            ports.disk.close()

        await machine.start(take_and_let_go)
        _detach(machine)
        await machine.start(take)
        holder = _detach(machine)
        with pytest.raises(BlockingIOError):
            await machine.start(take)
        holder.alive = False
        await machine.start(take)

    run(main)


def _detach(machine: Machine) -> Process:
    """Make room for a second process on the machine while the first still lives."""
    process, machine.process = machine.process, None
    assert process is not None
    return process


def test_the_pool_calls_at_one_instant_and_answers_later_in_any_order() -> None:
    async def main(world: World) -> list[tuple[int, float, float]]:
        machine = world.machine("node")
        seen: list[tuple[int, float, float]] = []

        async def use(ports: NodePorts) -> None:
            async def one(number: int) -> None:
                called_at = await ports.pool.run(world.loop.time)
                seen.append((number, called_at, world.now_s))

            await asyncio.gather(*(one(number) for number in range(20)))

        await machine.start(use)
        return seen

    seen = run(main)
    assert [number for number, _, _ in seen] != list(range(20))
    assert all(0 < called_at <= answered_at for _, called_at, answered_at in seen)


def test_a_process_that_dies_while_starting_is_reported() -> None:
    async def main(world: World) -> None:
        machine = world.machine("node")

        async def hang(ports: Ports) -> None:
            await asyncio.get_running_loop().create_future()

        world.loop.call_later(3, machine.kill)
        with pytest.raises(Died, match="killed"):
            await machine.start(hang)
        assert not machine.is_running
        assert machine.death_cause == "killed"

    run(main)


def test_a_process_that_exits_is_gone_and_its_page_cache_stays() -> None:
    async def main(world: World) -> None:
        machine = world.machine("node")

        async def leave(ports: Ports) -> None:
            ports.disk.open("/f", create=True).append(b"x")
            asyncio.get_running_loop().call_later(1, exit, 3)

        await machine.start(leave)
        await asyncio.sleep(2)
        assert machine.death_cause == "exited with 3"
        assert await in_pool(machine, lambda disk: disk.exists("/f"))

    run(main)


def test_wall_time_may_jump_and_monotonic_time_does_not() -> None:
    async def main(world: World) -> None:
        machine = world.machine("node")
        await asyncio.sleep(5)
        assert machine.clock.now_ms() == EPOCH_MS + 5000
        machine.clock.offset_ms = -60_000
        assert machine.clock.now_ms() == EPOCH_MS - 55_000
        assert machine.clock.monotonic_ms() == 5000

    run(main)


def test_each_life_has_dice_of_its_own_that_follow_from_the_seed() -> None:
    async def main(world: World) -> list[float]:
        machine = world.machine("node")

        async def throw(ports: Ports) -> float:
            return ports.rng.random()

        throws = []
        for _ in range(3):
            throws.append(await machine.start(throw))
            machine.kill()
        return throws

    assert len(set(run(main))) == 3
    assert run(main, 4) == run(main, 4) != run(main, 5)
