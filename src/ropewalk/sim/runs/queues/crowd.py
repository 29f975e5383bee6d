"""Who works with the queues of a run: senders, receivers, and now and then somebody who purges or rewinds."""

import random
from collections.abc import Callable
from typing import Final, TypeAlias

from ropewalk.queues.answers import Admitted, Answer, Done, Received
from ropewalk.queues.commands import (
    ChangeVisibility,
    Delete,
    Handle,
    Receive,
    Release,
    Rewind,
    VisibilityChange,
)
from ropewalk.queues.errors import QueueError
from ropewalk.queues.settings import QueueSettings
from ropewalk.sim.runs.queues.host import EPOCH_MS, Around, Outgoing, PurgeAll, QueueHost, Request, SendTo

PATIENCE_US: Final = 3_000_000
"""Who hears nothing for so long, besides what was to be waited for, knows nothing."""
IMPATIENCE_US: Final = (100_000, 500_000)
"""Some hang up as soon as that where they can repeat what they asked under its id. What they are given all the same is given back by the door."""

DRAIN_MS: Final = 5_000
"""For how long messages are hidden in the end: longer than it takes to commit a receive and a delete, or a FIFO queue would refuse every delete."""

OnAnswer: TypeAlias = Callable[[Answer | QueueError | None], None]


class Line:
    """A queue as clients see it: whoever leads it, and for a while others who did."""

    def __init__(self, name: str, settings: QueueSettings) -> None:
        self.name, self.settings = name, settings
        self.leader: QueueHost | None = None
        self.deposed: list[QueueHost] = []


class Crowd:
    def __init__(self, around: Around, rng: random.Random, *, loss_share: float, skew_ms_max: int) -> None:
        self.around, self.rng = around, rng
        self.queue = around.queue
        self.sometimes = around.sometimes
        self.operation_count = 0
        self.is_working = True
        """Otherwise everybody rests."""
        self.is_draining = False
        """Nothing more is sent, and everything that is received is deleted."""
        self.loss_share = loss_share
        self._skew_ms_max = skew_ms_max
        self.outstanding: dict[tuple[int, int, int], int] = {}
        """How often the dead letters of a move were sent, by their identity."""

    def ask(self, line: Line, request: Request, on_answer: OnAnswer) -> None:
        """The answer, or None: nobody knows what became of it."""
        self.operation_count += 1
        is_open = True

        def finish(answer: Answer | QueueError | None) -> None:
            nonlocal is_open
            if is_open:
                is_open = False
                on_answer(answer)
            elif isinstance(answer, Received) and answer.messages:
                self.sometimes.note("what came for a client that had gone was released")
                self.ask(line, Release(_handles(answer)), lambda _: None)

        def respond(answer: Answer | QueueError | None) -> None:
            if self.rng.random() >= self.loss_share:
                self.queue.after(self.rng.randint(100, 2_000), finish, answer)

        host = line.leader
        running = [each for each in line.deposed if not each.is_stopped]
        if running and self.rng.random() < 0.3:
            host = self.rng.choice(running)
        if host is not None and self.rng.random() >= self.loss_share:
            self.queue.after(self.rng.randint(100, 2_000), host.ask, request, respond)
        self.queue.after(self._patience_us(request), finish, None)

    def _patience_us(self, request: Request) -> int:
        if not isinstance(request, Receive):
            return PATIENCE_US
        if request.request_id and self.rng.random() < 0.5:
            return self.rng.choice(IMPATIENCE_US)
        return PATIENCE_US + request.wait_ms * 1_000

    def stamp_ms(self) -> int:
        """By the clock of a door."""
        return EPOCH_MS + self.queue.now_ms + self.rng.randint(-self._skew_ms_max, self._skew_ms_max)


def _handles(answer: Received) -> tuple[Handle, ...]:
    return tuple(Handle(given.offset, answer.attempt) for given in answer.messages)


class Sender:
    def __init__(
        self, crowd: Crowd, line: Line, name: str, *, pause_us: int, delays_ms: tuple[int, ...]
    ) -> None:
        self._crowd, self._line, self._name, self._pause_us, self._delays_ms = (
            crowd,
            line,
            name,
            pause_us,
            delays_ms,
        )
        self._ids = 0
        crowd.queue.after(crowd.rng.randint(0, pause_us), self._send)

    def _send(self) -> None:
        crowd = self._crowd
        if crowd.is_draining:
            return
        if crowd.is_working:
            messages = tuple(self._message() for _ in range(crowd.rng.choice((1, 1, 2, 5))))
            crowd.ask(self._line, SendTo(messages), lambda answer: self._on_answer(messages, answer))
        crowd.queue.after(crowd.rng.randint(1, 2 * self._pause_us), self._send)

    def _message(self) -> Outgoing:
        crowd, rng = self._crowd, self._crowd.rng
        if not self._line.settings.is_fifo:
            number = crowd.around.numbers.next()
            return Outgoing(number, crowd.stamp_ms(), rng.choice("abc"), rng.choice(self._delays_ms))
        is_repeated = self._ids > 0 and rng.random() < 0.25
        if not is_repeated:
            self._ids += 1
        which = rng.randint(max(1, self._ids - 6), self._ids) if is_repeated else self._ids
        return self._fifo_message(f"{self._name}-{which}")

    def _fifo_message(self, name: str) -> Outgoing:
        """The group follows from the id, so that one that is repeated is a duplicate by either scope."""
        number = self._crowd.around.numbers.next()
        return Outgoing(number, self._crowd.stamp_ms(), "abc"[sum(name.encode()) % 3], 0, name)

    def _on_answer(self, messages: tuple[Outgoing, ...], answer: Answer | QueueError | None) -> None:
        crowd = self._crowd
        if isinstance(answer, Admitted):
            crowd.sometimes.note("a send was acknowledged")
            return
        crowd.sometimes.note("a send's outcome stayed unknown")
        if self._line.settings.is_fifo and not crowd.is_draining:
            again = tuple(self._fifo_message(message.deduplication_id) for message in messages)
            crowd.ask(self._line, SendTo(again), lambda _: None)


