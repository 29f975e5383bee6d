"""What of a node's logs may rot: whole batches below the recovery point, as far as the platter has that.

Above the recovery point rot cannot be told from a torn write, and what was torn may be cut.
"""

from contextlib import suppress

from msgspec import DecodeError, Struct
from msgspec.json import decode

from ropewalk.base.errors import CorruptBatch, UnsupportedFormat
from ropewalk.base.ids import TopicPartition
from ropewalk.records.batch import BatchHeader, iterate, verify_crc
from ropewalk.sim.machines.platters import Platters
from ropewalk.sim.machines.storage import StoredFile


class RecoveryPoint(Struct):
    offset: int


class DurableBatch(Struct, frozen=True):
    partition: TopicPartition
    file: StoredFile
    position: int
    header: BatchHeader


def durable_batches(platters: Platters) -> list[DurableBatch]:
    """The sound ones of all partitions that the platter says were durable when it was last asked."""
    found: list[DurableBatch] = []
    recovery_points = _recovery_points(platters)
    for path, file in platters.files():
        directory, name = path.split("/")[-2:]
        topic, dash, index = directory.rpartition("-")
        if not (dash and index.isdigit() and name.endswith(".log")):
            continue
        limit = recovery_points.get(directory, 0)
        durable = memoryview(bytes(file.data[: file.durable_bytes]))
        with suppress(CorruptBatch, UnsupportedFormat):
            found += [
                DurableBatch(TopicPartition(topic, int(index)), file, position, header)
                for position, header in iterate(durable)
                if header.end_offset <= limit and verify_crc(durable[position : position + header.size_bytes])
            ]
    return found


def _recovery_points(platters: Platters) -> dict[str, int]:
    """By partition directory. The file has a checksum and a space before its JSON, and all of it twice."""
    for path, file in platters.files():
        if path.endswith("/recovery-points") and not file.is_dirty:
            with suppress(DecodeError):
                entries = decode(bytes(file.data).split(b"\n")[1][9:], type=dict[str, RecoveryPoint])
                return {name: entry.offset for name, entry in entries.items()}
    return {}
