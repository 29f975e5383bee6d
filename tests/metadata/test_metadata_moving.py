"""The metadata move between homes: one history whatever happens on the way, and nobody decides in two of them."""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from itertools import count
from typing import TypeVar

import pytest

from ropewalk.base.errors import InvalidRequest, MetadataUnavailable
from ropewalk.base.ids import NodeId, ProducerId
from ropewalk.base.levels import OURS
from ropewalk.metadata.image import Image
from ropewalk.metadata.local import LocalMetadataLog
from ropewalk.metadata.log import Committed, Snapshot
from ropewalk.metadata.moving import Home, move, take_back
from ropewalk.metadata.records import (
    ChangeBegun,
    ClusterCreated,
    ControllerChanged,
    HomeLeft,
    LevelChanged,
    MetadataRecord,
    ProducerIdsAllocated,
)
from ropewalk.runtime.memory_disk import MemoryDisk
from tests.metadata.etcd_homes import Lab, ModelledHome, RealHome
from tests.metadata.etcd_members import EtcdMembers

T = TypeVar("T")
NODE = NodeId(0)
ETCD, FILE = "etcd://somewhere", "a file"


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdMembers]:
    members = EtcdMembers(tmp_path_factory.mktemp("etcd"))
    yield members
    members.stop()


@pytest.fixture(params=["model", pytest.param("real", marks=pytest.mark.compat)])
def etcd(request: pytest.FixtureRequest) -> RealHome | ModelledHome:
    return ModelledHome() if request.param == "model" else RealHome(request.getfixturevalue("members"))


class Inline:
    """A pool whose work is done at once."""

    def run(self, function, *arguments):  # type: ignore[no-untyped-def]
        future = asyncio.get_running_loop().create_future()
        future.set_result(function(*arguments))
        return future

    async def drain(self) -> None:
        pass


class Reigns:
    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self) -> str:
        return f"reign {next(self._numbers)}"


def opened(disk: MemoryDisk) -> LocalMetadataLog:
    return LocalMetadataLog.open(disk, Inline(), "/node/metadata")


def fact(number: int) -> MetadataRecord:
    return ProducerIdsAllocated(NODE, ProducerId(number))


async def decide(home: Home, name_reign: Reigns, *records: MetadataRecord) -> int:
    """As a controller does that begins at `home`; answers its epoch."""
    holder = home.holder
    epoch = await home.take_over(NODE, expected_epoch=0 if holder is None else holder.epoch)
    assert epoch is not None
    await home.tail((await image_of(home)).end_offset)
    first: tuple[MetadataRecord, ...] = ()
    if (await image_of(home)).cluster_id is None:
        first = (ClusterCreated("the cluster"), LevelChanged(OURS.level_max))
    written = (*first, ControllerChanged(NODE, epoch, {}, name_reign()), *records)
    outcome = await home.append(written, expected_epoch=epoch, expected_end_offset=home.end_offset)
    assert isinstance(outcome, Committed)
    return epoch


async def image_of(home: Home) -> Image:
    image = Image()
    snapshot = await home.snapshot()
    image.replace(snapshot.facts, snapshot.end_offset)
    records = await home.tail(image.end_offset)
    assert records is not None
    image.apply_all(records)
    return image


def said(image: Image) -> list[MetadataRecord]:
    """All that it states, but for who decides."""
    return [each for each in image.facts() if not isinstance(each, ControllerChanged | HomeLeft)]


