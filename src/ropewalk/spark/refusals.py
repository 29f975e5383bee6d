"""What a user of the data source is told when something cannot be done."""


class WrongUse(ValueError):
    """An option, a schema or a table that does not fit; the text says which and what would."""


class DataLost(RuntimeError):
    """Offsets that were asked for, or came next, are no longer there."""
