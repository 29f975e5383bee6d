"""The metadata log in etcd keeps the port's promises, at a real etcd and at the model of it alike."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import pytest

from ropewalk.base.errors import MetadataUnavailable
from ropewalk.base.ids import NodeId, ProducerId
from ropewalk.metadata.etcd.log import EtcdMetadataLog
from ropewalk.metadata.log import AppendOutcome, Committed, Holder, Raced, Snapshot, Unknown
from ropewalk.metadata.records import BrokerSettingsChanged, MetadataRecord, ProducerIdsAllocated
from ropewalk.sim.machines.etcd import ModelledEtcd
from tests.metadata.etcd_homes import Lab, ModelledHome, RealHome
from tests.metadata.etcd_members import EtcdMembers

ONE, OTHER = NodeId(1), NodeId(2)


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdMembers]:
    members = EtcdMembers(tmp_path_factory.mktemp("etcd"))
    yield members
    members.stop()


@pytest.fixture(
    params=["model", pytest.param("real", marks=pytest.mark.compat)],
)
def home(request: pytest.FixtureRequest) -> RealHome | ModelledHome:
    if request.param == "model":
        return ModelledHome()
    return RealHome(request.getfixturevalue("members"))


def fact(number: int) -> MetadataRecord:
    return ProducerIdsAllocated(NodeId(0), ProducerId(number))


def large(size_bytes: int) -> MetadataRecord:
    return BrokerSettingsChanged(None, {"note": "x" * size_bytes})


async def seated(log: EtcdMetadataLog, node_id: NodeId = ONE) -> EtcdMetadataLog:
    holder = log.holder
    epoch = await log.take_over(node_id, expected_epoch=0 if holder is None else holder.epoch)
    assert epoch is not None
    return log


async def append(log: EtcdMetadataLog, *records: MetadataRecord) -> AppendOutcome:
    return await log.append(records, expected_epoch=log.epoch, expected_end_offset=log.end_offset)


async def until_end(log: EtcdMetadataLog, end_offset: int) -> None:
    async with asyncio.timeout(30):
        while log.end_offset < end_offset:
            await log.news(
                end_offset=log.end_offset,
                holder_epoch=log.holder.epoch if log.holder else 0,
                timeout_ms=30_000,
            )


def test_what_one_appends_another_reads_and_hears(home: RealHome | ModelledHome) -> None:
    async def story(lab: Lab) -> None:
        one, other = await seated(await lab.open()), await lab.open("other")
        assert await append(one, fact(1), fact(2)) == Committed(2)
        assert await append(one, fact(3)) == Committed(3)
        await until_end(other, 3)
        assert other.heard(1) == (fact(2), fact(3))
        assert await other.tail(3) == ()
        assert other.holder == Holder(ONE, 1, is_alive=True)
        late = await lab.open("late", listens=False)
        assert await late.tail(0) == (fact(1), fact(2), fact(3))
        assert await late.snapshot() == Snapshot(0, 0, ())

    home.tell(story)


def test_whoever_was_replaced_changes_nothing(home: RealHome | ModelledHome) -> None:
    async def story(lab: Lab) -> None:
        one, other = await seated(await lab.open(listens=False)), await lab.open("other")
        assert await append(one, fact(1)) == Committed(1)
        assert await other.take_over(OTHER, expected_epoch=0) is None
        assert await other.take_over(OTHER, expected_epoch=1) == 2
        assert one.holder == Holder(ONE, 1), "it has not heard of it"
        assert await append(one, fact(2)) == Raced(2, 1)
        assert await append(one, fact(2)) == Raced(2, 1)
        with pytest.raises(MetadataUnavailable, match="another controller"):
            await one.write_snapshot(Snapshot(1, 1, (fact(1),)))
        assert await append(other, fact(3)) == Committed(2)
        assert await one.tail(0) == (fact(1), fact(3))
        assert await one.take_over(ONE, expected_epoch=2) == 3
        assert await append(one, fact(4)) == Committed(3)

    home.tell(story)


def test_whoever_knows_an_older_end_is_told_the_newer_one(home: RealHome | ModelledHome) -> None:
    async def story(lab: Lab) -> None:
        one = await seated(await lab.open())
        assert await append(one, fact(1)) == Committed(1)
        assert await one.append([fact(2)], expected_epoch=1, expected_end_offset=0) == Raced(1, 1)

    home.tell(story)


def test_of_many_who_take_over_at_once_one_does(home: RealHome | ModelledHome) -> None:
    async def story(lab: Lab) -> None:
        logs = [await lab.open(f"log-{number}") for number in range(5)]
        epochs = await asyncio.gather(
            *(log.take_over(NodeId(number), expected_epoch=0) for number, log in enumerate(logs))
        )
        assert sorted(epochs, key=str) == [1, None, None, None, None]

    home.tell(story)


def test_a_snapshot_takes_the_place_of_what_it_stands_for(home: RealHome | ModelledHome) -> None:
    """Its facts are larger than any request, and those who were away find nothing older."""

    async def story(lab: Lab) -> None:
        behind = await lab.open("behind", listens=False)
        one, other = await seated(await lab.open()), await lab.open("other")
        facts = (fact(5), large(900_000), large(900_001), large(900_002))
        for number in range(3):
            assert isinstance(await append(one, fact(number)), Committed)
        await one.write_snapshot(Snapshot(1, 3, facts[:1]))
        assert isinstance(await append(one, fact(4)), Committed)
        await one.write_snapshot(Snapshot(1, 4, facts))
        assert await append(one, fact(5)) == Committed(5)
        assert await behind.tail(0) is None
        assert await behind.snapshot() == Snapshot(1, 4, facts)
        assert await behind.tail(4) == (fact(5),)
        await until_end(other, 5)
        assert await other.tail(3) == (fact(4), fact(5)), "what was heard is kept for one snapshot longer"
        late = await lab.open("late", listens=False)
        assert await late.snapshot() == Snapshot(1, 4, facts)
        assert late.heard(4) == (fact(5),)

    home.tell(story)


def test_so_much_is_appended_that_a_snapshot_is_due(home: RealHome | ModelledHome) -> None:
    async def story(lab: Lab) -> None:
        one, other = await seated(await lab.open()), await lab.open("other", listens=False)
        while not one.snapshot_due:
            assert isinstance(await append(one, large(1_000_000)), Committed)
        count = one.end_offset
        assert count == 5
        records = await other.tail(0)
        assert records is not None
        assert len(records) == count
        await one.write_snapshot(Snapshot(1, count, (fact(1),)))
        assert not one.snapshot_due

    home.tell(story)


def test_one_member_may_go_and_all_goes_on(home: RealHome | ModelledHome) -> None:
    async def story(lab: Lab) -> None:
        one, other = await seated(await lab.open()), await lab.open("other")
        written = [fact(0)]
        assert isinstance(await append(one, fact(0)), Committed)
        for member in range(3):
            lab.etcd.kill_member(member)
            async with asyncio.timeout(20):
                await _append_until_committed(one, fact(member + 1))
            written.append(fact(member + 1))
            await until_end(other, len(written))
            await lab.etcd.start_member(member)
            async with asyncio.timeout(20):
                await _append_until_committed(one, fact(member + 11))
            written.append(fact(member + 11))
        assert await other.tail(0) == tuple(written)

    home.tell(story)


async def _append_until_committed(log: EtcdMetadataLog, record: MetadataRecord) -> None:
    """As a controller does it: after an unknown outcome the tail is read before anything is decided again."""
    while True:
        try:
            outcome = await append(log, record)
            if isinstance(outcome, Committed):
                return
            assert isinstance(outcome, Unknown), outcome
            records = await log.tail(0)
            assert records is not None
            if record in records:
                return
        except MetadataUnavailable:
            await asyncio.sleep(0.1)


def test_with_all_members_gone_it_is_said_and_heals_by_itself(home: RealHome | ModelledHome) -> None:
    async def story(lab: Lab) -> None:
        one, other = await seated(await lab.open()), await lab.open("other")
        assert await append(one, fact(1)) == Committed(1)
        await until_end(other, 1)
        for member in range(3):
            lab.etcd.kill_member(member)
        with suppress(MetadataUnavailable):  # the first may have been on its way
            assert isinstance(await append(one, fact(2)), Unknown)
        with pytest.raises(MetadataUnavailable, match="cannot be reached"):
            await append(one, fact(2))
        with pytest.raises(MetadataUnavailable, match="cannot be read"):
            await other.tail(0)
        assert other.heard(0) == (fact(1),), "what is known goes on to count"
        assert all(troubles(one, other))
        with pytest.raises(MetadataUnavailable):
            await lab.open("late")
        for member in range(3):
            await lab.etcd.start_member(member)
        async with asyncio.timeout(30):
            while any(troubles(one, other)):
                await asyncio.sleep(0.05)
            await _append_until_committed(one, fact(3))
        records = await one.tail(0)
        assert records is not None
        assert records in ((fact(1), fact(3)), (fact(1), fact(2), fact(3)))
        await until_end(other, len(records))

    home.tell(story)


def test_whoever_asks_for_old_news_again_and_again_holds_nobody_up(home: RealHome | ModelledHome) -> None:
    async def story(lab: Lab) -> None:
        one = await seated(await lab.open())
        assert await append(one, fact(1)) == Committed(1)
        appending = asyncio.ensure_future(append(one, fact(2)))
        while not appending.done():
            await one.news(end_offset=0, holder_epoch=1, timeout_ms=10_000)
        assert await appending == Committed(2)

    home.tell(story)


def troubles(*logs: EtcdMetadataLog) -> list[str | None]:
    return [log.trouble for log in logs]


def test_a_holder_that_is_gone_is_noticed(home: RealHome | ModelledHome) -> None:
    async def story(lab: Lab) -> None:
        await seated(await lab.open(listens=False))
        other = await lab.open("other")
        assert other.holder == Holder(ONE, 1, is_alive=True)
        async with asyncio.timeout(30):
            while other.holder == Holder(ONE, 1, is_alive=True):
                await asyncio.sleep(0.1)
        assert other.holder == Holder(ONE, 1, is_alive=False)

    home.tell(story)


def test_nothing_of_another_history_is_heard_on_a_watch_from_before_it_was_put_back() -> None:
    async def story(lab: Lab) -> None:
        etcd = lab.etcd
        assert isinstance(etcd, ModelledEtcd)
        one, other = await seated(await lab.open()), await lab.open("other")
        assert await append(one, fact(1)) == Committed(1)
        backup = etcd.state.copy()
        assert await append(one, fact(2)) == Committed(2)
        await until_end(other, 2)
        await etcd.put_back(backup)
        late = await seated(await lab.open("late"))
        assert await append(late, fact(3)) == Committed(2)
        assert await append(late, fact(4)) == Committed(3)  # it begins where the other history ended
        async with asyncio.timeout(30):
            while other.parted is None:
                await other.news(end_offset=other.end_offset, holder_epoch=1, timeout_ms=1_000)
        assert other.heard(0) == (fact(1), fact(2))

    ModelledHome().tell(story)
