"""Templates to pages. Jinja2 is imported here, and this file with the first page.

What a reader could get wrong
    Everything that a template writes is escaped, and made visible first (`visible.py`). What must stay as it is, the name in a hidden field,
    goes through `exact`, which escapes and does no more.
    A name that a template does not know is an error, not nothing.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.resources import files
from typing import Final

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from ropewalk.base.version import VERSION
from ropewalk.console.page import BASE, link
from ropewalk.console.visible import visible
from ropewalk.http1.static import StaticFiles

_PREFIX: Final = BASE + "static/"
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


class Rendering:
    def __init__(self) -> None:
        """Reads files and compresses them: tens of milliseconds, off the event loop."""
        root = files("ropewalk.console")
        self.files = StaticFiles.load(_PREFIX, root / "static", root / "vendored")
        templates = {each.name: each.read_text("utf-8") for each in (root / "templates").iterdir()}
        self._environment = Environment(
            loader=FunctionLoader(templates.get),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_finalize,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters |= FILTERS
        self._environment.globals |= {
            "link": link,
            "static": self.files.address,
            "version": VERSION,
        }
        for name in templates:
            self._environment.get_template(name)

    def render(self, template: str, values: Mapping[str, object]) -> bytes:
        return self._environment.get_template(template).render(values).encode(errors="replace")


def _finalize(value: object) -> object:
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return "" if value is None else value


def exact(value: str) -> Markup:
    return escape(value)


def count(value: float | None) -> str:
    """
    >>> count(1234567), count(0.5), count(None)
    ('1,234,567', '0.5', '–')
    """
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) or value != int(value) else f"{int(value):,}"


def rate(value: float | None) -> str:
    """Of records in a second."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def size(value: int | None) -> str:
    """
    >>> size(512), size(1536), size(3 << 30), size(None)
    ('512 B', '1.5 KiB', '3.0 GiB', '–')
    """
    if value is None:
        return "–"
    amount = float(value)
    for unit in _UNITS[:-1]:
        if amount < 1024:
            return f"{int(amount)} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} {_UNITS[-1]}"


def duration(value_ms: float | None) -> str:
    """
    >>> duration(250), duration(90_000), duration(3 * 86_400_000), duration(None)
    ('250 ms', '1 min 30 s', '3 d', '–')
    """
    if value_ms is None:
        return "–"
    if value_ms < 1000:
        return f"{int(value_ms)} ms"
    rest, said = int(value_ms // 1000), []
    for seconds, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        amount, rest = divmod(rest, seconds)
        if amount:
            said.append(f"{amount} {unit}")
    return " ".join(said[:2])


def when(at_ms: int | None) -> Markup:
    """An instant, in UTC; the page writes it in its reader's zone."""
    if at_ms is None or at_ms < 0:
        return Markup("–")
    try:
        at = datetime.fromtimestamp(at_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return Markup("–")
    return Markup('<time datetime="{}">{}</time>').format(
        at.isoformat(timespec="milliseconds"), at.strftime("%Y-%m-%d %H:%M:%S UTC")
    )


FILTERS: Final[Mapping[str, Callable[..., object]]] = {
    "count": count,
    "rate": rate,
    "size": size,
    "duration": duration,
    "when": when,
    "exact": exact,
}
