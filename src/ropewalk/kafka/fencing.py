"""How a producer is told that another has taken its place, which older clients know by another name."""

from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import add_offsets_to_txn, add_partitions_to_txn, end_txn, init_producer_id

_KNOWN_SINCE: Final = {
    init_producer_id.API.key: 4,
    add_partitions_to_txn.API.key: 2,
    add_offsets_to_txn.API.key: 2,
    end_txn.API.key: 2,
}
"""By API key. Everywhere else the newer name is never used."""

_NEVER: Final = 1 << 15


def code_for_producer(error: RopewalkError, api_key: int, version: int) -> ErrorCode:
    """As `code_for`, in the words of that version."""
    code = code_for(error)
    if code == ErrorCode.PRODUCER_FENCED and version < _KNOWN_SINCE.get(api_key, _NEVER):
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
