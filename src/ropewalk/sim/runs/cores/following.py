"""A replica that follows, as a broker would host it: the real `Follower` over a log that is a list."""

from typing import Final

from ropewalk.base.ids import Offset
from ropewalk.metadata.image import Partition
from ropewalk.replication.follower import (
    Answer,
    Append,
    Follower,
    MoveStart,
    Question,
    Restart,
    Truncate,
    Wait,
)
from ropewalk.sim.runs.cores.leading import Host
from ropewalk.sim.runs.cores.machine import Key
from ropewalk.sim.runs.cores.replica_log import Entry, ReplicaLog

PATIENCE_US: Final = 1_500_000
"""After so long without an answer the follower asks again."""

PAUSE_US: Final = 200_000
"""After so long it asks again a leader that could not answer."""


class Following:
    __slots__ = ("_asked_at_us", "_cut_count", "_host", "_known", "core", "key", "leader", "log")

    def __init__(self, host: Host, key: Key, log: ReplicaLog, partition: Partition) -> None:
        self.key, self.log = key, log
        self.leader = partition.leader
        self.core = Follower(leader_epoch=partition.leader_epoch, high_watermark=Offset(log.checkpoint))
        self._host = host
        self._asked_at_us: int | None = None
        """None: nothing is asked, because something is yet to be made durable."""
        self._known: int = log.checkpoint
        self._cut_count = 0
        self.ask()

    @property
    def readable_end(self) -> int:
        return self._known

    def ask(self) -> None:
        if self.leader is None:
            return
        question = self.core.ask(self.log, settled_offset=self.log.counted_offset)
        if question is None:
            self._asked_at_us = None
            self._host.sync(self.key)
            return
        self._asked_at_us = self._host.now_us
        self._host.judge.on_fetch(self.key, self._host.node_id, question.fetch_offset, self.log)
        self._host.send_question(self.leader, self.key, question)

    def on_answer(self, question: Question, answer: Answer, entries: tuple[Entry, ...]) -> None:
        effects = self.core.on_answer(question, answer, self.log)
        if not effects:
            return
        for effect in effects:
            match effect:
                case Append():
                    self._copy(entries)
                case Truncate(offset=offset):
                    self._cut(offset)
                case Restart(offset=offset):
                    assert offset == 0, "no log here begins elsewhere"
                    self._cut(offset)
                case MoveStart():
                    raise AssertionError("no log here begins elsewhere")
                case Wait():
                    self._asked_at_us = self._host.now_us - PATIENCE_US + PAUSE_US
                    return
        self._learn()
        self.ask()

    def on_synced(self) -> None:
        self._learn()
        if self._asked_at_us is None:
            self.ask()

    def tick(self) -> None:
        if self._asked_at_us is not None and self._host.now_us - self._asked_at_us > PATIENCE_US:
            self.ask()

    def _copy(self, entries: tuple[Entry, ...]) -> None:
        for entry in entries:
            offset = self.log.append(entry)
            self._host.judge.on_copied(self.key, self._host.node_id, offset, entry)
        if entries:
            self._host.sync(self.key)

    def _cut(self, offset: int) -> None:
        if offset < self.log.end:
            self._host.judge.on_truncated(self.key, self._host.node_id, offset)
            self._host.sometimes.note("a replica was truncated")
            self._cut_count += 1
            if self._cut_count == 2:
                self._host.sometimes.note("a replica was truncated in more than one step")
        self.log.truncate(offset)
        self._known = min(self._known, offset)

    def _learn(self) -> None:
        after = self.core.high_watermark(self.log.counted_offset)
        if after > self._known:
            self._host.judge.on_learnt(self.key, self._host.node_id, self.log, self._known, after)
            self._known = after
            self.log.high_watermark = after
