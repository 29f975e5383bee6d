"""What one API was asked and how that went: how long each answer took, and which error codes it carried.

What a reader could get wrong
    A request counts as served badly once, however many of its partitions failed, and only for errors that are ours: a client that
    asks for what it may not have, or goes to the wrong node, is served well.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from ropewalk.base.durations import Durations
from ropewalk.kafka.encoded import Encoded
from ropewalk.wire.compile import compile_errors_of
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.types import Message

OURS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors that a client can do nothing about, and that no other node would spare it."""


class Tally:
    """Added to with every answer: about a microsecond."""

    __slots__ = ("_errors_of", "bad_count", "durations", "errors", "measured", "working")

    def __init__(self) -> None:
        self.durations = Durations()
        self.working: Durations | None = None
        """Without the time that requests waited on purpose; None for an API that never does."""

        self.measured: Durations | None = None
        """What handlers measured besides (`Caller.measured_ms`)."""

        self.bad_count = 0
        """Answers in which something failed for a reason of ours."""

        self.errors: dict[int, int] = {}
        """How often each code other than 0 was answered, wherever it stood in an answer."""

        self._errors_of: Callable[[Any], list[int]] | None = None

    def on_answered(
        self,
        response: Message | None,
        duration_ms: float,
        waited_ms: float | None = None,
        measured_ms: float | None = None,
    ) -> None:
        """No response where the client asked for none."""
        self.durations.add(duration_ms)
        if waited_ms is not None:
            if self.working is None:
                self.working = Durations()
            self.working.add(max(0.0, duration_ms - waited_ms))
        if measured_ms is not None:
            if self.measured is None:
                self.measured = Durations()
            self.measured.add(measured_ms)
        if response is None:
            return
        if type(response) is Encoded:
            codes: Sequence[int] = response.error_codes
        else:
            if self._errors_of is None:  # compiled with the first answer, as codecs are
                self._errors_of = compile_errors_of(type(response))
            codes = self._errors_of(response)
        if codes and not OURS.isdisjoint(codes):
            self.bad_count += 1
        for code in codes:
            self.errors[code] = self.errors.get(code, 0) + 1
