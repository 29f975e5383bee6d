"""The two etcds that the same tests run against: the real one on the loopback, and the simulator's model of it."""

import asyncio
import itertools
import random
import time
from collections.abc import Callable, Coroutine
from typing import Protocol

from ropewalk.base.ports import Clock, Network, Rng
from ropewalk.metadata.etcd.client import Access, parse_members
from ropewalk.metadata.etcd.log import EtcdMetadataLog
from ropewalk.runtime.network import TcpNetwork
from ropewalk.sim.machines.etcd import NO_FAULTS, EtcdFaults, ModelledEtcd
from ropewalk.sim.machines.world import World
from tests.metadata.etcd_members import EtcdMembers

_prefixes = (f"/test-{number}/" for number in itertools.count())


class Etcd(Protocol):
    """What a story may do to the members."""

    @property
    def urls(self) -> tuple[str, ...]: ...
    def kill_member(self, number: int) -> None: ...
    async def start_member(self, number: int) -> None: ...


class RealClock:
    def now_ms(self) -> int:
        return int(time.time() * 1000)

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000


class Lab:
    """One story's etcd, with keys of its own, and the logs it opens there."""

    def __init__(self, etcd: Etcd, network: Callable[[str], Network], clock: Clock, rng: Rng) -> None:
        self.etcd = etcd
        self._network = network
        self._clock = clock
        self._rng = rng
        self._prefix = next(_prefixes)
        self._running: list[asyncio.Task[None]] = []

    async def open(
        self, name: str = "one", *, listens: bool = True, access: Access | None = None
    ) -> EtcdMetadataLog:
        access = access or Access(parse_members(self.etcd.urls))
        log = await EtcdMetadataLog.open(
            self._network(name), self._clock, self._rng, access, prefix=self._prefix
        )
        if listens:
            self._running.append(asyncio.get_running_loop().create_task(log.run()))
        return log

    async def close(self) -> None:
        for task in self._running:
            assert not task.done() or task.cancelled(), task.exception()
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


Story = Callable[[Lab], Coroutine[object, object, None]]


class RealHome:
    def __init__(self, members: EtcdMembers) -> None:
        self._members = members

    @property
    def urls(self) -> tuple[str, ...]:
        return self._members.urls

    def kill_member(self, number: int) -> None:
        self._members.kill(number)

    async def start_member(self, number: int) -> None:
        self._members.start(number)

    def tell(self, story: Story) -> None:
        async def main() -> None:
            lab = Lab(self, lambda _: TcpNetwork(), RealClock(), random.Random())
            async with asyncio.timeout(60):
                await story(lab)
            await lab.close()

        asyncio.run(main())


class ModelledHome:
    def __init__(self, seed: int = 0, faults: EtcdFaults = NO_FAULTS) -> None:
        self._seed = seed
        self._faults = faults

    def tell(self, story: Story) -> None:
        with World(self._seed) as world:
            etcd = ModelledEtcd(world, faults=self._faults)

            async def main() -> None:
                await etcd.start()
                clock = world.machine("elsewhere").clock
                lab = Lab(etcd, world.network.host, clock, world.rng_for("logs"))
                await story(lab)
                await lab.close()

            world.run(main(), limit_s=600)
