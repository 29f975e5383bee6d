"""What one connection may do next: handle a request, read, send, or close. A core: it counts and decides, the connection acts.

A connection is kept from going on for reasons. What each forbids:

    reason         from                               until                      handle  read  send  close
    held           `hold`                             as many `release`          no      no    yes   no
    waited         `begin_wait`                       `end_wait`                 no      less  yes   no
    had its turn   `is_turn_over` says yes            `begin_next_turn`          no      less  yes   no
    muted          `mute`                             `unmute`                   no      less  yes   no
    door paused    `pause`                            `resume`                   no      less  no    no
    untaken        `pause_writing`                    `resume_writing`           no      less  yes   no
    many due       `requests_max` are unanswered      `on_sent`                  no      less  yes   no
    much owed      `owed_bytes_max` are unsent        `on_sent`                  no      less  yes   no
    no room        the budget is overdrawn            somebody gives back        no      less  yes   no
    closed         `close`                            for ever                   no      no    yes   -

What a reader could get wrong
    To read less is to read until something has come that waits to be handled. Reading never stops before that, because it is how
    one hears that the client has gone. Only who holds the connection looks at the buffer itself, into which nothing may be read then.
    A connection whose buffer has grown is handled although the budget is overdrawn: that is what makes room.
    While the budget is only spent, the budget says who may read on. One that has read all there was does not stand in line any more.
    An end comes by itself once the client has ended its input: when nothing is due and nothing forbids to handle, all that was
    read has been handled.
"""

from typing import Final, Protocol

from msgspec import Struct

from ropewalk.base.budget import ByteBudget, Reader

_HAD_TURN: Final = 1
_MUTED: Final = 2
_PAUSED: Final = 4
_UNTAKEN: Final = 8
_CLOSED: Final = 16


class Waiting(Protocol):
    """Work that may take long and that the client may no longer want."""

    def hurry(self) -> None:
        """The client sends no more. It may have gone, so answer with what there is."""

    def abandon(self) -> None:
        """The connection is lost: nobody will read the answer."""


class FlowBounds(Struct, frozen=True, kw_only=True):
    """What one connection of a door may have under way."""

    requests_max: int
    """Unanswered; 1 for a protocol that takes one request after the other."""
    owed_bytes_max: int
    """Of answers that are made and not sent."""
    requests_per_turn: int
    turn_ms: float
    buffer_bytes_min: int
    """A receive buffer of no more than this gives back little when what is in it is handled."""


