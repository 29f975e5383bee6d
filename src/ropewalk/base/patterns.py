"""Regular expressions that strangers send, in RE2's syntax.

RE2 takes time in proportion to the text, whatever the expression; Python's own can be made to run for ever. Both the
expression and the memory it may take when compiled are bounded.
"""

from collections.abc import Callable

from ropewalk.base.limits import PATTERN_BYTES_MAX, PATTERN_CHARACTERS_MAX


def compile_pattern(text: str) -> Callable[[str], bool]:
    """Whether a name matches as a whole; raises `ValueError` with the reason if that is no expression, or too large."""
    if len(text) > PATTERN_CHARACTERS_MAX:
        raise ValueError(f"an expression of {len(text)} characters is longer than {PATTERN_CHARACTERS_MAX}")
    import re2  # loaded when the first expression comes: most nodes never see one

    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_BYTES_MAX
    try:
        compiled = re2.compile(text, options=options)
    except (re2.error, UnicodeEncodeError) as problem:
        raise ValueError(_reason(problem)) from problem
    return lambda name: compiled.fullmatch(name) is not None


def _reason(problem: Exception) -> str:
    detail = problem.args[0] if problem.args else problem
    return detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
