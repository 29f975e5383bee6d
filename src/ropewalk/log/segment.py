"""One segment: a file of record batches in the order of their offsets, named for the first."""

from typing import Final

from ropewalk.base.ports import File
from ropewalk.log.index import SegmentIndex
from ropewalk.log.trust import Trust
from ropewalk.records.batch import BatchHeader

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
SNAPSHOT_SUFFIX: Final = ".snapshot"

TIMESTAMP_NONE: Final = -1


def path_of(directory: str, offset: int, suffix: str) -> str:
    return f"{directory}/{offset:020d}{suffix}"


def offsets_of(names: list[str], suffix: str) -> list[int]:
    """The offsets in the names of a directory's files of one kind, rising."""
    stems = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
    return sorted(int(stem) for stem in stems if len(stem) == 20 and stem.isdigit())


class Segment:
    __slots__ = (
        "base_offset",
        "end_offset",
        "index",
        "is_moving",
        "is_settled",
        "max_timestamp",
        "opened_at_ms",
        "path",
        "retired_file",
        "size_bytes",
        "trust",
    )

    def __init__(
        self, directory: str, base_offset: int, *, index_flushed_bytes: int = 0, size_bytes: int = 0
    ) -> None:
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.size_bytes = size_bytes
        self.max_timestamp = TIMESTAMP_NONE
        self.opened_at_ms: int | None = None
        """When the first batch came; None while there is none."""

        self.path = path_of(directory, base_offset, LOG_SUFFIX)
        self.index = SegmentIndex(
            path_of(directory, base_offset, INDEX_SUFFIX),
            base_offset,
            flushed_bytes=index_flushed_bytes,
            entry_position_min=size_bytes,
        )
        self.trust = Trust(written_from=size_bytes)
        self.is_settled = True
        """Whether all of it may be clean in the page cache: nothing was written since the last sync began."""

        self.is_moving = False
        """Whether its file is on its way to `path`, where those it replaces still lie."""

        self.retired_file: File | None = None
        """Its file, once compaction has put another segment in its place: `path` is not its own any more."""

    def note(self, base_offset: int, end_offset: int, header: BatchHeader, interval_bytes: int) -> None:
        """A batch stands at the end of the file. `header` may not be stamped yet."""
        position = self.size_bytes
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
        index = self.index
        if position >= index.entry_position_min:
            index.pending.add(base_offset - self.base_offset, position, self.max_timestamp)
            index.entry_position_min = position + interval_bytes
        self.size_bytes = position + header.size_bytes
        self.end_offset = end_offset
