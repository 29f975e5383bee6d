"""A byte budget that many share and nobody may overdraw for long."""

from collections.abc import Callable


class ByteBudget:
    """Counts bytes that are held somewhere. When it is spent, whoever asks is called back in order of asking.

    Taking never fails halfway: what has arrived has arrived. The budget only says when to stop reading.
    """

    __slots__ = ("_resume", "bytes_max", "held_bytes")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held_bytes = 0
        self._resume: dict[Callable[[], None], None] = {}

    @property
    def is_spent(self) -> bool:
        return self.held_bytes >= self.bytes_max

    def take(self, count_bytes: int) -> None:
        self.held_bytes += count_bytes

    def give_back(self, count_bytes: int) -> None:
        self.held_bytes -= count_bytes
        assert self.held_bytes >= 0, "more was given back than taken"
        if self._resume and not self.is_spent:
            waiting, self._resume = self._resume, {}
            for resume in waiting:
                resume()

    def wait(self, resume: Callable[[], None]) -> None:
        """Call `resume` once when there is room again; asking twice is asking once."""
        self._resume[resume] = None

    def leave(self, resume: Callable[[], None]) -> None:
        self._resume.pop(resume, None)
