"""What a fetcher tells leaders of copies that are cut or go from one to the next; and that it rests where it is refused."""

import asyncio

import pytest

from ropewalk.base.errors import FencedEpoch, RopewalkError
from ropewalk.base.ids import LeaderEpoch, NodeId, Offset, TopicId
from ropewalk.base.limits import REPLICA_RETRY_MS
from ropewalk.broker.copying.fetcher import Fetcher, Work
from ropewalk.broker.partitions.catch_up import CatchUpBudget
from ropewalk.broker.partitions.replica import Replica
from ropewalk.broker.peers.calls.fetch import Fetched, ReplicaFetch, understood
from ropewalk.metadata.image import Image
from ropewalk.metadata.settings.applied import AppliedSettings
from ropewalk.metadata.settings.effective import SettingsView
from ropewalk.records.batch import BatchHeader, stamp
from ropewalk.records.record import Record, build
from ropewalk.replication.follower import Question, Restart, Truncate
from ropewalk.sim.machines.world import EPOCH_MS
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from tests.broker.partition_bench import TOPIC_ID
from tests.broker.test_cutting import Copy, with_a_copy

FORMER, PRESENT = NodeId(1), NodeId(2)
KEY = TOPIC_ID, 0


class Copier:
    """The node around two fetchers. The former leader has nothing beyond offset 12; the present one agrees with the copy, or not."""

    def __init__(self, copy: Copy, *, present_agrees: bool) -> None:
        self.node_id = NodeId(0)
        self.clock = copy.cutting._clock
        self.commits = copy.home.commits
        self.budget = CatchUpBudget(1 << 30)
        self.settings = AppliedSettings(SettingsView(Image(), NodeId(0), {})).of_broker
        self.broker_epoch = 7
        self.told: list[tuple[NodeId, int]] = []
        """Who was asked for which offset: by that it takes everything before for held."""
        self.works: list[asyncio.Task[None]] = []
        self._copy = copy
        self._present_agrees = present_agrees
        self.fetchers = {leader: Fetcher(leader, self) for leader in (FORMER, PRESENT)}

    def counts_on(self, _topic_id: TopicId, _index: int) -> bool:
        return True

    async def fetch(
        self, leader: NodeId, asked: ReplicaFetch, *, deadline_ms: float
    ) -> Fetched | RopewalkError:
        return understood(await self.answer(leader, asked))

    async def answer(self, leader: NodeId, request: ReplicaFetch) -> FetchResponse:
        asked = _questions(request)
        self.told += [(leader, each.fetch_offset) for each in asked]
        await asyncio.sleep(0.01 if asked else 1)
        agrees = leader == PRESENT and self._present_agrees
        parted = EpochEndOffset() if agrees else EpochEndOffset(5, 12)
        answers = [
            PartitionData(
                index=0,
                error_code=0,
                high_watermark=0,
                log_start_offset=0,
                diverging_epoch=parted if each.fetch_offset > 12 else EpochEndOffset(),
            )
            for each in asked
        ]
        return FetchResponse(
            0, 0, 1, (FetchableTopicResponse("", TOPIC_ID, tuple(answers)),) if answers else ()
        )

    async def hurry(self, leader: NodeId, session_id: int, session_epoch: int) -> None:
        pass

    async def cut(self, replica: Replica, effect: Truncate | Restart, *, leader_epoch: LeaderEpoch) -> None:
        try:
            await self._copy.cutting.cut_back(
                replica, self._copy.home, effect.offset, leader_epoch=leader_epoch
            )
        finally:
            self.fetchers[PRESENT].hurry()

    async def move_start(self, replica: Replica, offset: Offset) -> None:
        pass

    def begin(self, work: Work) -> None:
        self.works.append(asyncio.ensure_future(work()))


@pytest.mark.parametrize("present_agrees", [True, False])
def test_the_next_leader_is_told_nothing_while_the_copy_is_being_cut(present_agrees: bool) -> None:
    """What it is asked for it counts as held; and a second cut beside the first would end the node."""

    async def story(copy: Copy) -> None:
        copier = Copier(copy, present_agrees=present_agrees)
        copy.work.begin(copy.log)  # compaction, say: the cut has to wait for it
        copier.fetchers[FORMER].follow(KEY, copy.replica, is_in_sync=True)
        runs = [asyncio.ensure_future(fetcher.run()) for fetcher in copier.fetchers.values()]
        while not copy.replica.is_at_work:
            await asyncio.sleep(0.001)
        copy.replica.set_leader(PRESENT, LeaderEpoch(1))
        copier.fetchers[FORMER].leave(KEY)
        copier.fetchers[PRESENT].follow(KEY, copy.replica, is_in_sync=True)
        await asyncio.sleep(1)
        assert copier.told == [(FORMER, 20)]
        copy.work.end(copy.log)
        await asyncio.sleep(1)
        assert copier.told == [(FORMER, 20), (PRESENT, 12)]
        assert [work.exception() for work in copier.works] == [None]
        for run in runs:
            run.cancel()
        await asyncio.wait(runs)

    with_a_copy(story)


def test_a_cut_is_not_begun_on_the_word_of_a_leader_that_was_followed_by_another() -> None:
    """The next one may have been told already of what would be cut."""

    async def story(copy: Copy) -> int:
        copy.replica.set_leader(PRESENT, LeaderEpoch(1))
        for cut in (copy.cutting.cut_back, copy.cutting.begin_anew):
            with pytest.raises(FencedEpoch):
                await cut(copy.replica, copy.home, Offset(13), leader_epoch=LeaderEpoch(0))
        return copy.log.end_offset

    assert with_a_copy(story) == 20


