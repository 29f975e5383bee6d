"""Transaction markers: the control batches that end a transaction in a partition.

    key     version i16 (0), type i16 (0 abort, 1 commit)
    value   version i16 (0), coordinator epoch i32

What a reader could get wrong
    A marker has a producer id and an epoch but no sequence. It ends whatever its producer has open in the partition, with
    one exception for every version of the protocol, which `Producers` knows.
    Not every control batch is a marker of a transaction (`control.py`): `read_marker` is for those that have a producer. It answers
    None for others, for one that compaction has emptied, and for one that cannot be read.
    Later versions of key and value may have more fields at their ends, as in Kafka.
"""

from struct import Struct as Layout
from struct import error as struct_error
from typing import Final

from msgspec import Struct
from typing_extensions import Buffer

from ropewalk.base.errors import CorruptBatch, UnsupportedCompression
from ropewalk.base.ids import ProducerEpoch, ProducerId
from ropewalk.records.control import ControlType
from ropewalk.records.record import Record, build, iterate_records

OWN_EPOCHS_SINCE: Final = 2
"""The version of transactions from which on each has an epoch of its own (KIP-890)."""

_KEY: Final = Layout(">hh")
_VALUE: Final = Layout(">hi")
_VERSION: Final = 0


class TransactionMarker(Struct, frozen=True, gc=False):
    """What a coordinator wants written."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    committed: bool
    coordinator_epoch: int
    version: int = 0
    """Of transactions (`transaction.version`). From 2 on every transaction has an epoch of its own, and its marker has
    the next (KIP-890, KIP-1228)."""


class Marker(Struct, frozen=True, gc=False):
    """What a marker in a log says, besides its header."""

    committed: bool
    coordinator_epoch: int


def build_marker(
    producer_id: ProducerId,
    producer_epoch: ProducerEpoch,
    committed: bool,
    coordinator_epoch: int,
    timestamp_ms: int,
) -> bytearray:
    record = Record(
        timestamp=timestamp_ms,
        key=_KEY.pack(_VERSION, ControlType.COMMIT if committed else ControlType.ABORT),
        value=_VALUE.pack(_VERSION, coordinator_epoch),
    )
    return build(
        [record],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def read_marker(batch: Buffer) -> Marker | None:
    """What one whole control batch says; None if it ends no transaction."""
    try:
        record = next(iterate_records(batch), None)
        if record is None or record.key is None or record.value is None:
            return None
        _, kind = _KEY.unpack_from(record.key)
        _, coordinator_epoch = _VALUE.unpack_from(record.value)
    except (CorruptBatch, UnsupportedCompression, struct_error):
        return None
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    return Marker(kind == ControlType.COMMIT, coordinator_epoch)
