"""Which names a topic may have.

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
        raise InvalidTopicName("a topic's name is empty")
    if name in (".", ".."):
        raise InvalidTopicName(f"a topic cannot be named {name!r}")
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        raise InvalidTopicName(
            f"a topic's name has {len(name)} characters, at most {TOPIC_NAME_LENGTH_MAX} are allowed"
        )
    if _ALLOWED.fullmatch(name) is None:
        raise InvalidTopicName(f"topic {name!r} has characters other than letters, digits, '.', '_' and '-'")


def check_collision(name: str, existing: Iterable[str]) -> None:
    """Raise `InvalidTopicName` if another topic's name differs only in `.` and `_`."""
    if "." not in name and "_" not in name:
        return
    folded = name.replace(".", "_")
    for other in existing:
        if other != name and len(other) == len(name) and other.replace(".", "_") == folded:
            raise InvalidTopicName(f"topic {name!r} collides with {other!r}: '.' and '_' count as the same")
