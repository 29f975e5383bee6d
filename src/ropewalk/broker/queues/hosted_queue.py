"""The life of one partition of a queue, hosted beside the partition that holds its messages and its state.

    send      the messages of a turn of the loop go into the log as one batch; answered when that is committed
    ask       the core decides at once; what it has changed goes into the log at the end of the turn, as one delta (`turn.py`).
              Replies leave when that is committed, prompts at once
    receive   as `ask`, and what is given out is read from the log where it is not at hand

    LOADING        the state is read (`loading.py`); a receive waits within its own time, whoever else asks is told to come back
    SERVING        from the end of `load` on
    READING_AGAIN  an append failed: nothing that was decided since can be trusted, so the core was thrown away, everyone who waits for
                   an outcome was told that it is unknown, and the state is to be read again
    ENDED          it is no longer hosted here

Invariants
    There is a core if and only if the queue is served here.
    What is decided about a FIFO queue's messages, and their append, happen in one go: nothing comes in between.
    A refusal is definite (`QueueNotReady`) only where nothing was written; otherwise the outcome is unknown (`ShardUnavailable`).
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final, Generic, TypeVar

import structlog
from msgspec import Struct
from pyroaring import BitMap64

from ropewalk.base.errors import (
    DiskFull,
    QueueNotReady,
    RopewalkError,
)
from ropewalk.base.ids import Offset
from ropewalk.base.limits import (
    QUEUE_ACQUIRE_WRITE_MS_MAX,
    QUEUE_READS_PER_TURN_MAX,
    QUEUE_REST_MS,
    QUEUE_WAITING_RECEIVES_MAX,
)
from ropewalk.base.ports import Pool
from ropewalk.base.state_machine import Command
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.queues import turn
from ropewalk.broker.queues.lives import LEGAL, Life
from ropewalk.broker.queues.loading import Loaded, load
from ropewalk.broker.queues.opened import messages_of
from ropewalk.broker.queues.read_ahead import ReadAheadRoom
from ropewalk.broker.queues.releases import Due, Releases, fail, outcome_unknown, refuse
from ropewalk.broker.queues.sendings import Sendings
from ropewalk.broker.queues.snapshots import SnapshotSchedule
from ropewalk.broker.queues.supply import Supply
from ropewalk.broker.queues.time import Time
from ropewalk.metadata.queues import Queue
from ropewalk.queues import QueuePartition, commands
from ropewalk.queues.answers import Noted, Received
from ropewalk.queues.attempts import first_attempt
from ropewalk.queues.commands import Expire, Receive
from ropewalk.queues.errors import TooManyWaiting
from ropewalk.queues.log_clock import LogClock
from ropewalk.queues.messages import Delivered, Outgoing, Receipt, Sent
from ropewalk.queues.settings import QueueSettings
from ropewalk.queues.step import QueueStep
from ropewalk.records.record import Record

T = TypeVar("T")

_log = structlog.get_logger()

_NOBODY: Final = 0
"""The token of commands whose answers nobody waits for."""
_WRITES_PER_TURN_MAX: Final = 4
"""What is read after a delta may give something out that has to be written, too: on FIFO queues, to receivers that wait."""


class Asked(Struct, Generic[T], frozen=True):
    """A question on its way. Await `answer`; it raises what the core or the host refuses with."""

    token: int
    answer: "asyncio.Future[T]"


class _Parked(Struct):
    """A receive that has met a queue which is being loaded."""

    command: Receive
    due_ms: int
    answer: "asyncio.Future[Received]"
    timer: asyncio.TimerHandle


class HostedQueue:
    """Serves from the end of `load` until `end`, with pauses to load again. All of it on the event loop."""

    def __init__(
        self,
        queue: Queue,
        settings: QueueSettings,
        partition: Partition,
        *,
        time: Time,
        pool: Pool,
        room: ReadAheadRoom,
        commit_timeout_ms: Callable[[], int],
        on_thrown_away: "Callable[[HostedQueue], None]",
        on_producer_wanted: "Callable[[HostedQueue], None]",
    ) -> None:
        self.queue = queue
        self.settings = settings
        self.partition = partition
        self.index = partition.name.partition
        self._time = time
        self._pool = pool
        self._on_thrown_away = on_thrown_away
        self._on_producer_wanted = on_producer_wanted
        self._is_producer_asked_for = False
        self._life = Life.LOADING
        self._core: QueuePartition | None = None
        self._log_clock = LogClock(log_ms=0, now_ms=0)
        self._refusal: RopewalkError = QueueNotReady(f"{partition.name} is being read")
        self._tokens = count(_NOBODY + 1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        """Those whom the core has not answered: receives that wait, and who carries dead letters."""
        self._parked: dict[int, _Parked] = {}
        self._sendings = Sendings(partition)
        self._due: Due = []
        """Decided in this turn, and to be told when what it appends is committed."""
        self._releases = Releases(partition, commit_timeout_ms=commit_timeout_ms)
        self._attempt_end = 0
        """After the latest of a core that was thrown away."""
        self._end_offset = Offset(0)
        """After the last that the state contains and the log too."""
        self._supply = Supply(partition, pool, room, on_news=self._turn_soon)
        self._written_offsets = BitMap64()
        """Of what is no message and was not read yet: state that was written here, or met while loading."""
        self.snapshots = SnapshotSchedule(partition)
        self._turn_is_due = False
        self._writes_at_once = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_ms = 0.0
        partition.watch(self)

    # What it is

    @property
    def is_serving(self) -> bool:
        return self._core is not None

    @property
    def has_ended(self) -> bool:
        return self._life is Life.ENDED

    @property
    def core(self) -> QueuePartition | None:
        """For looking at from outside, None while it is being loaded. What is seen may not be committed yet."""
        return self._core

    @property
    def log_clock(self) -> LogClock:
        """The core's, for looking at from outside."""
        return self._log_clock

    @property
    def pending_bytes(self) -> int:
        """What waits for the end of the turn: by this the least loaded partition is found."""
        return self._sendings.pending_bytes

    def unread_message_count(self) -> int:
        """Messages in the log that the core was not told of, as far as is known."""
        read_end = self.serving().read_end
        self._written_offsets.remove_range(0, read_end)
        return max(self.partition.last_stable_offset - read_end - len(self._written_offsets), 0)

    def untold_records(self) -> list[Record]:
        """Just written, and not told to the core: nobody has received since."""
        return self._supply.ahead.untold_records()

    def now_ms(self) -> int:
        return self._time.now_ms()

    def serving(self) -> QueuePartition:
        if self._core is None:
            raise self._refusal.with_traceback(None)  # one error, raised often: it would remember every time
        return self._core

    # Its life

    async def load(self) -> None:
        """Raises what keeps the log from being read, or the first snapshot from being written; the queue then goes on refusing."""
        starts = self.queue.starts
        loaded = await load(
            self.partition,
            self.queue.queue_id,
            self.settings,
            start_offset=starts[self.index] if self.index < len(starts) else 0,
            pool=self._pool,
        )
        self.partition.check_readable()
        if self._life is not Life.ENDED:
            self._begin(loaded)

    def change(self, queue: Queue, settings: QueueSettings) -> None:
        """Its attributes, or what follows from others' facts, are different now."""
        self.queue = queue
        if settings == self.settings:
            return
        self.settings = settings
        if self._core is not None:
            self._carry_out(self._core.change_settings(settings, self._time.now_ms()))

    def note_held_elsewhere(self, count: int) -> None:
        """Other partitions of the queue have so many messages in flight."""
        if self._core is not None and count != self._core.held_elsewhere_count:
            self._carry_out(self._core.on_held_elsewhere(count, self._time.now_ms()))

    def write_down(self, *, whole: bool) -> None:
        """Somebody else is to lead: nothing is in memory alone from here on. `whole`: as a snapshot, if anything was written since the last."""
        self._writes_at_once = True
        if self._core is None:
            return
        is_unwritten = self._core.must_write(self._time.now_ms() + QUEUE_ACQUIRE_WRITE_MS_MAX)
        if whole and (self.snapshots.has_written or is_unwritten):
            self.snapshots.want()
        self._take_turn()

    def committed(self, timeout_ms: int) -> "asyncio.Future[None] | None":
        """Done when all that was written here is committed; None where it is."""
        return self.partition.expect(self._end_offset, timeout_ms)

    def write_snapshot(self) -> None:
        """Soon, with what is not written yet."""
        self.snapshots.want()
        self._turn_soon()

    def say_farewell(self) -> None:
        """The queue was deleted and its topic stays: nobody needs its state any more."""
        try:
            turn.append_farewell(self.partition, self.queue.queue_id, self._time.now_ms())
        except RopewalkError as error:  # deleted with its topic, or led elsewhere: then that leader says it
            _log.info(
                "a queue that is gone left its state", partition=str(self.partition.name), reason=str(error)
            )

    def end(self, reason: RopewalkError) -> None:
        """The queue is no longer hosted here."""
        if self._life is not Life.ENDED:
            self.partition.unwatch(self)
        self._let_go(Life.ENDED, reason)
        for parked in self._parked.values():
            parked.timer.cancel()
            fail(parked.answer, reason)
        self._parked = {}

    # What is asked

    def send(self, messages: Sequence[Outgoing]) -> "asyncio.Future[list[Sent | RopewalkError]]":
        """Raises what nothing can be written for now; what is refused of single messages is in the answer."""
        self.serving()
        self.check_may_write()
        answer = self._sendings.add(messages)
        self._turn_soon()
        return answer

    def ask(self, command: Command[T]) -> Asked[T]:
        """Takes effect before this returns. Raises what nothing can be written for now, if it would only write."""
        core = self.serving()
        if isinstance(command, Receive) and not self.settings.is_fifo:
            self._check_room()
        elif not isinstance(command, commands.NextMove):
            self.check_may_write()
        token = next(self._tokens)
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._asked[token] = answer
        any_command: Any = command  # what it is answered with is between the core and whoever asks
        self._carry_out(core.decide(token, any_command, self._time.now_ms()))
        return Asked(token, answer)

    def purge(self) -> Asked[Noted]:
        """What was sent before is purged, also in this turn; what is sent afterwards is not."""
        core = self.serving()
        self.check_may_write()
        try:
            self._append_sendings(core)
        except RopewalkError as error:
            self._throw_away(error)
        return self.ask(commands.Purge(self.partition.log.end_offset))

    def receive(self, command: Receive) -> Asked[Received]:
        """As `ask`; while the queue is being loaded it waits within its own time."""
        if self._core is not None or self._life is Life.ENDED or command.wait_ms <= 0:
            return self.ask(command)
        if len(self._parked) >= QUEUE_WAITING_RECEIVES_MAX:
            raise TooManyWaiting(f"{QUEUE_WAITING_RECEIVES_MAX} receives wait here already")
        loop = asyncio.get_running_loop()
        token = next(self._tokens)
        answer: asyncio.Future[Received] = loop.create_future()
        timer = loop.call_later(command.wait_ms / 1000, self._on_parked_too_long, token)
        self._parked[token] = _Parked(command, self._time.now_ms() + command.wait_ms, answer, timer)
        return Asked(token, answer)

    def at_hand(self, received: Received) -> list[Delivered] | None:
        """The messages that were given, as `deliver` has them; None, and nothing is taken, where that would wait for the disk."""
        ahead, offsets = self._supply.ahead, [given.offset for given in received.messages]
        return self._delivered(received, ahead.take(offsets)) if ahead.has(offsets) else None

    async def deliver(self, received: Received) -> list[Delivered]:
        """The messages that were given, with what they say. May be awaited where there is no task.

        What is no longer in the log is left out. Raises `StorageFailed` where it cannot be read.
        """
        records = await self._supply.records_at([given.offset for given in received.messages])
        there = tuple([given for given in received.messages if given.offset in records])
        return self._delivered(Received(received.attempt, there), [records[each.offset] for each in there])

    def _delivered(self, received: Received, records: Sequence[Record]) -> list[Delivered]:
        index, attempt = self.index, received.attempt
        return [
            Delivered(
                Receipt(index, given.offset, attempt), record, given.receive_count, given.first_received_at_ms
            )
            for given, record in zip(received.messages, records, strict=True)
        ]

    def release(self, received: Received) -> None:
        """It was given to somebody who has gone: visible at once, and not counted."""
        if received.messages and self._core is not None:
            handles = tuple([commands.Handle(each.offset, received.attempt) for each in received.messages])
            self._carry_out(self._core.decide(_NOBODY, commands.Release(handles), self._time.now_ms()))

    def forget(self, token: int) -> None:
        """Whoever asked has gone, and is not answered. What was given already has to be released."""
        parked = self._parked.pop(token, None)
        if parked is not None:
            parked.timer.cancel()
        if self._asked.pop(token, None) is not None and self._core is not None:
            self._core.forget(token)

    def check_may_write(self) -> None:
        """Raise if what is written now could not be committed: asked before anything is decided."""
        self._check_room()
        if self.partition.followers is not None:
            self.partition.followers.check_enough()

    def _check_room(self) -> None:
        self.partition.check_readable()
        if not self.partition.log.has_room:
            raise DiskFull(f"{self.partition.name}: the disk is full; nothing is written until there is room")

    # What the partition tells

    def on_growth(self, grown_bytes: int) -> None:  # noqa: ARG002
        self._turn_soon()

    def on_change(self) -> None:
        self._turn_soon()

    def on_end(self) -> None:
        self._let_go(Life.ENDED, QueueNotReady(f"{self.partition.name} is not led here any more"))

    def on_clock_moved(self) -> None:
        """The clock has been moved ahead: what waits for a time waits for less of it."""
        if self._timer is not None:
            self._set_timer(self._timer_due_ms)

    # How it works

    def _begin(self, loaded: Loaded) -> None:
        """From here to the end nobody else runs."""
        now_ms = self._time.now_ms()
        state = loaded.state
        self._log_clock = LogClock(log_ms=state.log_ms, now_ms=now_ms)
        core = QueuePartition(
            self.settings,
            state,
            committed_end=loaded.end_offset,
            now_ms=now_ms,
            first_attempt=max(first_attempt(self.partition.leader_epoch), self._attempt_end),
        )
        self.snapshots.begin(loaded)
        self._is_producer_asked_for = False
        self._written_offsets = BitMap64(loaded.written_offsets)
        self._end_offset = loaded.end_offset
        if loaded.is_new:
            self._append_snapshot(core)
        self._life = self._checked(Life.SERVING)
        self._core = core
        parked, self._parked = self._parked, {}
        for token, each in parked.items():
            each.timer.cancel()
            if not each.answer.done():
                self._asked[token] = each.answer
                rest_ms = max(each.due_ms - now_ms, 0)
                command = Receive(
                    each.command.count_max, each.command.visibility_ms, rest_ms, each.command.request_id
                )
                self._carry_out(core.decide(token, command, now_ms))
        self._turn_soon()

    def _turn_soon(self) -> None:
        if not self._turn_is_due and self._core is not None:
            self._turn_is_due = True
            asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """Write what was sent and decided, tell the core what can be read, and let the answers go when that is committed."""
        core = self._core
        if core is None:
            self._turn_is_due = False
            return
        self._turn_is_due = True  # what is appended here is read here, too
        try:
            self._append_sendings(core)
            self._expire_deleted(core)
            for _ in range(_WRITES_PER_TURN_MAX):
                self._read_on(core)
                if not self._write(core):
                    break
            else:
                self._again_soon()
        except RopewalkError as error:
            self._throw_away(error)
            return
        finally:
            self._turn_is_due = False
        due, self._due = self._due, []
        self._releases.release(due, self._end_offset)
        if core.must_write(self._time.now_ms()):
            self._turn_soon()
        was_asked_for, self._is_producer_asked_for = self._is_producer_asked_for, core.wants_producer
        if core.wants_producer and not was_asked_for:
            self._on_producer_wanted(self)
        self._arm()

    def _write(self, core: QueuePartition) -> bool:
        """Whether anything was written."""
        now_ms = self._time.now_ms()
        if self.snapshots.is_due:
            self._append_snapshot(core)
            return True
        early_ms = QUEUE_ACQUIRE_WRITE_MS_MAX if self._writes_at_once else 0
        if not core.must_write(now_ms + early_ms):
            return False
        start_offset = self.partition.log.end_offset
        delta = core.take_delta(now_ms)
        if len(delta) > turn.state_size_max(self.partition):  # the snapshot has all of it
            self._append_snapshot(core)
            return True
        turn.append_delta(self.partition, self.queue.queue_id, delta, now_ms)
        self._on_state_appended(start_offset)
        self.snapshots.on_delta(len(delta))
        return True

    def _append_snapshot(self, core: QueuePartition) -> None:
        now_ms = self._time.now_ms()
        start_offset = self.partition.log.end_offset
        size_bytes = turn.append_snapshot(
            self.partition,
            self.queue.queue_id,
            core.take_snapshot(now_ms, turn.state_size_max(self.partition)),
            now_ms,
        )
        self._on_state_appended(start_offset)
        self.snapshots.on_written(size_bytes)

    def _on_state_appended(self, start_offset: int) -> None:
        self._end_offset = self.partition.log.end_offset
        self._supply.ahead.note_written(start_offset, self._end_offset, ())
        if self._core is not None:
            self._written_offsets.remove_range(0, self._core.state.cursor)
        self._written_offsets.add_range(start_offset, self._end_offset)

    def _append_sendings(self, core: QueuePartition) -> None:
        """Raises what the partition refuses with: then nothing of this turn can be trusted."""
        if not self._sendings:
            return
        now_ms = self._time.now_ms()
        start_offset = self.partition.log.end_offset
        size_bytes = self._sendings.pending_bytes
        entries = self._sendings.take(
            core,
            self._due,
            is_fifo=self.settings.is_fifo,
            token=next(self._tokens),
            now_ms=now_ms,
            carry_out=self._carry_out,
        )
        if not entries:
            return
        turn.append_messages(self.partition, entries, size_bytes, now_ms)
        self._end_offset = self.partition.log.end_offset
        assert self._end_offset == start_offset + len(entries), "nobody appends in between"
        if not self.partition.rules.rewrites:
            records = [
                Record(Offset(offset), sent_at_ms, key, value, headers)
                for offset, (key, value, sent_at_ms, headers) in enumerate(entries, start_offset)
            ]
            self._supply.ahead.note_written(start_offset, self._end_offset, tuple(records))

    def _expire_deleted(self, core: QueuePartition) -> None:
        """Retention, or somebody who deletes records, has taken what was not settled."""
        start_offset = self.partition.log.start_offset
        if start_offset > core.state.floor:
            self._carry_out(core.decide(_NOBODY, Expire(start_offset), self._time.now_ms()))
            self._supply.ahead.forget_below(start_offset)

    def _read_on(self, core: QueuePartition) -> None:
        """Tell the core what it wants to know, as far as that is at hand; the rest is read in the disk pool."""
        limit_offset = self.partition.last_stable_offset
        core.on_committed(limit_offset, self._time.now_ms())
        for _ in range(QUEUE_READS_PER_TURN_MAX):
            offset = core.next_read()
            if offset is None or offset >= limit_offset:
                return
            end_offset, records = self._supply.gather(offset, limit_offset)
            if end_offset == offset:
                return
            self._carry_out(core.on_read(messages_of(records), end_offset, self._time.now_ms()))
        self._again_soon()

    def _again_soon(self) -> None:
        """After others have had a turn."""
        asyncio.get_running_loop().call_soon(self._turn_soon)

    def _carry_out(self, step: QueueStep) -> None:
        for reply in step.prompts:
            answer = self._asked.pop(reply.token, None)
            if answer is None or answer.done():
                self._give_back(reply.token, reply.answer)
            elif isinstance(reply.answer, RopewalkError):
                fail(answer, reply.answer)
            else:
                answer.set_result(reply.answer)
        for reply in step.replies:
            answer = self._asked.pop(reply.token, None)
            if answer is not None:
                self._due.append((answer, reply.answer))
        self._turn_soon()

    def _give_back(self, token: int, answer: object) -> None:
        """Nobody is there to take it."""
        if token != _NOBODY and isinstance(answer, Received):
            self.release(answer)

    def _on_parked_too_long(self, token: int) -> None:
        parked = self._parked.pop(token, None)
        if parked is not None and not parked.answer.done():
            parked.answer.set_result(Received(0))

    def _throw_away(self, reason: RopewalkError) -> None:
        _log.warning(
            "a queue's turn could not be written; its state is read again from the log",
            partition=str(self.partition.name),
            reason=str(reason),
        )
        self._let_go(Life.READING_AGAIN, QueueNotReady(f"{self.partition.name} is being read again"), reason)
        self._on_thrown_away(self)

    def _let_go(self, life: Life, refusal: RopewalkError, failure: RopewalkError | None = None) -> None:
        self._life = self._checked(life)
        if self._core is not None:
            self._attempt_end = self._core.state.attempt + 1
        self._core = None
        self._refusal = refusal
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        decided, self._due = self._due, []
        asked, self._asked = self._asked, {}
        self._supply.clear()
        refuse((answer for answer, _ in decided), outcome_unknown(self.partition, str(failure or refusal)))
        refuse(asked.values(), refusal)
        self._sendings.refuse(refusal)

    def _checked(self, life: Life) -> Life:
        assert life in LEGAL[self._life], f"a queue does not go from {self._life.name} to {life.name}"
        return life

    def _arm(self) -> None:
        if self._core is None:
            return
        due_ms = self._core.deadline_ms()
        if due_ms is None or (self._timer is not None and self._timer_due_ms <= due_ms):
            return  # a timer that is early finds nothing to do and is set again
        self._set_timer(due_ms)

    def _set_timer(self, due_ms: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due_ms = due_ms
        delay_s = max(0.0, due_ms - self._time.now_ms()) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        core = self._core
        if core is not None and not self.partition.log.has_room:
            self._set_timer(self._time.now_ms() + QUEUE_REST_MS)  # most of what is due is to be written
        elif core is not None:
            self._carry_out(core.tick(self._time.now_ms()))
            self._take_turn()
