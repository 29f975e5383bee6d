"""A host for one core with a log in a list: messages, and between them the records of state. It can crash, and lose what was not written.

Everything that is appended is committed at once. A turn ends after every command: what is urgent is written then, the rest when it is due. A new leader's
clock may differ from its predecessor's.
"""

from collections.abc import Callable
from typing import NamedTuple

from ropewalk.queues import QueuePartition, QueueReplay
from ropewalk.queues.answers import Admitted, Answer, Moved, MoveOrder, Noted, ToMove
from ropewalk.queues.commands import (
    AnyCommand,
    BeginTask,
    EndMove,
    EndTask,
    Message,
    Move,
    NextMove,
    NextToMove,
    ProvideProducer,
    Send,
    Sent,
)
from ropewalk.queues.errors import QueueError
from ropewalk.queues.event_codec import decode_delta
from ropewalk.queues.events import Delta
from ropewalk.queues.settings import QueueSettings
from ropewalk.queues.snapshot_codec import decode_piece, encode_snapshot
from ropewalk.queues.state import TaskShare
from ropewalk.queues.step import QueueStep

START_MS = 1_000_000
TARGET = bytes(range(16))
"""The topic that messages are moved to."""
READ_COUNT = 7
"""Offsets that are read together: few, so that reading is interrupted often."""


class Record(NamedTuple):
    message: Message | None
    deduplication_id: str
    state: bytes