def test_the_metadata_go_to_etcd_and_back_as_one_history(etcd: RealHome | ModelledHome) -> None:
    async def story(lab: Lab) -> None:
        disk, reigns = MemoryDisk(), Reigns()
        disk.make_directory("/node")
        file = opened(disk)
        await decide(file, reigns, fact(1000), fact(2000))
        before = await image_of(file)

        there = await lab.open()
        await move(file, there, to=ETCD, node_id=NODE, name_reign=reigns)
        arrived = await image_of(there)
        assert said(arrived) == said(before)
        assert (arrived.cluster_id, arrived.left_for) == ("the cluster", None)
        assert arrived.holds(before.position)
        assert (await image_of(file)).left_for == ETCD

        epoch = await decide(there, reigns, fact(3000))
        assert epoch > before.controller_epoch
        grown = await image_of(there)
        assert grown.holds(before.position)

        file = opened(disk)
        await move(there, file, to=FILE, node_id=NODE, name_reign=reigns)
        home_again = await image_of(opened(disk))
        assert said(home_again) == said(grown)
        assert home_again.holds(grown.position)
        assert home_again.left_for is None
        assert (await image_of(there)).left_for == FILE
        file = opened(disk)
        assert await decide(file, reigns, fact(4000)) > epoch

        await move(file, await lab.open("later"), to=ETCD, node_id=NODE, name_reign=reigns)
        assert said(await image_of(await lab.open("last"))) == said(await image_of(file))

    etcd.tell(story)


class Interrupted(Exception):
    pass


class Fragile:
    """A home whose user is killed before, or after, the given call that changes something."""

    def __init__(self, home: Home, *, calls_until_death: int, is_after: bool) -> None:
        self._home = home
        self._calls = calls_until_death
        self._is_after = is_after

    def __getattr__(self, name: str) -> object:
        return getattr(self._home, name)

    async def take_over(self, node_id: NodeId, *, expected_epoch: int) -> int | None:
        return await self._lived(self._home.take_over(node_id, expected_epoch=expected_epoch))

    async def append(self, records: Sequence[MetadataRecord], **expected: int) -> object:
        return await self._lived(self._home.append(records, **expected))

    async def adopt(self, snapshot: Snapshot, *, node_id: NodeId, reign: str) -> None:
        await self._lived(self._home.adopt(snapshot, node_id=node_id, reign=reign))

    async def _lived(self, call: Coroutine[object, object, T]) -> T:
        self._calls -= 1
        if self._calls == 0 and not self._is_after:
            call.close()
            raise Interrupted
        answer = await call
        if self._calls == 0:
            raise Interrupted
        return answer


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("dies_at", ["source 1", "source 2", "target 1"])
@pytest.mark.parametrize("then", ["finish", "take back"])
def test_a_move_that_was_cut_short_is_finished_or_taken_back(dies_at: str, is_after: bool, then: str) -> None:
    async def story(lab: Lab) -> None:
        disk, reigns = MemoryDisk(), Reigns()
        disk.make_directory("/node")
        file = opened(disk)
        await decide(file, reigns, fact(1000))
        before = await image_of(file)
        where, _, number = dies_at.partition(" ")
        source, target = file, await lab.open()
        fragile: Home = Fragile(  # type: ignore[assignment]
            source if where == "source" else target, calls_until_death=int(number), is_after=is_after
        )
        with pytest.raises(Interrupted):
            await move(
                fragile if where == "source" else source,
                fragile if where == "target" else target,
                to=ETCD,
                node_id=NODE,
                name_reign=reigns,
            )
        source, target = opened(disk), await lab.open("again")
        has_left = (await image_of(source)).left_for is not None
        has_arrived = (await image_of(target)).cluster_id is not None
        assert has_left or not has_arrived, "at any moment one of the two can be decided in, and only one"
        if then == "finish":
            await move(source, target, to=ETCD, node_id=NODE, name_reign=reigns)
            assert said(await image_of(target)) == said(before)
            return
        if not has_left or has_arrived:
            with pytest.raises(InvalidRequest):
                await take_back(source, target, to=ETCD, node_id=NODE, name_reign=reigns)
            return
        await take_back(source, target, to=ETCD, node_id=NODE, name_reign=reigns)
        source = opened(disk)
        assert (await image_of(source)).left_for is None
        await decide(source, reigns, fact(2000))

    ModelledHome().tell(story)


