"""What a page needs of whoever asks for it: every page says it, and what it says is what is enforced (`http/admission.py`).

What a reader could get wrong
    What is open to anybody is asked for no name, and no name of the door either: a probe may call the node what it likes.
    What needs a right needs none where nothing is decided by rules.
"""

from typing import TypeAlias

from msgspec import Struct

from ropewalk.security.access import Operation


class Open(Struct, frozen=True):
    """Anybody may ask; `why` that is right."""

    why: str


class Figures(Struct, frozen=True):
    """One of the operations on the cluster; on the loopback, or where `http.metrics.open` says so, nothing."""

    operations: tuple[Operation, ...]


class Inner(Struct, frozen=True):
    """One of the operations on the cluster; where nothing is decided by rules, a connection from the node's own machine."""

    operations: tuple[Operation, ...]


class Known(Struct, frozen=True):
    """It is known who asks, if only that it is nobody in particular; `why` no more is needed here: the page asks for rights itself, say."""

    why: str


Needs: TypeAlias = Open | Figures | Inner | Known
