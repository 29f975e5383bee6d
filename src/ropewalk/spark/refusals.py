"""What a user of the data source is told when something cannot be done."""


class Refusal(Exception):
    """All of them: one or two sentences that a user can act on, and that need no stack beside them."""


class WrongUse(Refusal, ValueError):
    """An option, a schema or a table that does not fit; the text says which and what would."""


class DataLost(Refusal, RuntimeError):
    """Offsets that were asked for, or came next, are no longer there."""


def said_of_made_anew(topic: str, read_id: str, found_id: str) -> str:
    """What every reader says of a topic that was deleted and made again under its name."""
    return (
        f"topic {topic} was deleted and made anew: the one that was read had the id {read_id}, the one that is there has {found_id}."
        " Offsets of the one mean nothing in the other. Start over with another checkpoint, or say onNewTopic=append to go on"
        " from the start of the new one"
    )


class NoTable(WrongUse):
    """There is no table where one is only looked at."""


class NotOurs(WrongUse):
    """A table that another job owns, or that nobody made for this purpose."""


class PipelineFailed(Refusal, RuntimeError):
    """A job went wrong on the way; the text is what whoever found it said."""

    def __init__(self, cause: str, log: str | None = None) -> None:
        super().__init__(cause)
        self.log = log
        """Where everything else that was said is kept."""


class Overtaken(PipelineFailed):
    """Somebody else has changed the table between the look at it and the commit; nothing was committed."""


class ReplayDiffers(Refusal, RuntimeError):
    """A batch comes again, or comes next, and does not fit what was written before."""


class MarkerLost(Refusal, RuntimeError):
    """What should tell how far a task has come is not there."""


class NotWritten(Refusal, RuntimeError):
    """Brokers did not take records; the text says which, why, and what to change."""
