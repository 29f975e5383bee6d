"""What tables of a page say, read by rows."""

import re

from tests.console.asking import Page


def row(page: Page, start: str) -> str:
    """What a row says that begins with these words."""
    for cells in re.findall(r"<tr>(.*?)</tr>", page.text, re.DOTALL):
        words = Page(page.status, page.headers, cells).words
        if words.startswith(start):
            return words
    raise AssertionError(f"no row begins with {start!r}: {page.words}")