class TwoLeaders(Copier):
    """The former leader sends ten batches of epoch 9. The present one has those that it is told of first, and then its own."""

    def __init__(self, copy: Copy) -> None:
        super().__init__(copy, present_agrees=True)
        self.parted_offset = 0
        self._place = 0

    async def answer(self, leader: NodeId, request: ReplicaFetch) -> FetchResponse:
        for asked in _questions(request):
            self.told.append((leader, asked.fetch_offset))
            self._place = asked.fetch_offset
            if leader == PRESENT:
                self.parted_offset = self.parted_offset or asked.fetch_offset
                if asked.last_fetched_epoch == 9 and asked.fetch_offset > self.parted_offset:
                    return _answer(PartitionData(0, 0, 0, 0, 0, EpochEndOffset(9, self.parted_offset)))
        await asyncio.sleep(0.1)
        epoch, end_offset = (9, 40) if leader == FORMER else (10, 60)
        return _answer(
            PartitionData(
                0, 0, 0, 0, 0, records=b"".join(_batch(at, epoch) for at in range(self._place, end_offset, 2))
            )
        )


def _questions(request: ReplicaFetch) -> list[Question]:
    return [question for named in request.named.values() for _, question in named]


def _answer(data: PartitionData) -> FetchResponse:
    return FetchResponse(0, 0, 1, (FetchableTopicResponse("", TOPIC_ID, (data,)),))


def _batch(base_offset: int, epoch: int) -> bytes:
    batch = build([Record(timestamp=EPOCH_MS, value=b"v") for _ in range(2)])
    stamp(memoryview(batch), base_offset=Offset(base_offset), leader_epoch=LeaderEpoch(epoch))
    return bytes(batch)


def test_what_a_former_leader_sent_is_not_appended_in_the_epoch_of_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An answer is worked off in turns. What comes of it too late would lie where the next leader has something else."""
    monkeypatch.setattr("ropewalk.broker.copying.fetcher.REPLICA_BYTES_PER_TURN", 1)

    async def story(copy: Copy) -> None:
        copy.replica.set_durable_first(False)
        copy.replica.set_leader(FORMER, LeaderEpoch(9))
        copier = TwoLeaders(copy)
        append = copy.replica.append

        def switch() -> None:
            copy.replica.set_leader(PRESENT, LeaderEpoch(10))
            copier.fetchers[FORMER].leave(KEY)
            copier.fetchers[PRESENT].follow(KEY, copy.replica, is_in_sync=True)

        def append_and_switch(batch: memoryview, header: BatchHeader, now_ms: int) -> None:
            if copy.log.end_offset == 20:
                asyncio.get_running_loop().call_soon(switch)
            append(batch, header, now_ms)

        monkeypatch.setattr(copy.replica, "append", append_and_switch)
        copier.fetchers[FORMER].follow(KEY, copy.replica, is_in_sync=True)
        runs = [asyncio.ensure_future(fetcher.run()) for fetcher in copier.fetchers.values()]
        await asyncio.sleep(5)
        for run in runs:
            run.cancel()
        await asyncio.wait(runs)
        assert copy.log.end_offset == 60
        epochs = [copy.log.epoch_at(Offset(offset)) for offset in range(20, 60)]
        assert epochs == [9 if offset < copier.parted_offset else 10 for offset in range(20, 60)]

    with_a_copy(story)


class Refusing(Copier):
    """Leaders that refuse: the partition, or whatever session is begun."""

    def __init__(self, copy: Copy, *, partition_error: ErrorCode, session_error: ErrorCode) -> None:
        super().__init__(copy, present_agrees=True)
        self._partition_error = partition_error
        self._session_error = session_error
        self.turn_count = 0
        """Fetches and syncs."""
        commit = copy.home.commits.commit

        async def counted() -> None:
            self.turn_count += 1
            await commit()

        copy.home.commits.commit = counted  # type: ignore[method-assign]  # to count them

    async def answer(self, leader: NodeId, request: ReplicaFetch) -> FetchResponse:
        self.turn_count += 1
        await asyncio.sleep(max(0.001, request.wait_ms_max / 1000 if not request.named else 0))
        if self._session_error:
            return FetchResponse(0, self._session_error, 0, ())
        if not request.named:
            return FetchResponse(0, 0, 1, ())
        return _answer(PartitionData(0, self._partition_error, -1, -1, -1))


@pytest.mark.parametrize("flush", ["group", "os"])
@pytest.mark.parametrize(
    ("partition_error", "session_error"),
    [
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE),
        (ErrorCode.NONE, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (ErrorCode.NONE, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_was_refused_is_not_asked_again_at_once(
    flush: str, partition_error: ErrorCode, session_error: ErrorCode
) -> None:
    """Nor is the disk kept busy meanwhile with nothing to sync: a log with flush=os is dirty nearly always."""

    async def story(copy: Copy) -> int:
        copy.replica.set_durable_first(flush == "group")
        if flush == "os":
            copy.write("more", epoch=20)
            assert copy.log.dirty
        copier = Refusing(copy, partition_error=partition_error, session_error=session_error)
        copier.fetchers[FORMER].follow(KEY, copy.replica, is_in_sync=True)
        run = asyncio.ensure_future(copier.fetchers[FORMER].run())
        await asyncio.sleep(10)
        run.cancel()
        await asyncio.wait([run])
        return copier.turn_count

    assert with_a_copy(story) <= 12_000 / REPLICA_RETRY_MS
