"""A consumer that applies the answers of a session sees exactly what whole fetches would show.

Random histories of a node (records written, trimmed and expired, topics deleted, made again and enlarged) and of a
consumer (it moves on, jumps, forgets, takes up and breaks off), with answers so small that partitions have to take turns.
"""

from random import Random

import pytest

from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import create_partitions, delete_records
from tests.kafka.door import Door, at_the_door, batch_of
from tests.kafka.session_client import BY_ID, BY_NAME, SessionClient

TOPICS = ("a", "b", "c")
STEPS = 80


class History:
    def __init__(self, door: Door, rng: Random, version: int) -> None:
        self.door = door
        self.rng = rng
        self.version = version
        self.client = SessionClient(version, max_bytes=rng.choice((1, 300, 600, 1 << 20)))
        self.sizes: dict[str, int] = {}
        """Topics that are there, with their partitions."""

        self.ids: dict[str, bytes] = {}
        """Also of those that were deleted."""

    async def run(self) -> None:
        for name in TOPICS:
            await self.create(name)
        for _ in range(6):
            self.take_up()
        actions = (
            (12, self.write),
            (1, self.trim),
            (1, self.delete_or_create),
            (1, self.enlarge),
            (2, self.take_up),
            (1, self.forget),
            (3, self.jump),
            (1, self.break_off),
            (8, self.fetch),
            (3, self.settle),
        )
        for _ in range(STEPS):
            act = self.rng.choices([act for _, act in actions], [weight for weight, _ in actions])[0]
            result = act()
            if result is not None:
                await result
        await self.settle()

    def key(self, name: str) -> str | bytes:
        return self.ids[name] if self.version == BY_ID else name

    def somewhere(self) -> tuple[str, int] | None:
        name = self.rng.choice(TOPICS)
        return (name, self.rng.randrange(self.sizes[name])) if name in self.sizes else None

    async def create(self, name: str) -> None:
        self.sizes[name] = self.rng.randint(1, 3)
        self.ids[name] = await self.door.create(name, self.sizes[name])

    async def write(self) -> None:
        if place := self.somewhere():
            batch = batch_of(*("x" * self.rng.randrange(100) for _ in range(self.rng.randint(1, 3))))
            assert (await self.door.produce(place[0], batch, partition=place[1])).error_code == ErrorCode.NONE

    async def trim(self) -> None:
        if place := self.somewhere():
            partition = delete_records.DeleteRecordsPartition(place[1], -1)
            request = delete_records.DeleteRecordsRequest(
                (delete_records.DeleteRecordsTopic(place[0], (partition,)),), 1000
            )
            answer = await self.door.call(delete_records.API, 2, request)
            assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE

    async def delete_or_create(self) -> None:
        name = self.rng.choice(TOPICS)
        if name not in self.sizes:
            await self.create(name)
            return
        del self.sizes[name]
        await self.door.delete(name)

    async def enlarge(self) -> None:
        if place := self.somewhere():
            self.sizes[place[0]] += 1
            topic = create_partitions.CreatePartitionsTopic(place[0], self.sizes[place[0]], None)
            request = create_partitions.CreatePartitionsRequest((topic,), 1000, False)
            (result,) = (await self.door.call(create_partitions.API, 3, request)).results
            assert result.error_code == ErrorCode.NONE

    def take_up(self) -> None:
        """Also partitions that do not exist yet, or no longer."""
        self.client.follow(self.key(self.rng.choice(TOPICS)), self.rng.randrange(4), 0)

    def forget(self) -> None:
        if len(self.client.offsets) > 1:
            self.client.forget(*self.rng.choice(list(self.client.offsets)))

    def jump(self) -> None:
        """To an offset that may not exist, to the end, or back to the start."""
        key = self.rng.choice(list(self.client.offsets))
        view = self.client.views.get(key)
        ends = (view.high_watermark, view.log_start_offset) if view and view.high_watermark >= 0 else ()
        self.client.follow(*key, self.rng.choice((self.rng.randrange(20), *ends)))

    def break_off(self) -> None:
        self.client.start_over()

    async def fetch(self) -> None:
        """And move on, as a consumer does, in some of what was given."""
        for key, view in (await self.client.poll(self.door)).items():
            if view.records and self.rng.random() < 0.5:
                self.client.follow(*key, view.end_offset)

    async def settle(self) -> None:
        """Fetch until everybody has had a turn, and compare."""
        truth = await self.client.poll_whole(self.door)
        given: dict[object, bytes] = {}
        for _ in range(2 * len(truth) + 1):
            last = await self.client.poll(self.door)
            given.update((key, view.records) for key, view in last.items() if view.records)
        for key, view in truth.items():
            told = self.client.views[key]
            assert (told.error_code, told.high_watermark, told.log_start_offset) == (
                view.error_code,
                view.high_watermark,
                view.log_start_offset,
            ), key
            assert (key in given) == bool(view.records), key
            assert view.records.startswith(given.get(key, b"")), key
        for key in last:
            assert truth[key].error_code or truth[key].records, f"{key} is quiet and was told again"


@pytest.mark.parametrize("version", [BY_ID, BY_NAME], ids=["by id", "by name"])
@pytest.mark.parametrize("seed", range(25))
def test_a_session_shows_what_whole_fetches_show(seed: int, version: int) -> None:
    async def story(door: Door) -> None:
        await History(door, Random(seed), version).run()

    at_the_door(story, seed=seed)
