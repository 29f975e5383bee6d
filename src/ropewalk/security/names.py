"""Names that a user may have, wherever it comes from: nobody may be called what stands for others."""

from collections.abc import Iterable
from typing import Final
from unicodedata import category

from ropewalk.base.limits import USER_NAME_BYTES_MAX

RESERVED_NAMES: Final = ("ANONYMOUS", "ropewalk", "*")
"""Of whoever said no name, of nodes that ask on their own account, and of everybody in a rule."""


def refusal_of(name: str) -> str | None:
    """Why no user may be called so; None for a name that one may have."""
    if not name:
        return "the name of a user is empty"
    try:
        size_bytes = len(name.encode())
    except UnicodeEncodeError:
        return f"the name {name!a:.200} has half a character"
    if size_bytes > USER_NAME_BYTES_MAX:
        return f"the name of a user has {size_bytes} bytes, at most {USER_NAME_BYTES_MAX} are allowed"
    if name in RESERVED_NAMES:
        return f"no user can be called {name!r}: it stands for others"
    if has_controls((name,)):
        return f"the name {name!r} has control characters"
    return None


def has_controls(names: Iterable[str]) -> bool:
    return any(category(character) == "Cc" for name in names for character in name)