def test_a_late_request_of_a_move_that_was_taken_back_changes_nothing() -> None:
    """What is on its way to etcd may be carried out long after its sender was killed."""

    async def story(lab: Lab) -> None:
        disk, reigns = MemoryDisk(), Reigns()
        disk.make_directory("/node")
        file = opened(disk)
        await decide(file, reigns, fact(1000))
        mover, other = await lab.open(listens=False), await lab.open("other")
        fragile: Home = Fragile(mover, calls_until_death=1, is_after=False)  # type: ignore[assignment]
        with pytest.raises(Interrupted):
            await move(file, fragile, to=ETCD, node_id=NODE, name_reign=reigns)
        image = await image_of(file)
        snapshot = Snapshot(image.controller_epoch, image.end_offset, tuple(image.facts()))
        # The late one has looked already, and finds the seat taken.
        looked = mover._store.read

        async def not_again() -> int:
            return 0

        await looked()
        await take_back(opened(disk), other, to=ETCD, node_id=NODE, name_reign=reigns)
        mover._store.read = not_again  # type: ignore[method-assign]
        with pytest.raises(MetadataUnavailable):
            await mover.adopt(snapshot, node_id=NODE, reign="late")
        assert (await image_of(await lab.open("last"))).cluster_id is None

    ModelledHome().tell(story)


def test_a_change_that_was_half_written_does_not_move_along() -> None:
    async def story(lab: Lab) -> None:
        disk, reigns = MemoryDisk(), Reigns()
        disk.make_directory("/node")
        file = opened(disk)
        await decide(file, reigns, fact(1000), ChangeBegun(), fact(2000))
        target = await lab.open()
        await move(file, target, to=ETCD, node_id=NODE, name_reign=reigns)
        image = await image_of(target)
        assert (image.is_amid_change, image.end_producer_id) == (False, 1000)

    ModelledHome().tell(story)


async def _of_another_cluster(home: Home, reigns: Reigns) -> None:
    epoch = await home.take_over(NODE, expected_epoch=0)
    assert epoch is not None
    written = (ClusterCreated("another"), LevelChanged(OURS.level_max), ControllerChanged(NODE, epoch))
    await home.append(written, expected_epoch=epoch, expected_end_offset=0)


async def _of_another_history(home: Home, reigns: Reigns) -> None:
    await decide(home, reigns, fact(7000), fact(8000))


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        pytest.param(_of_another_cluster, "cluster another", id="another cluster"),
        pytest.param(_of_another_history, "another history", id="another history"),
    ],
)
def test_a_home_that_holds_something_else_is_refused_and_nothing_is_changed(prepare, reason: str) -> None:  # type: ignore[no-untyped-def]
    async def story(lab: Lab) -> None:
        disk, reigns = MemoryDisk(), Reigns()
        disk.make_directory("/node")
        file = opened(disk)
        await decide(file, reigns, fact(1000))
        target = await lab.open()
        await prepare(target, reigns)
        with pytest.raises(InvalidRequest, match=reason):
            await move(file, target, to=ETCD, node_id=NODE, name_reign=reigns)
        assert (await image_of(file)).left_for is None

    ModelledHome().tell(story)


def test_nothing_is_moved_from_where_nothing_is_and_never_to_two_homes() -> None:
    async def story(lab: Lab) -> None:
        disk, reigns = MemoryDisk(), Reigns()
        disk.make_directory("/node")
        file, target = opened(disk), await lab.open()
        with pytest.raises(InvalidRequest, match="no cluster"):
            await move(file, target, to=ETCD, node_id=NODE, name_reign=reigns)
        await decide(file, reigns, fact(1000))
        await move(file, target, to=ETCD, node_id=NODE, name_reign=reigns)
        with pytest.raises(InvalidRequest, match="on their way"):
            await move(file, target, to="elsewhere", node_id=NODE, name_reign=reigns)

    ModelledHome().tell(story)
