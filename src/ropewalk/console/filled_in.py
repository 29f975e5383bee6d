"""What people fill in: numbers, lines of settings, and the name that is typed before something is gone."""

from ropewalk.console.page import Wrong

_DIGITS_MAX = 18


def number(text: str, what: str, *, least: int = 0, otherwise: int | None = None) -> int:
    """`otherwise` stands for a field that was left empty. Raises `Wrong`."""
    if not text and otherwise is not None:
        return otherwise
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX) or int(text) < least:
        raise Wrong(f"{what}: write a number, {least} or more; {text!r} is none")
    return int(text)


def assignments(text: str) -> dict[str, str]:
    """Of lines `KEY=VALUE`. Raises `Wrong`."""
    found: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        key, equals, value = line.partition("=")
        if not equals or not key.strip():
            raise Wrong(f"settings: write one KEY=VALUE in a line; {line!r} is none")
        found[key.strip()] = value.strip()
    return found


def confirm(typed: str, name: str) -> None:
    """Raises `Wrong`."""
    if typed != name:
        raise Wrong(f"nothing was done: type the name, {name!r}, to say that you mean it")
