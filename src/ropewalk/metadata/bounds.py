"""How much of the metadata goes into one piece: an append, a page of the feed, the log between two snapshots.

A node runs with the limits of `base/limits.py`. Simulations draw smaller ones, so that changes are cut, pages follow each other and
snapshots are taken in runs that are short.
"""

from typing import Final

from msgspec import Struct

from ropewalk.base.limits import (
    METADATA_APPEND_BYTES_MAX,
    METADATA_FETCH_RECORDS_MAX,
    METADATA_LOG_BYTES_MAX,
)


class MetadataBounds(Struct, frozen=True):
    append_bytes_max: int = METADATA_APPEND_BYTES_MAX
    page_records_max: int = METADATA_FETCH_RECORDS_MAX
    log_bytes_max: int = METADATA_LOG_BYTES_MAX


USUAL: Final = MetadataBounds()
