"""Which files of a Delta table only versions name that are about to be forgotten.

What a reader could get wrong
    A vacuum deletes by age, and a table that is written to every second has forgotten thousands of versions long before. So what a forgotten
    commit says that it removed is deleted with it. Such a file was committed once: it is never one of a batch under way.
    A file may come back: RESTORE adds what was removed. So what kept versions have counts, and not only what was removed.
    Paths in the log are quoted like URLs.
"""

from collections.abc import Iterable, Iterator
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from ropewalk.spark.lake.places import Place


class _File(Struct, frozen=True):
    path: str


class _Action(Struct, frozen=True):
    """A line of a commit; what else it may be is passed over."""

    add: _File | None = None
    remove: _File | None = None


_DECODER = msgspec.json.Decoder(_Action)


def forgotten_files(
    log: Place, forgotten: Iterable[str], kept: Iterable[str], live: Iterable[str]
) -> list[str]:
    """Relative to the table. `forgotten` and `kept` are commits by their names in the log, the first of `kept` the one from which versions can be
    read; `live` are the files of that version."""
    kept_commits = list(kept)
    removed = {each.remove.path for each in _actions(log, [*forgotten, *kept_commits[:1]]) if each.remove}
    added = {each.add.path for each in _actions(log, kept_commits[1:]) if each.add}
    gone = {unquote(each) for each in removed - added}
    return sorted(each for each in gone - set(live) if _is_inside(each))


def _actions(log: Place, names: Iterable[str]) -> Iterator[_Action]:
    for name in names:
        for line in log.read(name).splitlines():
            if line:
                yield _DECODER.decode(line)


def _is_inside(path: str) -> bool:
    """Tables may name files of others, by whole addresses."""
    return path.endswith(".parquet") and "://" not in path and not path.startswith("/") and ".." not in path