class Receiver:
    def __init__(self, crowd: Crowd, line: Line, *, pause_us: int, visibilities_ms: tuple[int, ...]) -> None:
        self._crowd, self._line, self._pause_us, self._visibilities_ms = (
            crowd,
            line,
            pause_us,
            visibilities_ms,
        )
        self._request: Receive | None = None
        """With an id, unanswered: to be repeated."""
        self.is_waiting = False
        crowd.queue.after(crowd.rng.randint(0, pause_us), self._receive)

    def _receive(self) -> None:
        crowd, rng = self._crowd, self._crowd.rng
        if not crowd.is_working:
            self._again()
            return
        request = self._request
        if request is None:
            identity = rng.randbytes(4) if self._line.settings.is_fifo and rng.random() < 0.2 else b""
            wait_ms = 500 if crowd.is_draining else rng.choice((0, 0, 1_000, 4_000))
            count = 10 if crowd.is_draining else rng.choice((1, 3, 10))
            visibility_ms = DRAIN_MS if crowd.is_draining else rng.choice(self._visibilities_ms)
            request = Receive(count, visibility_ms, wait_ms, identity)
        else:
            crowd.sometimes.note("a receive was repeated under its id")
        self.is_waiting = True
        crowd.ask(self._line, request, lambda answer: self._on_answer(request, answer))

    def _again(self) -> None:
        self._crowd.queue.after(self._crowd.rng.randint(1, 2 * self._pause_us), self._receive)

    def _on_answer(self, request: Receive, answer: Answer | QueueError | None) -> None:
        self.is_waiting = False
        crowd, rng = self._crowd, self._crowd.rng
        self._request = request if answer is None and request.request_id and rng.random() < 0.7 else None
        if isinstance(answer, Received) and answer.messages:
            crowd.sometimes.note("a receive was given something")
            if any(given.receive_count > 1 for given in answer.messages):
                crowd.sometimes.note("a message was given out again")
            handles = _handles(answer)
            work_us = rng.choice((100, 20_000, 300_000, 2_000_000))
            crowd.queue.after(1 if crowd.is_draining else work_us, self._finish, handles)
        self._again()

    def _finish(self, handles: tuple[Handle, ...]) -> None:
        crowd, rng = self._crowd, self._crowd.rng
        draw = 0.0 if crowd.is_draining else rng.random()
        if draw < 0.55:
            crowd.ask(self._line, Delete(handles), self._on_deleted)
        elif draw < 0.62:
            crowd.ask(self._line, Delete(tuple(rng.sample(handles, 1))), self._on_deleted)
        elif draw < 0.75:
            to_ms = rng.choice((0, 200, 2_000, 6_000))
            picked = rng.sample(handles, rng.randint(1, len(handles)))
            changes = tuple(VisibilityChange(handle, to_ms) for handle in picked)
            crowd.ask(self._line, ChangeVisibility(changes), self._on_changed)
            if rng.random() < 0.5:
                crowd.queue.after(to_ms * 500 + 1, self._finish, tuple(picked))
        elif draw < 0.82:
            crowd.sometimes.note("what was given out was released")
            crowd.ask(self._line, Release(handles), lambda _: None)
        else:
            crowd.sometimes.note("a receiver fell silent")

    def _on_deleted(self, answer: Answer | QueueError | None) -> None:
        if isinstance(answer, Done):
            refused = any(refusal is not None for refusal in answer.refusals)
            self._crowd.sometimes.note("a delete was refused" if refused else "a delete was answered")

    def _on_changed(self, answer: Answer | QueueError | None) -> None:
        if isinstance(answer, Done) and any(refusal is None for refusal in answer.refusals):
            self._crowd.sometimes.note("a visibility was changed")


class Meddler:
    """Purges and rewinds."""

    def __init__(self, crowd: Crowd, line: Line, *, pause_us: int) -> None:
        self._crowd, self._line, self._pause_us = crowd, line, pause_us
        crowd.queue.after(pause_us, self._meddle)

    def _meddle(self) -> None:
        crowd, rng = self._crowd, self._crowd.rng
        if crowd.is_draining:
            return
        leader = self._line.leader
        if rng.random() < 0.5:
            crowd.ask(self._line, PurgeAll(), lambda answer: self._on_answer(answer, "a queue was purged"))
        elif leader is not None:
            end = len(leader.log.committed)
            command = Rewind(rng.randint(max(0, end - 60), end))
            crowd.ask(self._line, command, lambda answer: self._on_answer(answer, "a queue was rewound"))
        crowd.queue.after(rng.randint(1, 2 * self._pause_us), self._meddle)

    def _on_answer(self, answer: Answer | QueueError | None, what: str) -> None:
        if answer is not None and not isinstance(answer, QueueError):
            self._crowd.sometimes.note(what)
