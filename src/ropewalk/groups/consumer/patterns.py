"""Regular expressions from clients. RE2 takes time in proportion to the text, whatever the expression.

An expression has to match a whole name, as in Kafka. RE2 in Python has the syntax of RE2/J but for a few escapes.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Protocol

import re2

from ropewalk.base.limits import GROUP_PATTERN_BYTES_MAX, GROUP_PATTERNS_COMPILED_MAX
from ropewalk.groups.errors import InvalidPattern


class _Compiled(Protocol):
    def fullmatch(self, text: str) -> object | None: ...


_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = GROUP_PATTERN_BYTES_MAX


def check_pattern(pattern: str) -> None:
    _compiled(pattern)


def matching(pattern: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those of `names` that match, in order."""
    matches = _compiled(pattern).fullmatch
    return tuple(sorted(name for name in names if matches(name)))


@lru_cache(maxsize=GROUP_PATTERNS_COMPILED_MAX)
def _compiled(pattern: str) -> "_Compiled":
    try:
        compiled: _Compiled = re2.compile(pattern, _OPTIONS)
    except re2.error as problem:
        raise InvalidPattern(f"{pattern!r} is not a regular expression: {problem}") from problem
    return compiled