class Stage:
    def __init__(self, settings: QueueSettings | None = None) -> None:
        self.settings = settings or QueueSettings()
        self.now_ms = START_MS
        self.log: list[Record] = []
        self.replies: dict[int, Answer | QueueError] = {}
        self.last_token = 0
        self.target: dict[tuple[int, int, int], tuple[int, ...]] = {}
        """The queue that messages are moved to: offsets of the source, by producer id, partition and sequence."""
        self.rewound: set[tuple[int, int, int]] = set()
        """What came there before a rewind, and may come again."""
        self.producer_id = 76
        self.deltas: list[Delta] = []
        self.skew_ms = 0
        self.on_reply: Callable[[int, Answer | QueueError], None] = lambda token, answer: None
        """Told of every reply before anything else happens."""
        self.on_write: Callable[[], None] = lambda: None
        self.core = self._led()

    @property
    def dead(self) -> list[int]:
        fresh = [offsets for key, offsets in self.target.items() if key not in self.rewound]
        return sorted(offset for offsets in fresh for offset in offsets)

    def ask(self, command: AnyCommand) -> int:
        """The token under which the reply is, or will be, in `replies`."""
        self.last_token += 1
        self._carry_out(self.core.decide(self.last_token, command, self.time_ms))
        self.end_turn()
        return self.last_token

    def answer(self, command: AnyCommand) -> Answer | QueueError:
        """The reply to a command that does not wait."""
        return self.replies[self.ask(command)]

    def send(self, *, group: str = "", delay_ms: int = 0, skew_ms: int = 0) -> int:
        """As to a standard queue, which asks nobody, by a door whose clock is so far ahead of the leader's."""
        offset = len(self.log)
        self.log.append(Record(Message(offset, self.time_ms + skew_ms, group, delay_ms), "", b""))
        self.end_turn()
        return offset

    def send_fifo(self, group: str, deduplication_id: str) -> Admitted | QueueError:
        """Asked and appended in one step."""
        self.last_token += 1
        command = Send((Sent(group, deduplication_id),), len(self.log))
        self._carry_out(self.core.decide(self.last_token, command, self.time_ms))
        answer = self.replies[self.last_token]
        assert isinstance(answer, Admitted | QueueError)
        if isinstance(answer, Admitted) and not answer.are_duplicates[0]:
            assert answer.offsets == (len(self.log),)
            message = Message(len(self.log), self.time_ms, group)
            self.log.append(Record(message, deduplication_id, b""))
        self.end_turn()
        return answer

    def carry_move(self, *, is_taken: bool = True, is_heard: bool = True) -> tuple[int, ...]:
        """What a mover does: append under the intent's identity, and tell how it ended, unless it dies before."""
        self.provide()
        if self.core.state.move is None:
            return ()
        order = self.answer(NextMove())
        assert isinstance(order, MoveOrder)
        move = order.move
        if is_taken:
            had = self.target.setdefault((move.producer_id, move.partition, move.sequence), move.offsets)
            assert had == move.offsets, "a sequence stands for one batch"
        if is_heard:
            assert self.answer(EndMove(move, len(move.offsets) if is_taken else 0)) == Noted()
        return move.offsets

    def provide(self) -> None:
        """Producer ids that nobody else has, one for each time that one is wanted."""
        if self.core.wants_producer:
            self.producer_id += 1
            assert self.answer(ProvideProducer(self.producer_id, 0)) == Noted()

    def begin_task(self, task_id: bytes) -> TaskShare:
        share = self.answer(BeginTask(task_id, len(self.log)))
        assert isinstance(share, TaskShare)
        return share

    def end_task(self, task_id: bytes, ending: str) -> TaskShare | QueueError:
        share = self.answer(EndTask(task_id, ending))
        assert isinstance(share, TaskShare | QueueError)
        return share

    def next_to_move(self, count_max: int) -> tuple[int, ...] | None:
        """None: that is not known yet."""
        token = self.ask(NextToMove(count_max))
        if token not in self.replies:
            self.core.forget(token)
            return None
        told = self.replies[token]
        assert isinstance(told, ToMove)
        return told.offsets

    def want_moved(self, offsets: tuple[int, ...], partition: int = 0) -> int:
        """The token under which how it ended will be told."""
        token = self.ask(Move(offsets, TARGET, partition))
        self.provide()
        return token

    def moved(self, token: int) -> Moved | None:
        told = self.replies.get(token)
        assert told is None or isinstance(told, Moved)
        return told

    def end_turn(self) -> None:
        if self.core.must_write(self.time_ms):
            self.write()
        self.core.on_committed(len(self.log), self.time_ms)
        while (start := self.core.next_read()) is not None:
            end = min(start + READ_COUNT, len(self.log))
            messages = tuple(record.message for record in self.log[start:end] if record.message is not None)
            self._carry_out(self.core.on_read(messages, end, self.time_ms))
            if self.core.must_write(self.time_ms):
                self.write()
                self.core.on_committed(len(self.log), self.time_ms)

    def write(self) -> None:
        value = self.core.take_delta(self.time_ms)
        self.deltas.append(decode_delta(value))
        self.log.append(Record(None, "", value))
        self.on_write()

    def snapshot(self) -> None:
        self.log += [Record(None, "", value) for value in self.core.take_snapshot(self.time_ms)]
        self.on_write()
        self.end_turn()

    def wait(self, duration_ms: int) -> None:
        """Let time pass, with a tick whenever one is due."""
        end_ms = self.now_ms + duration_ms
        while (due_ms := self.core.deadline_ms()) is not None and due_ms - self.skew_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms - self.skew_ms)
            self._carry_out(self.core.tick(self.time_ms))
            self.end_turn()
        self.now_ms = end_ms

    @property
    def time_ms(self) -> int:
        """By the clock of whoever leads."""
        return self.now_ms + self.skew_ms

    def crash(self) -> None:
        """The leader is lost, with everyone who waits and what it had not written; another one replays the log."""
        self.core = self._led()
        self.end_turn()

    def replayed(self, start: int) -> QueueReplay:
        replay = QueueReplay(self.settings)
        for offset, record in enumerate(self.log[start:], start):
            if record.state:
                replay.read(record.state)
            elif record.deduplication_id and record.message is not None:
                replay.remember(
                    offset,
                    sent_at_ms=record.message.sent_at_ms,
                    group=record.message.group,
                    deduplication_id=record.deduplication_id,
                )
        return replay

    def check_replay(self) -> None:
        """Now that nothing is unwritten, the log tells the same state, whichever snapshot reading begins at. Ids that have run out may be there or not."""
        self.core.state.deduplication.forget(self.time_ms)
        told = encode_snapshot(self.core.state)
        for start in {0, self._last_snapshot()}:
            state = self.replayed(start).state
            state.deduplication.forget(self.time_ms)
            assert encode_snapshot(state) == told, f"the log from {start} on tells something else"

    def _last_snapshot(self) -> int:
        for offset in range(len(self.log) - 1, -1, -1):
            state = self.log[offset].state
            if state[1:2] == b"\x01" and decode_piece(state).is_last:
                return offset - decode_piece(state).index
        return 0

    def _led(self) -> QueuePartition:
        state = self.replayed(self._last_snapshot()).state
        return QueuePartition(self.settings, state, committed_end=len(self.log), now_ms=self.time_ms)

    def _carry_out(self, step: QueueStep) -> None:
        for reply in (*step.prompts, *step.replies):
            assert reply.token not in self.replies, "answered twice"
            self.replies[reply.token] = reply.answer
            self.on_reply(reply.token, reply.answer)
        if step.replies:
            assert not self.core.must_write(self.time_ms) or self.core.deadline_ms() == 0
