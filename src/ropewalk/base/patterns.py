"""Regular expressions that strangers send, in RE2's syntax.

RE2 takes time in proportion to the text, whatever the expression; Python's own can be made to run for ever. Both the
expression and the memory it may take when compiled are bounded.
"""

from collections.abc import Callable
from typing import Protocol

from ropewalk.base.limits import PATTERN_BYTES_MAX, PATTERN_CHARACTERS_MAX


def compile_pattern(text: str) -> Callable[[str], bool]:
    """Whether a name matches as a whole; raises `ValueError` with the reason if that is no expression, or too large."""
    compiled = _compiled(text)
    return lambda name: compiled.fullmatch(name) is not None


def compile_groups(text: str) -> Callable[[str], tuple[str, ...] | None]:
    """The groups of a name that matches as a whole, itself first; those that took no part are empty. Raises as `compile_pattern`."""
    compiled = _compiled(text)

    def match(name: str) -> tuple[str, ...] | None:
        found = compiled.fullmatch(name)
        return None if found is None else (found[0], *found.groups(default=""))

    return match


def compile_search(text: str) -> Callable[[bytes], bool]:
    """Whether bytes hold something that matches; raises as `compile_pattern`. What is no UTF-8 is searched all the same, and matched by no dot."""
    compiled = _compiled(text.encode())
    return lambda data: compiled.search(data) is not None


class _Match(Protocol):
    def __getitem__(self, group: int) -> str: ...

    def groups(self, default: str) -> tuple[str, ...]: ...


class _Compiled(Protocol):
    def fullmatch(self, name: str) -> _Match | None: ...

    def search(self, data: bytes) -> object | None: ...


def _compiled(text: str | bytes) -> _Compiled:
    if len(text) > PATTERN_CHARACTERS_MAX:
        raise ValueError(f"an expression of {len(text)} characters is longer than {PATTERN_CHARACTERS_MAX}")
    import re2  # loaded when the first expression comes: most nodes never see one

    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_BYTES_MAX
    try:
        compiled: _Compiled = re2.compile(text, options=options)
    except (re2.error, UnicodeEncodeError) as problem:
        raise ValueError(_reason(problem)) from problem
    return compiled


def _reason(problem: Exception) -> str:
    detail = problem.args[0] if problem.args else problem
    return detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
