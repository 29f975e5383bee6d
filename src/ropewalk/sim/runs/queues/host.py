"""A leader of a queue's partition: it takes what was asked into turns, writes what a turn has changed, and answers when that is committed.

What a reader could get wrong
    A leader serves nobody before everything it began with is committed.
    Its clock is set when it begins to lead, and does not jump: only leaders differ.
    A deposed leader does not know it. It goes on until somebody stops it; what it writes is never committed, so only what needs no commit is answered.
"""

import random
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from ropewalk.queues import QueuePartition, QueueReplay
from ropewalk.queues.answers import Admitted, Answer, Done, Noted, Received
from ropewalk.queues.attempts import first_attempt
from ropewalk.queues.commands import (
    AnyCommand,
    ChangeVisibility,
    Delete,
    EndMove,
    Message,
    Purge,
    Receive,
    Release,
    Rewind,
    Send,
    Sent,
)
from ropewalk.queues.errors import QueueError
from ropewalk.queues.event_codec import KIND_SNAPSHOT
from ropewalk.queues.settings import QueueSettings
from ropewalk.queues.snapshot_codec import decode_piece
from ropewalk.queues.step import QueueStep
from ropewalk.sim.machines.sometimes import Sometimes
from ropewalk.sim.machines.trace import Trace
from ropewalk.sim.runs.cores.queue import EventQueue
from ropewalk.sim.runs.queues import facts
from ropewalk.sim.runs.queues.book import Book
from ropewalk.sim.runs.queues.queue_log import Entry, QueueLog, Term

Respond: TypeAlias = Callable[[Answer | QueueError | None], None]
"""None: not here, or not now; ask again."""

EPOCH_MS = 1_700_000_000_000
"""When runs begin, by the right clock."""


class Outgoing(Struct, frozen=True):
    """A message that somebody sends."""

    number: int
    sent_at_ms: int
    group: str
    delay_ms: int = 0
    deduplication_id: str = ""


class SendTo(Struct, frozen=True):
    messages: tuple[Outgoing, ...]


class PurgeAll(Struct, frozen=True):
    pass


class AppendDead(Struct, frozen=True):
    """Dead letters of another queue, under the identity of their move."""

    messages: tuple[Outgoing, ...]
    identity: tuple[int, int, int]
    origins: tuple[tuple[str, int], ...]


Request: TypeAlias = AnyCommand | SendTo | PurgeAll | AppendDead


