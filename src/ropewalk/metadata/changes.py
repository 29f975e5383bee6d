"""A change that is too large for one append, cut so that any prefix of it is harmless.

A home takes appends up to a size. What is larger is begun and ended by records of its own; the image keeps what lies
between to itself until the end has come. Nobody ever sees a part of it, whatever happens to whoever writes it.
"""

from collections.abc import Iterator, Sequence

from ropewalk.base.errors import InvalidRequest
from ropewalk.base.limits import METADATA_APPEND_BYTES_MAX
from ropewalk.metadata.records import ChangeBegun, ChangeEnded, MetadataRecord, encode_records


def appends_of(
    records: Sequence[MetadataRecord], *, bytes_max: int = METADATA_APPEND_BYTES_MAX
) -> list[Sequence[MetadataRecord]]:
    """`records` as one append, or as several of at most `bytes_max` each.

    Raises `InvalidRequest` for a single fact that is larger.
    """
    if len(encode_records(records)) <= bytes_max:
        return [records]
    return list(_cut([ChangeBegun(), *records, ChangeEnded()], bytes_max))


def _cut(records: Sequence[MetadataRecord], bytes_max: int) -> Iterator[Sequence[MetadataRecord]]:
    part: list[MetadataRecord] = []
    part_bytes = _PART_BYTES
    for record in records:
        size_bytes = len(encode_records((record,)))
        if size_bytes + _PART_BYTES > bytes_max:
            raise InvalidRequest(
                f"one fact about the cluster takes {size_bytes} bytes, at most {bytes_max} are kept"
            )
        if part_bytes + size_bytes > bytes_max:
            yield part
            part, part_bytes = [], _PART_BYTES
        part.append(record)
        part_bytes += size_bytes
    yield part


_PART_BYTES = 8
"""What a list of records takes beside the records, and some to spare."""
