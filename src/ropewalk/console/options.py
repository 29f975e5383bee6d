"""What whoever runs the console may choose."""

from msgspec import Struct


class ConsoleOptions(Struct, frozen=True):
    is_readonly: bool = False
    """Nothing can be changed from here, whoever asks."""
    shows_messages: bool = True
    """Whether what records hold is shown to those who may read it."""
