"""Machines made from one seed, and the lives of the processes on them.

A machine has a name, a disk, a clock and, while it runs, one process. `kill` ends the process as kill -9
does: its page cache survives it. `cut_power` ends everything that was not on the platter.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from ropewalk.base.ports import Clock, Disk, Network, OwnProcess, Pool, Rng, Usage
from ropewalk.sim.machines.disk import SimulatedDisk, SimulatedPool
from ropewalk.sim.machines.loop import SimulatedLoop, new_loop
from ropewalk.sim.machines.network import Fabric, HostNetwork
from ropewalk.sim.machines.platters import Platters
from ropewalk.sim.machines.process import Died, Process
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.machines.trace import Trace

T = TypeVar("T")

EPOCH_MS: Final = 1_800_000_000_000
"""Wall time at which every run begins."""


class SimulatedClock:
    """The `Clock` port. Wall time is virtual time at the clock's own rate, plus an offset that a nemesis may change."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self.offset_ms = 0
        self.rate = 1.0
        """How fast it runs. To be set before anybody looks at it, since it must not go back."""

    def now_ms(self) -> int:
        return EPOCH_MS + int(self.monotonic_ms()) + self.offset_ms

    def monotonic_ms(self) -> float:
        return self._loop.time() * 1000 * self.rate


class SimulatedProcess:
    """The `OwnProcess` port. Virtual time costs no processor, and no figure of the real process may get in."""

    def usage(self) -> Usage:
        return Usage()


class NodePorts:
    """The `Ports` of one life of a process."""

    def __init__(
        self,
        *,
        clock: SimulatedClock,
        rng: random.Random,
        disk: SimulatedDisk,
        pool: SimulatedPool,
        network: HostNetwork,
    ) -> None:
        self.clock: Clock = clock
        self.rng: Rng = rng
        self.disk: Disk = disk
        self.pool: Pool = pool
        self.network: Network = network
        self.process: OwnProcess = SimulatedProcess()


