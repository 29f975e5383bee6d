"""What a user of the data source is told when something cannot be done."""


class WrongUse(ValueError):
    """An option, a schema or a table that does not fit; the text says which and what would."""


class DataLost(RuntimeError):
    """Offsets that were asked for, or came next, are no longer there."""


class NotOurs(WrongUse):
    """A table that another job owns, or that nobody made for this purpose."""


class PipelineFailed(RuntimeError):
    """A job went wrong on the way; the text is what whoever found it said."""


class Overtaken(PipelineFailed):
    """Somebody else has changed the table between the look at it and the commit; nothing was committed."""


class ReplayDiffers(RuntimeError):
    """A batch comes again, or comes next, and does not fit what was written before."""


class MarkerLost(RuntimeError):
    """What should tell how far a task has come is not there."""


class NotWritten(RuntimeError):
    """Brokers did not take records; the text says which, why, and what to change."""