class Flow:
    __slots__ = (
        "_bounds",
        "_budget",
        "_last_seen",
        "_muted_until_ms",
        "_owed_bytes",
        "_owed_bytes_max",
        "_reader",
        "_requests_max",
        "_stops",
        "_turn_count",
        "_turn_ends_ms",
        "_unanswered_bytes",
        "charged_bytes",
        "due_count",
        "has_input_ended",
        "hold_count",
        "is_handling",
        "is_reading",
        "is_untaken",
        "may_send",
        "waits",
    )

    def __init__(self, bounds: FlowBounds, budget: ByteBudget, reader: Reader) -> None:
        """`reader` is the connection, which the budget calls when there is room."""
        self._bounds = bounds
        self._requests_max = bounds.requests_max
        self._owed_bytes_max = bounds.owed_bytes_max
        self._budget = budget
        self._reader = reader
        self._stops = 0
        self._muted_until_ms = 0.0
        self._turn_count = 0
        self._turn_ends_ms = 0.0
        self._owed_bytes = 0
        self._unanswered_bytes = 0
        self._last_seen = (-1.0, 0)
        self.charged_bytes = 0
        """Of the budget, for this connection."""
        self.due_count = 0
        """Requests that were handed to a handler and whose answers are not sent."""
        self.hold_count = 0
        self.waits: dict[Waiting, None] = {}
        self.is_handling = False
        """Whether requests are being handled further up the stack, where the rest will be seen to."""
        self.is_reading = True
        self.is_untaken = False
        """Whether the client leaves its answers with us."""
        self.may_send = True
        self.has_input_ended = False

    # Questions

    def may_handle(self, buffer_bytes: int) -> bool:
        """Whether the next request may be handled, by a connection whose buffer is so large."""
        return (
            not self._stops
            and not self.hold_count
            and not self.waits
            and self.due_count < self._requests_max
            and self._owed_bytes < self._owed_bytes_max
            and not (self._budget.is_overdrawn and buffer_bytes <= self._bounds.buffer_bytes_min)
        )

    @property
    def owes_much(self) -> bool:
        """Whether to send at once, and see whether the client keeps up."""
        return self._owed_bytes >= self._owed_bytes_max

    def is_finished(self, buffer_bytes: int) -> bool:
        """Whether the client has ended its input and has all its answers: close."""
        return self.has_input_ended and not self.due_count and self.may_handle(buffer_bytes)

    def decide_reading(self, unhandled_bytes: int, buffer_bytes: int) -> bool:
        """Whether `is_reading` has changed, given what has been read and not handled, and the size of the buffer."""
        is_reading = self._may_read(unhandled_bytes, buffer_bytes)
        if is_reading == self.is_reading:
            return False
        self.is_reading = is_reading
        return True

    def has_stalled(self, active_at_ms: float, unhandled_bytes: int, untaken_bytes: int) -> bool:
        """Whether the client has sent nothing of a request it began, or taken nothing of its answers, since last asked."""
        before, self._last_seen = self._last_seen, (active_at_ms, untaken_bytes)
        is_sending = unhandled_bytes > 0 and self.is_reading
        return before == self._last_seen and (untaken_bytes > 0 or is_sending)

    # Turns

    def begin_handling(self, now_ms: float) -> None:
        self.is_handling = True
        self._turn_count = 0
        self._turn_ends_ms = now_ms + self._bounds.turn_ms

    def is_turn_over(self, now_ms: float) -> bool:
        """Asked after each request with more behind it. If so, nothing is handled until `begin_next_turn`."""
        self._turn_count += 1
        if self._turn_count < self._bounds.requests_per_turn and now_ms < self._turn_ends_ms:
            return False
        self._stops |= _HAD_TURN
        return True

    def begin_next_turn(self) -> None:
        """The loop has gone round."""
        self._stops &= ~_HAD_TURN

    # Requests and answers

    def on_request(self) -> None:
        """A request goes to its handler."""
        self.due_count += 1

    def on_kept_waiting(self, held_bytes: int) -> None:
        """It was not answered at once, and holds so much until it is."""
        self._unanswered_bytes += held_bytes

    def on_answered(self, answer_bytes: int, held_bytes: int) -> None:
        """Its answer is made, and has so many bytes; it had been kept waiting with `held_bytes`."""
        self._owed_bytes += answer_bytes
        self._unanswered_bytes -= held_bytes

    def on_sent(self, answer_count: int, answer_bytes: int) -> None:
        """So many answers were given to the transport."""
        self.due_count -= answer_count
        self._owed_bytes -= answer_bytes

    def comes_to_rest(self) -> bool:
        """Of a connection whose buffer is empty and whose last answer was sent: whether there is nothing else to see to."""
        if (
            self._stops
            or self.due_count
            or self.waits
            or self.hold_count
            or self.has_input_ended
            or not self.is_reading
            or self._budget.is_spent
        ):
            return False
        if self.charged_bytes:
            self.charge(0, 0)
        return True

    def charge(self, buffer_bytes: int, untaken_bytes: int) -> None:
        """Keep the budget in step with what the connection holds."""
        held = buffer_bytes + self._owed_bytes + self._unanswered_bytes + untaken_bytes
        if held > self.charged_bytes:
            self._budget.take(held - self.charged_bytes)
        elif held < self.charged_bytes:
            released, self.charged_bytes = self.charged_bytes - held, held
            self._budget.give_back(released)
        self.charged_bytes = held

    # Reasons to stop

    def hold(self) -> None:
        """A request looks at the buffer, or must take effect before the next is handled."""
        self.hold_count += 1

    def release(self) -> bool:
        """Whether the connection should go on: nobody else holds it, and it is not being seen to already."""
        self.hold_count -= 1
        return not self.hold_count and not self.is_handling

    def begin_wait(self, waiting: Waiting) -> None:
        self.waits[waiting] = None

    def end_wait(self, waiting: Waiting) -> bool:
        """Whether the connection should go on."""
        del self.waits[waiting]
        return not self.is_handling

    def mute(self, now_ms: float, throttle_ms: float) -> float:
        """By how much longer the connection is muted than before; 0 where it is already for as long."""
        until_ms = now_ms + throttle_ms
        if self._stops & _MUTED:
            throttle_ms = until_ms - self._muted_until_ms
            if throttle_ms <= 0:
                return 0.0
        self._stops |= _MUTED
        self._muted_until_ms = until_ms
        return throttle_ms

    def unmute(self) -> None:
        self._stops &= ~_MUTED

    def pause(self) -> None:
        """The door answers nobody, and no connection is closed for it."""
        self._stops |= _PAUSED
        self.may_send = False

    def resume(self) -> None:
        self._stops &= ~_PAUSED
        self.may_send = True

    def pause_writing(self) -> None:
        """The transport has more than it should keep: the client does not take its answers."""
        self._stops |= _UNTAKEN
        self.is_untaken = True

    def resume_writing(self) -> None:
        self._stops &= ~_UNTAKEN
        self.is_untaken = False

    def end_input(self) -> None:
        """The client sends no more, but may still want its answers, though not wait for long."""
        self.has_input_ended = True
        self.hurry()

    def hurry(self) -> None:
        """Whoever waits is to be answered with what there is."""
        for waiting in list(self.waits):
            waiting.hurry()

    def close(self) -> None:
        """Nothing more is handled or read. What is sent, the transport drops if it cannot be sent any more."""
        self._stops |= _CLOSED

    def lose(self) -> None:
        """The connection is gone, and with it all that it held. Those who wait for it hear of it."""
        self.close()
        self.due_count = 0
        self._owed_bytes = 0
        self._unanswered_bytes = 0
        self.charge(0, 0)
        self._budget.leave(self._reader)
        for waiting in list(self.waits):
            waiting.abandon()

    def _may_read(self, unhandled_bytes: int, buffer_bytes: int) -> bool:
        if self._stops & _CLOSED:
            return False
        budget = self._budget
        if self.hold_count or not unhandled_bytes:
            if budget.is_spent:
                budget.leave(self._reader)
            return not self.hold_count
        if not self.may_handle(buffer_bytes):
            budget.leave(self._reader)
            if budget.is_overdrawn:
                budget.wait(self._reader)
            return False
        return not budget.is_spent or budget.admits(self._reader, self.charged_bytes)