class Numbers:
    """Of records and batches."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        self._last += 1
        return self._last


class Around(Struct):
    """What all leaders of a run share."""

    queue: EventQueue
    numbers: Numbers
    trace: Trace
    sometimes: Sometimes
    snapshot_share: float
    commit_us: tuple[int, int]
    read_us: tuple[int, int]


class _Owed(Struct):
    """Answers that wait for their turn to be committed."""

    end_offset: int
    answers: list[Callable[[], None]]


class QueueHost:
    def __init__(
        self,
        around: Around,
        log: QueueLog,
        book: Book,
        settings: QueueSettings,
        rng: random.Random,
        *,
        skew_ms: int,
    ) -> None:
        self._around, self.log, self.book, self._settings, self._rng = around, log, book, settings, rng
        self._queue = around.queue
        self.term: Term = log.term
        self.skew_ms = skew_ms
        self.core: QueuePartition | None = None
        self.is_stopped = False
        self._inbox: list[tuple[Request, Respond]] = []
        self._is_turn_due = False
        self._is_reading = False
        self._asked: dict[int, tuple[Request, Respond]] = {}
        self._token = 0
        self._owed: list[_Owed] = []
        self._turn_answers: list[Callable[[], None]] = []
        self._facts: list[facts.Fact] = []
        """Decided, and not written yet."""
        self._deleting: dict[int, list[int]] = {}
        """By token: what a delete has settled, or found settled."""
        self._given_until_ms: dict[int, int] = {}
        """By this leader, in real time."""
        self._tick_due_ms: int | None = None
        self._replicate()
        self._queue.after(rng.choice((1_000, 5_000, 80_000)), self._load)

    @property
    def time_ms(self) -> int:
        return EPOCH_MS + self._queue.now_ms + self.skew_ms

    @property
    def is_deposed(self) -> bool:
        return self.term is not self.log.term

    def ask(self, request: Request, respond: Respond) -> None:
        if self.is_stopped or self.core is None:
            respond(None)
            return
        self._inbox.append((request, respond))
        self._due_turn()

    def stop(self) -> None:
        """Whoever waits is never answered."""
        self.is_stopped = True

    def hand_over(self) -> bool:
        """Write all that is known, before another one leads. Whether there was anything to write with."""
        if self.core is None or self.is_stopped:
            return False
        self._write(is_snapshot=self._rng.random() < 0.5)
        return True

    def _load(self) -> None:
        if self.is_stopped or self.is_deposed:
            return
        if self.term.high_watermark < self.term.start_end:
            self._queue.after(2_000, self._load)
            return
        end = len(self.term.entries)
        replay = replayed(self.term.entries[:end], self._settings)
        self.core = QueuePartition(
            self._settings,
            replay.state,
            committed_end=end,
            now_ms=self.time_ms,
            first_attempt=first_attempt(self.term.number),
        )
        self._end_turn()

    def _due_turn(self) -> None:
        if not self._is_turn_due:
            self._is_turn_due = True
            self._queue.after(self._rng.choice((10, 500, 3_000)), self._turn)

    def _turn(self) -> None:
        self._is_turn_due = False
        if self.is_stopped:
            return
        inbox, self._inbox = self._inbox, []
        for request, respond in inbox:
            self._take(request, respond)
        assert self.core is not None
        self._end_turn()

    def _take(self, request: Request, respond: Respond) -> None:
        self._token += 1
        token = self._token
        match request:
            case SendTo(messages) if not self._settings.is_fifo:
                offsets = self._append(messages)
                numbers = tuple(message.number for message in messages)
                self._turn_answers.append(
                    lambda: self._acknowledge(offsets, numbers, ("",) * len(offsets), respond)
                )
            case SendTo(messages):
                sent = tuple(Sent(message.group, message.deduplication_id) for message in messages)
                self._asked[token] = (request, respond)
                self._decide(token, Send(sent, len(self.term.entries)))
            case PurgeAll():
                self._asked[token] = (request, respond)
                end_offset = len(self.term.entries)
                self._facts.append(facts.Purged(end_offset))
                self._decide(token, Purge(end_offset))
            case AppendDead():
                self._append_dead(request, respond)
            case _:
                self._asked[token] = (request, respond)
                self._decide(token, request)

    def _decide(self, token: int, command: AnyCommand) -> None:
        core = self.core
        assert core is not None
        before: dict[int, tuple[int, int]] = {}
        match command:
            case Release(handles):
                before = {each.offset: self._count(each.offset) for each in handles}
            case Delete(handles):
                before = {
                    each.offset: (int(core.state.is_settled(each.offset)), 0)
                    for each in handles
                    if not core.state.is_moving(each.offset)
                }
            case EndMove():
                move = core.state.move
                if move is not None and move == command.move:
                    self._facts.append(facts.Moved(move.offsets, command.moved_count))
            case Rewind(offset):
                if core.state.move is None:
                    self._facts.append(facts.Rewound(offset))
                    self._given_until_ms.clear()
        self._note_step(core.decide(token, command, self.time_ms), before)

    def _note_step(self, step: QueueStep, before: dict[int, tuple[int, int]] | None = None) -> None:
        """What was decided becomes facts before anybody hears of it."""
        heard: list[tuple[int, Answer | QueueError]] = [(each.token, each.answer) for each in step.prompts]
        owed: list[tuple[int, Answer | QueueError]] = [(each.token, each.answer) for each in step.replies]
        for token, answer in (*owed, *heard):
            self._note_answer(token, answer, before or {}, is_prompt=(token, answer) in heard)
        for token, answer in owed:
            self._turn_answers.append(self._answering(token, answer))
        for token, answer in heard:
            self._answering(token, answer)()

    def _note_answer(
        self,
        token: int,
        answer: Answer | QueueError,
        before: dict[int, tuple[int, int]],
        *,
        is_prompt: bool,
    ) -> None:
        request = self._asked[token][0]
        now_ms = self._queue.now_ms
        match request, answer:
            case Receive(), Received(attempt, messages) if messages:
                offsets = tuple(message.offset for message in messages)
                if is_prompt:
                    self._check_prompts(offsets, now_ms)
                until_ms = now_ms + request.visibility_ms
                self._facts.append(facts.Given(offsets, attempt, now_ms, until_ms))
                for offset in offsets:
                    self._given_until_ms[offset] = until_ms
            case Delete(handles), Done(refusals):
                for handle, refusal in zip(handles, refusals, strict=True):
                    if refusal is None and handle.offset in before:
                        if not before[handle.offset][0]:
                            self._facts.append(facts.Deleted(handle.offset))
                        self._deleting.setdefault(token, []).append(handle.offset)
            case ChangeVisibility(changes), Done(refusals):
                for change, refusal in zip(changes, refusals, strict=True):
                    if refusal is None:
                        until_ms = now_ms + change.visibility_ms
                        self._facts.append(facts.Extended(change.handle.offset, until_ms))
                        self._given_until_ms[change.handle.offset] = until_ms
            case Release(handles), Noted():
                for handle in handles:  # one that was given out again at once is in another attempt by now
                    offset = handle.offset
                    if before[offset][1] == handle.attempt and self._count(offset) != before[offset]:
                        self._facts.append(facts.Released(offset))
                        self._given_until_ms.pop(offset, None)
            case SendTo(messages), Admitted(offsets, are_duplicates):
                fresh = [
                    message
                    for message, is_duplicate in zip(messages, are_duplicates, strict=True)
                    if not is_duplicate
                ]
                appended = self._append(tuple(fresh))
                assert appended == tuple(
                    offset
                    for offset, is_duplicate in zip(offsets, are_duplicates, strict=True)
                    if not is_duplicate
                ), "they are appended where the core was told"

    def _check_prompts(self, offsets: tuple[int, ...], now_ms: int) -> None:
        if self.is_deposed:
            self._around.sometimes.note("a deposed leader gave something out")
            return
        uncommitted = [*self._facts]
        for entry in self.term.entries[self.term.high_watermark :]:
            uncommitted += entry.facts
        for offset in offsets:
            is_changed = any(_is_about(fact, offset) for fact in uncommitted)
            if self._given_until_ms.get(offset, 0) > now_ms:
                self.book.fail_early(offset, self._given_until_ms[offset] - now_ms)
            self.book.check_prompt(offset, now_ms, is_changed=is_changed)

    def _answering(self, token: int, answer: Answer | QueueError) -> Callable[[], None]:
        request, respond = self._asked.pop(token)

        def tell() -> None:
            match request, answer:
                case SendTo(messages), Admitted(offsets, are_duplicates):
                    numbers = tuple(
                        None if is_duplicate else message.number
                        for message, is_duplicate in zip(messages, are_duplicates, strict=True)
                    )
                    names = tuple(message.deduplication_id for message in messages)
                    if any(are_duplicates):
                        self._around.sometimes.note("a duplicate was answered with the first one")
                    self._acknowledge(offsets, numbers, names, respond)
                    return
                case Delete(), Done():
                    for offset in self._deleting.pop(token, ()):
                        self.book.check_deleted(offset)
                case Receive(), Received(attempt, given) if given and self._settings.is_fifo:
                    self.book.check_given(tuple(each.offset for each in given), attempt)
            respond(answer)

        return tell

    def _acknowledge(
        self,
        offsets: tuple[int, ...],
        numbers: tuple[int | None, ...],
        names: tuple[str, ...],
        respond: Respond,
    ) -> None:
        for offset, number, name in zip(offsets, numbers, names, strict=True):
            self.book.check_acknowledged(offset, self.log.committed, number, name)
        respond(Admitted(offsets, tuple(number is None for number in numbers)))

    def _append(self, messages: tuple[Outgoing, ...]) -> tuple[int, ...]:
        batch = self._around.numbers.next()
        return tuple(
            self.term.append(
                Entry(
                    message.number,
                    batch,
                    self._queue.now_ms,
                    message.sent_at_ms,
                    message.group,
                    message.delay_ms,
                    message.deduplication_id,
                )
            )
            for message in messages
        )

    def _append_dead(self, request: AppendDead, respond: Respond) -> None:
        """As `log/producers.py` has it: what is repeated is answered with the first offsets."""
        producer_id, _, sequence = request.identity
        known = self.term.sequences.get((producer_id, sequence))
        if known is None:
            batch = self._around.numbers.next()
            for place, message in enumerate(request.messages):
                self.term.append(
                    Entry(
                        message.number,
                        batch,
                        self._queue.now_ms,
                        message.sent_at_ms,
                        message.group,
                        identity=(producer_id, request.identity[1], sequence + place),
                        origin=request.origins[place],
                    )
                )
        else:
            self._around.sometimes.note("a move was repeated, and had been done")
            assert known[1] == len(request.messages), "a sequence stands for one batch"
        self._turn_answers.append(lambda: respond(Noted()))

    def _end_turn(self) -> None:
        core = self.core
        assert core is not None
        if core.must_write(self.time_ms):
            self._write(is_snapshot=self._rng.random() < self._around.snapshot_share)
        if self._turn_answers:
            self._owed.append(_Owed(len(self.term.entries), self._turn_answers))
            self._turn_answers = []
            self._release()
        self._replicate()
        self._look_further()
        self._schedule_tick()

    def _write(self, *, is_snapshot: bool) -> None:
        core = self.core
        assert core is not None
        if is_snapshot:
            records = core.take_snapshot(self.time_ms, self._rng.choice((100, 500, 1 << 20)))
            self._around.sometimes.note("a snapshot was written")
            if len(records) > 1:
                self._around.sometimes.note("a snapshot had several pieces")
        else:
            records = [core.take_delta(self.time_ms)]
        for place, record in enumerate(records):  # the facts count with the last piece, as the snapshot does
            told = tuple(self._facts) if place == len(records) - 1 else ()
            batch = self._around.numbers.next()
            self.term.append(Entry(batch, batch, self._queue.now_ms, state=record, facts=told))
        self._facts = []

    def _replicate(self) -> None:
        end = len(self.term.entries)
        if end > self.term.high_watermark:
            self._queue.after(self._rng.randint(*self._around.commit_us), self._commit, end)

    def _commit(self, end: int) -> None:
        if end <= self.term.high_watermark or not self.log.commit(self.term, end):
            return
        if self.core is None or self.is_stopped:
            return
        self.core.on_committed(end, self.time_ms)
        self._release()
        self._look_further()

    def _release(self) -> None:
        while self._owed and self._owed[0].end_offset <= self.term.high_watermark:
            for tell in self._owed.pop(0).answers:
                tell()

    def _look_further(self) -> None:
        assert self.core is not None
        if self._is_reading or self.core.next_read() is None:
            return
        self._is_reading = True
        self._queue.after(self._rng.randint(*self._around.read_us), self._read)

    def _read(self) -> None:
        self._is_reading = False
        core = self.core
        assert core is not None
        start = core.next_read()
        if start is None or self.is_stopped:
            return
        end = min(start + self._rng.choice((3, 20, 500)), self.term.high_watermark)
        messages: list[Message] = []
        for offset in range(start, end):
            message = self.term.entries[offset].message(offset)
            if message is not None:
                messages.append(message)
        self._note_step(core.on_read(tuple(messages), end, self.time_ms))
        self._end_turn()

    def _schedule_tick(self) -> None:
        assert self.core is not None
        due_ms = self.core.deadline_ms()
        if due_ms is None:
            return
        due_ms = max(due_ms - EPOCH_MS - self.skew_ms, self._queue.now_ms + 1)
        if self._tick_due_ms is None or due_ms < self._tick_due_ms:
            self._tick_due_ms = due_ms
            self._queue.after((due_ms - self._queue.now_ms) * 1000, self._tick, due_ms)

    def _tick(self, due_ms: int) -> None:
        if self._tick_due_ms != due_ms or self.is_stopped:
            return
        self._tick_due_ms = None
        assert self.core is not None
        self._note_step(self.core.tick(self.time_ms))
        self._end_turn()

    def _count(self, offset: int) -> tuple[int, int]:
        """How often it was received, and the latest attempt."""
        assert self.core is not None
        entry = self.core.state.entries.get(offset)
        return (0, 0) if entry is None else (entry.receive_count, entry.attempt)


def replayed(entries: list[Entry], settings: QueueSettings) -> QueueReplay:
    """From the last whole snapshot on, as a node loads it."""
    replay = QueueReplay(settings)
    start = _last_snapshot(entries)
    for offset in range(start, len(entries)):
        entry = entries[offset]
        if entry.state:
            replay.read(entry.state)
        elif entry.deduplication_id:
            replay.remember(
                offset,
                sent_at_ms=entry.sent_at_ms,
                group=entry.group,
                deduplication_id=entry.deduplication_id,
            )
    return replay


def _last_snapshot(entries: list[Entry]) -> int:
    for offset in range(len(entries) - 1, -1, -1):
        state = entries[offset].state
        if len(state) > 1 and state[1] == KIND_SNAPSHOT:
            piece = decode_piece(state)
            if piece.is_last:
                return offset - piece.index
    return 0


def _is_about(fact: facts.Fact, offset: int) -> bool:
    match fact:
        case facts.Extended() | facts.Released() | facts.Deleted():
            return fact.offset == offset
        case facts.Rewound():
            return True
        case facts.Moved():
            return offset in fact.offsets
        case _:
            return False
