"""What senders and receivers of a queue are refused with.

RopewalkError
  QueueError
    TooManyInFlight        a standard queue has given out as much as it may; delete something first
    TooManyWaiting         more receives wait here than may
    ReceiptExpired         FIFO: the handle is of another attempt, or its time is over
    MessageNotInFlight     a visibility is to be changed of what is gone, or visible
    VisibilityTooLong      one attempt would hide the message for more than twelve hours in all
    DeduplicationFull      more deduplication ids within five minutes than can be remembered
    UnknownMove            the end of a move that is not under way
    UnknownTask            something is asked for a move task that is not the latest here
    MoveUnderWay           messages are on their way, and whether they arrived must be known first
"""

from ropewalk.base.errors import RopewalkError


class QueueError(RopewalkError):
    """The root of what is refused here. Nothing has changed."""


class TooManyInFlight(QueueError):
    pass


class TooManyWaiting(QueueError):
    pass


class ReceiptExpired(QueueError):
    pass


class MessageNotInFlight(QueueError):
    pass


class VisibilityTooLong(QueueError):
    pass


class DeduplicationFull(QueueError):
    pass


class UnknownMove(QueueError):
    pass


class UnknownTask(QueueError):
    pass


class MoveUnderWay(QueueError):
    pass
