"""What members of protocol type "consumer" tell the leader about themselves, as far as a broker looks into it.

The bytes are the clients' business. Only the topics are read, which stand first in every version: an INT16 version,
then an array of strings with 32-bit and 16-bit lengths. Whatever cannot be read so is taken as unknown.
"""

from struct import Struct
from typing import Final

CONSUMER_PROTOCOL_TYPE: Final = "consumer"

_HEAD: Final = Struct(">hi")
_LENGTH: Final = Struct(">H")


def decode_topics(metadata: bytes) -> frozenset[str] | None:
    """The topics a member is subscribed to, or None where these bytes are not a subscription."""
    if len(metadata) < _HEAD.size:
        return None
    version, count = _HEAD.unpack_from(metadata)
    if version < 0 or count < 0:
        return None
    topics = set()
    position = _HEAD.size
    for _ in range(count):
        end = position + _LENGTH.size
        if end > len(metadata):
            return None
        (size,) = _LENGTH.unpack_from(metadata, position)
        position, end = end, end + size
        if end > len(metadata):
            return None
        try:
            topics.add(metadata[position:end].decode())
        except UnicodeDecodeError:
            return None
        position = end
    return frozenset(topics)
