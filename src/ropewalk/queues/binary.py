"""Numbers and texts of deltas and snapshots as bytes: seven bits at a time, the sign in the lowest bit where there may be one."""

from collections.abc import Iterable

from ropewalk.base.errors import InvalidRecord


class Writer:
    def __init__(self) -> None:
        self.buffer = bytearray()

    def number(self, value: int) -> None:
        assert value >= 0, f"{value} needs a sign"
        buffer = self.buffer
        while value > 0x7F:
            buffer.append(value & 0x7F | 0x80)
            value >>= 7
        buffer.append(value)

    def signed(self, value: int) -> None:
        self.number(value << 1 if value >= 0 else ~value << 1 | 1)

    def text(self, value: bytes) -> None:
        self.number(len(value))
        self.buffer += value

    def offsets(self, values: Iterable[int], origin: int) -> None:
        """Each by its distance from the one before."""
        values = list(values)
        self.number(len(values))
        for value in values:
            self.signed(value - origin)
            origin = value


class Reader:
    """Raises `InvalidRecord` for bytes that are cut short or promise more than there is."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self) -> int:
        value = shift = 0
        while True:
            if self._position >= len(self._data) or shift > 63:
                raise InvalidRecord("the state of a queue is cut short or garbled")
            byte = self._data[self._position]
            self._position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def signed(self) -> int:
        value = self.number()
        return ~(value >> 1) if value & 1 else value >> 1

    def text(self) -> bytes:
        return self.raw(self.number())

    def raw(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise InvalidRecord("the state of a queue is cut short or garbled")
        value = self._data[self._position : end]
        self._position = end
        return value

    def count(self) -> int:
        """Of things that take a byte each at least, so that garbled bytes cannot ask for much memory."""
        value = self.number()
        if value > len(self._data) - self._position:
            raise InvalidRecord("the state of a queue promises more than it has")
        return value

    def offsets(self, origin: int) -> tuple[int, ...]:
        values = []
        for _ in range(self.count()):
            origin += self.signed()
            if origin < 0:
                raise InvalidRecord("the state of a queue names an offset below zero")
            values.append(origin)
        return tuple(values)

    def finish(self) -> None:
        if self._position != len(self._data):
            raise InvalidRecord("the state of a queue goes on where it should end")
