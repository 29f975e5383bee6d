"""What all nodes of a cluster know and nobody else, and how a node proves that it knows it without saying it.

A proof is an HMAC-SHA256 over the prover's side, both nonces and both node ids. Each side brings a nonce of its own, so a proof that
was overheard is of no use on any other connection; the sides differ, so one cannot be sent back to who made it. It also covers the
channel: the certificate that the answerer showed, what it offered in ApiVersions, and what the caller says to be. Whoever stands
between two nodes shows a certificate of its own, or changes what is offered, and then neither proof fits
(`docs/internals/between-nodes.md`).

What a reader could get wrong
    Proofs say who is at the other end when a connection begins. On a plain connection they do not hide what is sent on it: whoever can
    change the bytes between two nodes needs to be kept away by the network there.
    Nodes of the release before bind their proofs to nothing. Such a proof is good on a plain connection only.
    The longer the secret, the better: whoever asks for a proof can try secrets against it at leisure.
    While a secret is changed there are two. Either is accepted, and the answerer proves both, so that a node that knows one of them is
    satisfied whichever it is.
"""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from enum import Enum
from struct import Struct as Layout
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import CLUSTER_SECRET_CHARACTERS_MIN, PEER_NONCE_BYTES


class Side(Enum):
    CALLER = b"caller"
    ANSWERER = b"answer"


class Channel(Struct, frozen=True):
    """What the two ends have seen of each other besides what a handshake says."""

    certificate_hash: bytes | None
    """SHA-256 of the certificate that the answerer showed; None on a plain connection."""

    offered: bytes
    """What the answerer said in ApiVersions, as `offered_digest` has it."""

    roles: tuple[str, ...]
    """What the caller says to be."""


class Handshake(Struct, frozen=True):
    """What both sides have said before either proves anything."""

    caller_nonce: bytes
    answerer_nonce: bytes
    caller_id: int
    answerer_id: int
    channel: Channel | None = None
    """None where one of the two is of the release before."""


class Key:
    """One secret."""

    __slots__ = ("_bytes",)

    def __init__(self, text: str) -> None:
        if len(text) < CLUSTER_SECRET_CHARACTERS_MIN:
            raise InvalidSetting(
                f"cluster.secret has {len(text)} characters, it needs {CLUSTER_SECRET_CHARACTERS_MIN} at least"
            )
        self._bytes: Final = text.encode()

    def is_same(self, other: "Key") -> bool:
        return hmac.compare_digest(self._bytes, other._bytes)

    def prove(self, side: Side, handshake: Handshake) -> bytes:
        assert is_nonce(handshake.caller_nonce) and is_nonce(handshake.answerer_nonce)  # noqa: PT018  both alike
        said = (
            _DOMAIN_UNBOUND if handshake.channel is None else _DOMAIN,
            side.value,
            handshake.caller_nonce,
            handshake.answerer_nonce,
            _IDS.pack(handshake.caller_id, handshake.answerer_id),
            b"" if handshake.channel is None else _bound(handshake.channel),
        )
        return hmac.digest(self._bytes, b"".join(said), hashlib.sha256)


class ClusterSecret:
    """The secret, and the one before it while that is still accepted. Both may change while a node runs."""

    __slots__ = ("_keys", "change_count")

    def __init__(self, text: str, previous: str = "") -> None:
        """Raises `InvalidSetting` for what is too short."""
        self._keys: tuple[Key, ...] = ()
        self.change_count = 0
        self.change(text, previous)

    def __repr__(self) -> str:
        return "<ClusterSecret>"

    def change(self, text: str, previous: str = "") -> None:
        """For all connections that begin from here on; those that are there stay. Raises `InvalidSetting`, and then nothing is changed."""
        self._keys = (Key(text), Key(previous)) if previous else (Key(text),)
        self.change_count += 1

    def is_current(self, key: Key) -> bool:
        """Whether a connection that was proved by it would be proved by it today, if the other end knows it, too."""
        return self._keys[0].is_same(key)

    def knows(self, key: Key) -> bool:
        """Whether it is still accepted."""
        return any(each.is_same(key) for each in self._keys)

    def prove(self, side: Side, handshake: Handshake) -> bytes:
        return self._keys[0].prove(side, handshake)

    def prove_former(self, side: Side, handshake: Handshake) -> bytes:
        """With the secret before; empty where there is none."""
        return self._keys[1].prove(side, handshake) if len(self._keys) > 1 else b""

    def accepts(self, proof: bytes, side: Side, handshake: Handshake) -> bool:
        """Takes the same time whatever is wrong with the proof."""
        return self.proved_by((proof,), side, handshake) is not None

    def proved_by(self, proofs: Sequence[bytes], side: Side, handshake: Handshake) -> Key | None:
        """The newest secret of ours that one of the proofs was made with. Takes the same time whatever is wrong with them."""
        found: Key | None = None
        for key in reversed(self._keys):
            expected = key.prove(side, handshake)
            for proof in proofs:
                if hmac.compare_digest(proof, expected):
                    found = key
        return found


def is_nonce(nonce: bytes) -> bool:
    """Of one length only, so that no other pair of nonces has the same bytes when they are put together."""
    return len(nonce) == PEER_NONCE_BYTES


def offered_digest(offered: Iterable[tuple[int, int, int]]) -> bytes:
    """Of API keys with their oldest and newest versions, in whatever order they were said."""
    return hashlib.sha256(b"".join(_OFFER.pack(*each) for each in sorted(offered))).digest()


def _bound(channel: Channel) -> bytes:
    """Of one length, and no two channels have the same."""
    certificate = channel.certificate_hash
    assert certificate is None or len(certificate) == _HASH_BYTES, "a certificate's SHA-256"
    assert len(channel.offered) == _HASH_BYTES, "as offered_digest makes it"
    shown = bytes(1 + _HASH_BYTES) if certificate is None else b"\1" + certificate
    return hashlib.sha256(shown + channel.offered + ",".join(channel.roles).encode()).digest()


_DOMAIN_UNBOUND: Final = b"ropewalk between nodes 1\0"
_DOMAIN: Final = b"ropewalk between nodes 2\0"
_IDS: Final = Layout(">ii")
_OFFER: Final = Layout(">hhh")
_HASH_BYTES: Final = 32
