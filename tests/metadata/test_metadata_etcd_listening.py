"""Listening to an etcd that will not be listened to."""

import asyncio
from typing import cast

from ropewalk.metadata.etcd.listening import Listening
from ropewalk.metadata.etcd.store import Store
from ropewalk.sim.machines.world import World


class _Answer:
    events = ()

    def __init__(self, *, canceled: bool) -> None:
        self.canceled = canceled


class _Watch:
    """Begun, and ended."""

    def __init__(self) -> None:
        self._answers = [_Answer(canceled=False), _Answer(canceled=True)]

    async def next(self) -> _Answer:
        await asyncio.sleep(0.001)
        return self._answers.pop(0)

    def close(self) -> None:
        pass


class _Mirror:
    seat = None


class Refusing:
    """A store whose every watch is ended at once, as etcd does where a user has lost the right to it."""

    def __init__(self) -> None:
        self.client = self
        self.keys = self
        self.mirror = _Mirror()
        self.first = self.beyond = b"k"
        self.watch_count = 0

    async def read(self) -> int:
        await asyncio.sleep(0.001)
        return 7

    async def watch(self, _: object) -> _Watch:
        self.watch_count += 1
        return _Watch()

    def on_events(self, _: object) -> bool:
        return True

    async def check_space(self) -> None:
        pass


def test_a_watch_that_is_ended_at_once_is_asked_for_again_after_a_while() -> None:
    store = Refusing()

    async def main() -> None:
        listening = asyncio.ensure_future(Listening(cast(Store, store)).run())
        await asyncio.sleep(10)
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)

    with World(0) as world:
        world.run(main(), limit_s=20)
    assert 10 <= store.watch_count <= 60
