"""Rows that cannot be read go to a table of their own, and each row of a topic is in exactly one of the two tables.

How
    Two tables have no commit in common, so one of them decides. Tasks write files for both. The commit of the table itself says,
    in the same act that moves its offsets on, which files of dead letters belong to it: from then on they are owed. The table
    of dead letters gets them in a commit of its own, which moves its offsets to the same place and so shows that they are paid.
    Whoever dies in between leaves a debt that is in the table's last commit for all to see; it is paid before anything else is
    committed, so there is never a second one.

What a reader could get wrong
    Rows are filtered by the offsets of the table alone. What a replayed batch makes of the same rows does not matter, even if a schema
    that was mended in between takes them for good: the table has decided, and its files and those it owes are of one attempt.
    Dead letters can be seen a moment later than the rows around them, never earlier.
    A batch without any owes nothing, and the table of dead letters is not touched.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.figures import Figures
from ropewalk.spark.lake.places import Place
from ropewalk.spark.lake.put_back import said_of_put_back
from ropewalk.spark.lake.table import Commit, LakeTable, WrittenFile
from ropewalk.spark.ranges import (
    Json,
    Offsets,
    Progress,
    TopicIds,
    from_json,
    made_anew,
    progress_in,
    to_json,
)
from ropewalk.spark.refusals import DataLost

NOTE: Final = "dead_letters"

_log = structlog.get_logger()


class Debt(Struct, frozen=True):
    """What the table of dead letters still has to get, or got last."""

    files: tuple[WrittenFile, ...]
    next_offsets: Json


def note_of(files: Sequence[WrittenFile], next_offsets: Offsets, topic_ids: TopicIds) -> dict[str, str]:
    """For the commit of the table whose batch it was."""
    if not files:
        return {}
    return {NOTE: msgspec.json.encode(Debt(tuple(files), to_json(next_offsets, topic_ids))).decode()}


def settle(table: LakeTable, letters: LakeTable) -> int:
    """Commits to `letters` what the last commit of `table` owes it, and says how many rows that were. Both must be opened anew for
    the next commit."""
    text = table.last_note().get(NOTE)
    if text is None:
        return 0
    debt = msgspec.json.decode(text, type=Debt)
    promised = progress_in(debt.next_offsets)
    put_back = letters.put_back(promised.offsets)
    if put_back is not None:
        raise DataLost(said_of_put_back(put_back, letters.next_offsets(promised.offsets)))
    known = letters.topic_ids(promised.ids)
    reached = Progress(letters.next_offsets(promised.offsets), known).without(made_anew(known, promised.ids))
    if is_paid(promised.offsets, reached.offsets):
        return 0
    files = _still_there(debt, letters)
    row_count = sum(each.row_count for each in files)
    figures = Figures(
        written_rows=row_count,
        written_bytes=sum(each.size_bytes for each in files),
        written_files=len(files),
        dead_letters=row_count,
    )
    note = {"rows": str(row_count)}
    letters.commit(Commit(files, promised.offsets, note, promised.ids, figures.noted()))
    return row_count


def is_paid(promised: Mapping[TopicPartition, int], reached: Mapping[TopicPartition, int]) -> bool:
    """A commit moves all of its partitions or none."""
    behind = [each for each, offset in promised.items() if reached.get(each, -1) < offset]
    ahead = [each for each, offset in promised.items() if reached.get(each, -1) > offset]
    if ahead or 0 < len(behind) < len(promised):
        strange = (ahead or behind)[0]
        raise DataLost(
            f"dead letters of {strange} reach to offset {reached.get(strange)}, and the table owes them up to {promised[strange]}:"
            " one of the two tables was put back to an earlier state. Put back the other one too, or begin both anew"
        )
    return not behind


def _still_there(debt: Debt, letters: LakeTable) -> tuple[WrittenFile, ...]:
    place = Place(letters.target.root, letters.target.storage)
    missing = [each for each in debt.files if not place.has(each.path, each.size_bytes)]
    if not missing:
        return debt.files
    if letters.last_note() or letters.next_offsets(from_json(debt.next_offsets)):
        raise DataLost(
            f"{missing[0].path} below {letters.target.root} is gone, which holds {missing[0].row_count} dead letters that are not"
            " committed yet. If they can be done without, delete the whole table of dead letters, and it is made anew"
        )
    # It was deleted, and with it what it was owed: whoever does that wants them gone.
    _log.warning("dead letters were deleted before they were committed", table=letters.target.root)
    return ()
