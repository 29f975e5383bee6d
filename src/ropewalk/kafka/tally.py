"""What one API was asked and how that went: how long each answer took, and which error codes it carried."""

from collections.abc import Callable, Sequence
from typing import Any

from ropewalk.base.durations import Durations
from ropewalk.kafka.encoded import Encoded
from ropewalk.wire.compile import compile_errors_of
from ropewalk.wire.types import Message


class Tally:
    """Added to with every answer: about a microsecond."""

    __slots__ = ("_errors_of", "durations", "errors")

    def __init__(self) -> None:
        self.durations = Durations()
        self.errors: dict[int, int] = {}
        """How often each code other than 0 was answered, wherever it stood in an answer."""

        self._errors_of: Callable[[Any], list[int]] | None = None

    def on_answered(self, response: Message | None, duration_ms: float) -> None:
        """None where the client asked for no answer."""
        self.durations.add(duration_ms)
        if response is None:
            return
        if type(response) is Encoded:
            codes: Sequence[int] = response.error_codes
        else:
            if self._errors_of is None:  # compiled with the first answer, as codecs are
                self._errors_of = compile_errors_of(type(response))
            codes = self._errors_of(response)
        for code in codes:
            self.errors[code] = self.errors.get(code, 0) + 1
