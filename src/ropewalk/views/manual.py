"""The documentation that belongs to this version: pages of Markdown, in the package, or in the clone that it runs from.

What a reader could get wrong
    A page is named by its path below docs without its ending, as `operating/tls`; its last part is enough where no other page ends so.
    A section goes from its heading to the next of the same rank or a higher one. Lines that begin with # within a block of code are no headings.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

import ropewalk
from ropewalk.base.errors import RopewalkError

_PACKAGED: Final = Path(ropewalk.__file__).parent / "docs"
_CLONED: Final = Path(ropewalk.__file__).parents[2] / "docs"
_FENCE: Final = re.compile(r"^\s*(```|~~~)")
_HEADING: Final = re.compile(r"^(#{1,6}) (.+)$")
_README: Final = "README"


class NoPage(RopewalkError):
    """There is no such page or section; the text says what there is instead."""


class Page(Struct, frozen=True):
    name: str
    title: str


class Found(Struct, frozen=True):
    """A line in which a text occurs, and the heading that it stands below."""

    page: str
    heading: str
    line: str


def folder() -> Path:
    """Raises `NoPage` where the documentation was left out of what is installed here."""
    for place in (_PACKAGED, _CLONED):
        if (place / f"{_README}.md").is_file():
            return place
    raise NoPage("the documentation is not installed here")


@cache
def pages() -> tuple[Page, ...]:
    """By name."""
    root = folder()
    names = sorted(str(path.relative_to(root).with_suffix("")) for path in root.rglob("*.md"))
    return tuple(Page(name, _title(_text(name))) for name in names)


def page_named(name: str) -> Page:
    """Raises `NoPage`, with the names that are like it."""
    wanted = name.strip("/").removeprefix("docs/").removesuffix(".md")
    known = {page.name: page for page in pages()}
    if wanted in known:
        return known[wanted]
    last = [each for each in known if each.rpartition("/")[2].lower() == wanted.lower()]
    if len(last) == 1:
        return known[last[0]]
    if last:
        raise NoPage(f"there are several pages {name!r}: {', '.join(sorted(last))}")
    ends = {each.rpartition("/")[2]: each for each in known}
    like = get_close_matches(wanted.rpartition("/")[2], ends, n=3)
    hint = f"; did you mean {', '.join(ends[each] for each in like)}?" if like else ""
    raise NoPage(f"there is no page {name!r}{hint}")


def text_of(page: Page, section: str | None = None) -> str:
    """The page, or one section of it, by its heading as it is written or as links have it. Raises `NoPage`."""
    text = _text(page.name)
    if not section:
        return text
    lines = text.splitlines(keepends=True)
    found = list(_headings(lines))
    for place, (at, rank, heading) in enumerate(found):
        if section.lower() in (heading.lower(), slug(heading)):
            end = next((after for after, other, _ in found[place + 1 :] if other <= rank), len(lines))
            return "".join(lines[at:end])
    raise NoPage(
        f"{page.name} has no section {section!r}; it has {', '.join(slug(each[2]) for each in found)}"
    )


def search(text: str) -> list[Found]:
    """Every line that contains it, whatever the case."""
    wanted = text.lower()
    found = []
    for page in pages():
        lines = _text(page.name).splitlines()
        headings = {at: heading for at, _, heading in _headings(lines)}
        heading = ""
        for at, line in enumerate(lines):
            heading = headings.get(at, heading)
            if wanted in line.lower():
                found.append(Found(page.name, slug(heading), line.strip()))
    return found


def slug(heading: str) -> str:
    """As links name it.

    >>> slug("Who can reach it?")
    'who-can-reach-it'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _headings(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """At which line, of which rank, and how it reads."""
    is_code = False
    for at, line in enumerate(lines):
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code and (found := _HEADING.match(line.rstrip())):
            yield at, len(found[1]), found[2]


def _title(text: str) -> str:
    return next((heading for _, _, heading in _headings(text.splitlines())), "")


def _text(name: str) -> str:
    return (folder() / f"{name}.md").read_text(encoding="utf-8")
