"""What a producer sends, and what it is told."""

from enum import Enum, auto
from typing import NamedTuple


class Write(NamedTuple):
    value: int
    acks: int
    producer: int
    sequence: int


class Verdict(Enum):
    AT = auto()
    TAKEN = auto()
    """With acks=0 nobody says where, or whether it stays."""
    REFUSED = auto()
    """It is not written, and never will be."""
    OUT_OF_ORDER = auto()
    UNKNOWN = auto()


class Produced(NamedTuple):
    verdict: Verdict
    offset: int = -1
    reason: str = ""

    @classmethod
    def at(cls, offset: int) -> "Produced":
        return cls(Verdict.AT, offset)

    @classmethod
    def taken(cls) -> "Produced":
        return cls(Verdict.TAKEN)

    @classmethod
    def refused(cls, reason: str) -> "Produced":
        return cls(Verdict.REFUSED, reason=reason)

    @classmethod
    def out_of_order(cls) -> "Produced":
        return cls(Verdict.OUT_OF_ORDER)

    @classmethod
    def unknown(cls, reason: str) -> "Produced":
        return cls(Verdict.UNKNOWN, reason=reason)
