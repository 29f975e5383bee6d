"""The tags of a queue: how many, how long, and of which characters."""

from collections.abc import Mapping
from typing import Final

from ropewalk.sqs.errors import INVALID_PARAMETER_VALUE, SqsRefusal

TAGS_MAX: Final = 50
KEY_CHARACTERS_MAX: Final = 128
VALUE_CHARACTERS_MAX: Final = 256
_OTHERS: Final = " _.:/=+-@"
"""AWS's own rule for tags of all services."""


def check(tags: Mapping[str, str], before: Mapping[str, str], *, name: str) -> None:
    """Raises `SqsRefusal`, and nothing has changed."""
    for key, value in tags.items():
        if not 1 <= len(key) <= KEY_CHARACTERS_MAX:
            raise SqsRefusal(
                INVALID_PARAMETER_VALUE,
                f"Tag keys must be between 1 and {KEY_CHARACTERS_MAX} characters in length.",
            )
        if len(value) > VALUE_CHARACTERS_MAX:
            raise SqsRefusal(
                INVALID_PARAMETER_VALUE,
                f"Tag values must be between 0 and {VALUE_CHARACTERS_MAX} characters in length.",
            )
        if not all(character.isalnum() or character in _OTHERS for character in key + value):
            raise SqsRefusal(
                INVALID_PARAMETER_VALUE,
                f"Tag keys and values can only include letters, digits, spaces and {_OTHERS.strip()}",
            )
    if len({**before, **tags}) > TAGS_MAX:
        raise SqsRefusal(INVALID_PARAMETER_VALUE, f"Too many tags added for queue {name}.")
