"""Which names a topic may have. What is said of others is Kafka's wording: scripts look for it.

A name becomes part of a directory name, and of metric names in which `.` and `_` are the same character. So two
topics whose names differ only there cannot both exist.
"""

import re
from collections.abc import Iterable
from typing import Final

from ropewalk.base.errors import InvalidTopicName

TOPIC_NAME_LENGTH_MAX: Final = 249
"""A directory is named `<topic>-<partition>`, and a directory's name is limited to 255 characters."""

_ALLOWED: Final = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Raise `InvalidTopicName` unless `name` alone is fit for a topic."""
    if not name:
        raise InvalidTopicName("Topic name is invalid: the empty string is not allowed")
    if name in (".", ".."):
        raise InvalidTopicName(f"Topic name is invalid: '{name}' is not allowed")
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        raise InvalidTopicName(
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {TOPIC_NAME_LENGTH_MAX}"
        )
    if _ALLOWED.fullmatch(name) is None:
        raise InvalidTopicName(
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
        )


def check_collision(name: str, existing: Iterable[str]) -> None:
    """Raise `InvalidTopicName` if another topic's name differs only in `.` and `_`."""
    if "." not in name and "_" not in name:
        return
    folded = name.replace(".", "_")
    for other in existing:
        if other != name and len(other) == len(name) and other.replace(".", "_") == folded:
            raise InvalidTopicName(
                f"Topic '{name}' collides with existing topic: {other}; '.' and '_' count as the same"
            )