class Machine:
    def __init__(self, world: "World", name: str, *, can_sync_everything: bool) -> None:
        self.name = name
        self.clock = SimulatedClock(world.loop)
        self.platters = Platters(
            world.rng_for(f"{name}/disk"),
            world.trace,
            world.sometimes,
            can_sync_everything=can_sync_everything,
        )
        self.process: Process | None = None
        self.death_cause: str | None = None
        """Why the last process ended, if it did."""
        self._world = world
        self._life_count = 0
        self._starting: asyncio.Future[Any] | None = None

    @property
    def is_running(self) -> bool:
        return self.process is not None

    @property
    def has_started(self) -> bool:
        """Whether there is a process and its `main` has returned."""
        return self.process is not None and self._starting is not None and self._starting.done()

    async def start(self, main: Callable[[NodePorts], Coroutine[Any, Any, T]]) -> T:
        """Begin a life: run `main` with fresh ports and return what it returns; the process lives on.

        Raises `Died` if the process ends before `main` has returned. An error of `main` ends the process.
        """
        assert self.process is None, f"{self.name} is running already"
        self._life_count += 1
        process = Process(self.name, self._life_count)
        self.process, self.death_cause = process, None
        process.on_death(self._on_death)
        self._world.trace.note("start", str(process))
        self._world.network.set_down(self.name, down=False)
        task = self._world.loop.create_task(
            main(self._ports_for(process)), name=f"{process} main", context=process.context()
        )
        started: asyncio.Future[T] = self._world.loop.create_future()
        self._starting = started
        task.add_done_callback(lambda _: self._on_started(process, task, started))
        return await started

    def kill(self) -> None:
        """kill -9: connections are closed by the kernel, files keep what was written."""
        if self.process is not None:
            self.process.die("killed")

    def pause(self) -> None:
        """SIGSTOP: its connections stay, and nobody answers on them."""
        if self.process is not None:
            self._world.trace.note("pause", str(self.process))
            self.process.is_paused = True

    def resume(self) -> None:
        if self.process is not None and self.process.is_paused:
            self._world.trace.note("resume", str(self.process))
            self._world.loop.resume(self.process)

    def replace_disk(self) -> None:
        """The process ends, and all that it ever wrote is gone."""
        self.cut_power()
        self._world.trace.note("disk lost", self.name)
        self.platters.wipe()

    def cut_power(self) -> None:
        """Whatever was not on the platter has a seeded fate. Peers are not told. Also for a machine already idle."""
        self._world.network.set_down(self.name, down=True)
        if self.process is not None:
            self.process.die("power cut")
        else:
            self.platters.lose_power()

    def cut_power_after(self, operation_count: int) -> None:
        """Cut the power in the middle of an operation: after so many further changes of the disk."""
        self.platters.cut_power_after(operation_count, self.cut_power)

    def cut_power_after_rename(self) -> None:
        self.platters.cut_power_after_rename(self.cut_power)

    def _ports_for(self, process: Process) -> NodePorts:
        return NodePorts(
            clock=self.clock,
            rng=self._world.rng_for(str(process)),
            disk=SimulatedDisk(self.platters, process, self._world.loop),
            pool=SimulatedPool(self.platters, self._world.loop),
            network=self._world.network.host(self.name),
        )

    def _on_started(self, process: Process, task: asyncio.Task[T], started: "asyncio.Future[T]") -> None:
        if task.cancelled() or (error := task.exception()) is not None:
            error = None if task.cancelled() else task.exception()
            process.die(f"failed to start: {error!r}")
            if not started.done():
                started.set_exception(error or Died(f"{process} was cancelled"))
        elif not started.done():
            started.set_result(task.result())

    def _on_death(self, cause: str) -> None:
        process = self.process
        assert process is not None
        self._world.trace.note("death", str(process), cause)
        self.process, self.death_cause = None, cause
        power_cut = cause == "power cut"
        is_starting = self._starting is not None and not self._starting.done()
        if power_cut:
            self._world.sometimes.note("the power failed")
            if is_starting:
                self._world.sometimes.note("the power failed while the node was starting")
        self._world.network.drop_process(process, power_cut=power_cut)
        for task in process.tasks:
            self._world.loop.bury(task)
        if power_cut:
            self.platters.lose_power()
        if (
            self._starting is not None
            and not self._starting.done()
            and not cause.startswith("failed to start")
        ):
            self._starting.set_exception(Died(f"{process}: {cause}"))
        self._starting = None


class World:
    """Everything that follows from a seed. Use it as a context manager: leaving it unwinds what is left."""

    def __init__(
        self, seed: int | str, sometimes: Sometimes | None = None, *, kernel_syncs: bool = False
    ) -> None:
        self.seed = seed
        self._kernel_syncs = kernel_syncs
        self.trace = Trace()
        self.sometimes = sometimes or Sometimes()
        self.loop = new_loop(seed, trace=self.trace)
        self._machines: dict[str, Machine] = {}

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_: object) -> None:
        for machine in self._machines.values():
            machine.kill()
        self.loop.close()

    @property
    def network(self) -> Fabric:
        return self.loop.network

    @property
    def now_s(self) -> float:
        return self.loop.time()

    def rng_for(self, purpose: str) -> random.Random:
        """Dice of its own for each purpose, so that one more throw here does not change everything there."""
        return random.Random(f"{self.seed}/{purpose}")

    def machine(self, name: str, *, can_sync_everything: bool = True) -> Machine:
        assert name not in self._machines
        machine = self._machines[name] = Machine(self, name, can_sync_everything=can_sync_everything)
        machine.platters.has_kernel_syncs = self._kernel_syncs
        return machine

    def run(self, main: Coroutine[Any, Any, T], *, limit_s: float | None = None) -> T:
        return self.loop.run_until_complete(main, limit_s=limit_s)
