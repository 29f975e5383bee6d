"""Receipt handles: what a receiver shows to delete a message, made and read without a table anywhere.

A handle says partition, offset and attempt, whose number has its leader's epoch in it (`queues/attempts.py`), with a digest over these and the queue's id under a key that all nodes of a cluster derive alike.

What a reader could get wrong
    The digest keeps one queue's handles, and those that somebody made up, from meaning something by accident. It is no protection from those who know
    the cluster's id: who may delete is decided by signatures.
"""

from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from hashlib import blake2s
from hmac import compare_digest
from struct import Struct as Layout
from typing import Final

from ropewalk.base.ids import OwnerId
from ropewalk.base.limits import SQS_ID_PREFIXES_MAX
from ropewalk.queues.messages import Receipt
from ropewalk.sqs.errors import RECEIPT_HANDLE_IS_INVALID, SqsRefusal

_LAYOUT: Final = Layout(">BIQQ")
_SAID_BYTES: Final = _LAYOUT.size
_pack: Final = _LAYOUT.pack
_unpack: Final = _LAYOUT.unpack
_VERSION: Final = 1
_DIGEST_BYTES: Final = 12
_HANDLE_CHARACTERS: Final = (_LAYOUT.size + _DIGEST_BYTES) * 4 // 3
_NUMBER_MAX: Final = 2**63 - 1
"""Whoever knows the cluster's id can make up a handle; what is larger could not be asked of another node."""
_PURPOSE: Final = b"sqs receipt handles"


_TO_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
_FROM_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")


class Receipts:
    __slots__ = ("_begun", "_key")

    def __init__(self, cluster_id: str) -> None:
        self._key = blake2s(_PURPOSE, key=blake2s(cluster_id.encode()).digest()).digest()
        self._begun: dict[OwnerId, blake2s] = {}
        """By queue: a digest that has seen the key and the queue's id, to be copied."""

    def handle(self, queue_id: OwnerId, receipt: Receipt) -> str:
        said = _pack(_VERSION, receipt.partition, receipt.offset, receipt.attempt)
        return b2a_base64(said + self._digest(said, queue_id), newline=False).translate(_TO_URL_SAFE).decode()

    def read(self, queue_id: OwnerId, handle: str) -> Receipt:
        """Raises `SqsRefusal` where it is not a handle of that queue."""
        if len(handle) != _HANDLE_CHARACTERS or not handle.isascii():
            raise SqsRefusal(RECEIPT_HANDLE_IS_INVALID)
        try:
            decoded = a2b_base64(handle.encode().translate(_FROM_URL_SAFE))
        except Base64Error:
            raise SqsRefusal(RECEIPT_HANDLE_IS_INVALID) from None
        said = decoded[:_SAID_BYTES]
        if not compare_digest(decoded[_SAID_BYTES:], self._digest(said, queue_id)):
            raise SqsRefusal(RECEIPT_HANDLE_IS_INVALID)
        _, partition, offset, attempt = _unpack(said)
        if max(offset, attempt) > _NUMBER_MAX:
            raise SqsRefusal(RECEIPT_HANDLE_IS_INVALID)
        return Receipt(partition, offset, attempt)

    def _digest(self, said: bytes, queue_id: OwnerId) -> bytes:
        begun = self._begun.get(queue_id)
        if begun is None:
            if len(self._begun) >= SQS_ID_PREFIXES_MAX:
                self._begun.clear()
            begun = self._begun[queue_id] = blake2s(queue_id, key=self._key, digest_size=_DIGEST_BYTES)
        digest = begun.copy()
        digest.update(said)
        return digest.digest()
