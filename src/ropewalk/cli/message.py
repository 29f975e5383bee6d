"""From a line of input to a record."""

from msgspec import Struct

from ropewalk.records.record import Record


class Template(Struct, frozen=True):
    """What all records of one command have in common."""

    key: bytes | None = None
    key_delimiter: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    empty_as_null: bool = False

    def record(self, message: bytes, timestamp: int) -> Record:
        """A message without the key delimiter has no key, as with kcat."""
        key, value = self.key, message
        if self.key_delimiter is not None and self.key_delimiter in message:
            key, _, value = message.partition(self.key_delimiter)
        return Record(
            timestamp=timestamp,
            key=key,
            value=None if self.empty_as_null and not value else value,
            headers=self.headers,
        )
