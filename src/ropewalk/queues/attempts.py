"""The numbers of attempts. Each says in its upper bits in which epoch its leader gave the messages out, and counts on below that.

So no two leaders ever use the same number, whatever the later one knows of the earlier: what a standard queue gave out and had not written, and what an unclean election
lost, is told from what was given out since. A handle of before then means nothing to a FIFO queue, and takes nothing back.
"""

from typing import Final

_COUNT_BITS: Final = 39
"""A leader that gave out so many is in the next epoch's numbers, which does no harm: the state remembers the latest."""
_COUNT_MASK: Final = (1 << _COUNT_BITS) - 1
_EPOCH_MAX: Final = (1 << 24) - 1


def first_attempt(leader_epoch: int) -> int:
    """The least number of those that a leader gives in this epoch."""
    return (min(leader_epoch, _EPOCH_MAX) << _COUNT_BITS) + 1


def count_of(attempt: int) -> int:
    """For people: the how-manieth it was of its leader."""
    return attempt & _COUNT_MASK
