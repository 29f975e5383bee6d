"""Numbers and texts of deltas and snapshots as bytes: seven bits at a time, the sign in the lowest bit where there may be one."""

from collections.abc import Iterable, Sequence
from struct import pack, unpack

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

    def column(self, values: list[int]) -> None:
        """Many numbers, eight bytes each: how many is said elsewhere. Ten times as fast as one by one."""
        self.buffer += pack(f"<{len(values)}q", *values)

    def signed_all(self, values: Iterable[int]) -> None:
        """Each as `signed` writes it; how many is said elsewhere."""
        append = self.buffer.append
        for value in values:
            if 0 <= value < 0x40:
                append(value << 1)
            elif 0 <= value < 0x2000:
                append(value << 1 & 0x7F | 0x80)
                append(value >> 6)
            else:
                self.signed(value)

    def offsets(self, values: Sequence[int], origin: int) -> None:
        """Each by its distance from the one before."""
        self.number(len(values))
        self.signed_all([value - before for before, value in zip((origin, *values), values, strict=False)])


class Reader:
    """Raises `InvalidRecord` for bytes that are cut short or promise more than there is."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self) -> int:
        data, size = self._data, len(self._data)
        if self._position < size and (byte := data[self._position]) < 0x80:  # as most of them are
            self._position += 1
            return byte
        value = shift = 0
        while True:
            if self._position >= size or shift > 63:
                raise InvalidRecord("the state of a queue is cut short or garbled")
            byte = data[self._position]
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

    def column(self, count: int) -> tuple[int, ...]:
        return unpack(f"<{count}q", self.raw(8 * count))

    def count(self) -> int:
        """Of things that take a byte each at least, so that garbled bytes cannot ask for much memory."""
        value = self.number()
        if value > len(self._data) - self._position:
            raise InvalidRecord("the state of a queue promises more than it has")
        return value

    def offsets(self, origin: int) -> tuple[int, ...]:
        values = []
        for _ in range(self.count()):
            origin = self.offset(origin)
            values.append(origin)
        return tuple(values)

    def offset(self, origin: int) -> int:
        value = origin + self.signed()
        if not 0 <= value < 1 << 63:
            raise InvalidRecord("the state of a queue names an offset that no log has")
        return value

    def left(self) -> int:
        """Bytes that were not read yet."""
        return len(self._data) - self._position

    def finish(self) -> None:
        if self._position != len(self._data):
            raise InvalidRecord("the state of a queue goes on where it should end")
