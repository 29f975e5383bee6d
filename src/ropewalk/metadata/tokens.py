"""The keys by which the cluster signs tokens of its own, as facts: every node has them, and so needs nobody to check a token.

What a reader could get wrong
    How long a key signs follows from when it was made and from when the next was (`security/tokens.py`), not from a record of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ropewalk.metadata.records import TokenKeyAdded, TokenKeyRemoved
from ropewalk.security.tokens import TokenKey, keys_of

TokenFact: TypeAlias = TokenKeyAdded | TokenKeyRemoved


class TokenKeyIndex:
    """The keys of an image. It lives as long as the image does, whatever that becomes."""

    __slots__ = ("_made", "by_id", "keys", "version")

    def __init__(self) -> None:
        self.version: int = 0
        """Another after every change, so that whoever keeps what follows from it can tell."""
        self.clear()

    def clear(self) -> None:
        self._made: dict[str, TokenKeyAdded] = {}
        self._on_changed()

    def apply(self, record: TokenFact) -> None:
        if isinstance(record, TokenKeyAdded):
            self._made[record.key_id] = record
        else:
            self._made.pop(record.key_id, None)
        self._on_changed()

    def facts(self) -> Iterator[TokenFact]:
        """The fewest records that rebuild this index."""
        yield from self._made.values()

    def _on_changed(self) -> None:
        self.version += 1
        self.keys: Sequence[TokenKey] = keys_of(
            (each.key_id, each.key, each.created_at_ms) for each in self._made.values()
        )
        """From the oldest to the newest."""
        self.by_id: Mapping[str, TokenKey] = {each.key_id: each for each in self.keys}
