"""The stages in the life of a hosted partition of a queue, and which may follow which."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final


class Life(Enum):
    """As told in `hosted_queue.py`."""

    LOADING = auto()
    SERVING = auto()
    READING_AGAIN = auto()
    ENDED = auto()


LEGAL: Final[Mapping[Life, frozenset[Life]]] = {
    Life.LOADING: frozenset({Life.SERVING, Life.ENDED}),
    Life.SERVING: frozenset({Life.READING_AGAIN, Life.ENDED}),
    Life.READING_AGAIN: frozenset({Life.SERVING, Life.ENDED}),
    Life.ENDED: frozenset({Life.ENDED}),  # its partition may end, and then its node
}
"""What may follow what."""
