"""What all nodes of a cluster know and nobody else, and how a node proves that it knows it without saying it.

A proof is an HMAC-SHA256 over the prover's side, both nonces and both node ids. Each side brings a nonce of its own, so a proof that
was overheard is of no use on any other connection; the sides differ, so one cannot be sent back to who made it.

What a reader could get wrong
    Proofs say who is at the other end when a connection begins. They do not hide what is sent on it: whoever can change the bytes
    between two nodes needs to be kept away by the network.
    The longer the secret, the better: whoever asks for a proof can try secrets against it at leisure.
"""

import hashlib
import hmac
from enum import Enum
from struct import Struct as Layout
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import CLUSTER_SECRET_CHARACTERS_MIN, PEER_NONCE_BYTES


class Side(Enum):
    CALLER = b"caller"
    ANSWERER = b"answer"


class Handshake(Struct, frozen=True):
    """What both sides have said before either proves anything."""

    caller_nonce: bytes
    answerer_nonce: bytes
    caller_id: int
    answerer_id: int


class ClusterSecret:
    __slots__ = ("_key",)

    def __init__(self, text: str) -> None:
        if len(text) < CLUSTER_SECRET_CHARACTERS_MIN:
            raise InvalidSetting(
                f"cluster.secret has {len(text)} characters, it needs {CLUSTER_SECRET_CHARACTERS_MIN} at least"
            )
        self._key: Final = text.encode()

    def __repr__(self) -> str:
        return "<ClusterSecret>"

    def prove(self, side: Side, handshake: Handshake) -> bytes:
        assert is_nonce(handshake.caller_nonce) and is_nonce(handshake.answerer_nonce)  # noqa: PT018  both alike
        said = (
            _DOMAIN,
            side.value,
            handshake.caller_nonce,
            handshake.answerer_nonce,
            _IDS.pack(handshake.caller_id, handshake.answerer_id),
        )
        return hmac.digest(self._key, b"".join(said), hashlib.sha256)

    def accepts(self, proof: bytes, side: Side, handshake: Handshake) -> bool:
        """Takes the same time whatever is wrong with the proof."""
        return hmac.compare_digest(proof, self.prove(side, handshake))


def is_nonce(nonce: bytes) -> bool:
    """Of one length only, so that no other pair of nonces has the same bytes when they are put together."""
    return len(nonce) == PEER_NONCE_BYTES


_DOMAIN: Final = b"ropewalk between nodes 1\0"
_IDS: Final = Layout(">ii")
