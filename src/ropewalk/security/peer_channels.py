"""On what connections nodes speak with each other: in the clear or under TLS, and who vouches for whom.

    off       in the clear only
    allow     TLS with whoever speaks it, the clear with the others: the way from one to the other
    require   TLS only; who it is is proved by the cluster's secret, which covers the certificate
    ca        as require, and an authority vouches for every node, its id and its roles

What a reader could get wrong
    With `allow` whoever can change the bytes between two nodes can keep them from speaking TLS.
    An authority does not replace the secret: a node needs both.
"""

import ssl
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ropewalk.base.limits import PEER_PLAIN_REMEMBERED_MS, PEERS_PLAIN_REMEMBERED_MAX

if TYPE_CHECKING:
    from ropewalk.security.certificates import NodeNames


class PeerTls(StrEnum):
    OFF = "off"
    ALLOW = "allow"
    REQUIRE = "require"
    CA = "ca"


class OwnContexts(Struct, frozen=True):
    """Of this node, on one day."""

    listening: ssl.SSLContext
    """It has the `certificate_hash` of what it shows."""

    calling: ssl.SSLContext
    names: "NodeNames | None" = None
    """In its own certificate; None where nobody vouches for nodes."""

    revoked: frozenset[tuple[bytes, int]] = frozenset()
    """Issuers and serial numbers of certificates that were withdrawn."""


class PeerChannels:
    def __init__(self, mode: Callable[[], PeerTls], own: Callable[[], OwnContexts] | None) -> None:
        """`mode` may change while a node runs; without `own` it is always `off`."""
        self._mode = mode
        self._own = own
        self._plain_until_ms: dict[str, float] = {}
        """By address: of nodes that spoke no TLS."""

    @property
    def speaks_tls(self) -> bool:
        return self._own is not None

    @property
    def needs_tls(self) -> bool:
        return self._mode() in (PeerTls.REQUIRE, PeerTls.CA)

    @property
    def takes_plain(self) -> bool:
        return not self.needs_tls

    def listening(self) -> ssl.SSLContext:
        return self._contexts().listening

    def calling(self) -> ssl.SSLContext:
        return self._contexts().calling

    def shown(self, connection: ssl.SSLObject | None) -> bytes | None:
        """The hash of the certificate that this node showed on a connection; None for a plain one."""
        return None if connection is None else connection.context.certificate_hash  # type: ignore[attr-defined]  # all of `listening` have it

    def check_other(
        self, certificate: bytes | None, *, node_id: int, roles: frozenset[str] | None, now_ms: int
    ) -> float | None:
        """Refuse whoever says that it is `node_id`, with these roles, and whose certificate says otherwise.

        Answers when the certificate ends; None where nobody vouches for nodes. Raises `CertificateRefused`.
        """
        own = None if self._own is None or self._mode() is not PeerTls.CA else self._own().names
        if own is None:
            return None
        from ropewalk.security.node_certificates import check_names, names_of_node

        named = names_of_node(certificate or b"", now_ms)
        check_names(named, own, node_id=node_id, roles=roles)
        return named.ends_at_ms

    @property
    def revoked(self) -> frozenset[tuple[bytes, int]]:
        """Where an authority vouches for nodes; the same object until the list is read again."""
        if self._own is None or self._mode() is not PeerTls.CA:
            return _NONE
        return self._own().revoked

    def is_revoked(self, connection: ssl.SSLObject | None) -> bool:
        """Whether the certificate that the other side showed was withdrawn since."""
        from ropewalk.security.node_certificates import serial_of

        certificate = None if connection is None else connection.getpeercert(binary_form=True)
        return certificate is not None and serial_of(certificate) in self.revoked

    def is_known_as_plain(self, address: str, now_ms: float) -> bool:
        return self._plain_until_ms.get(address, now_ms) > now_ms

    def remember_as_plain(self, address: str, now_ms: float) -> None:
        """For a while: a node that begins to speak TLS is found out soon."""
        if len(self._plain_until_ms) >= PEERS_PLAIN_REMEMBERED_MAX:
            self._plain_until_ms.clear()
        self._plain_until_ms[address] = now_ms + PEER_PLAIN_REMEMBERED_MS

    def _contexts(self) -> OwnContexts:
        assert self._own is not None, "asked of a node that speaks TLS"
        return self._own()


_NONE: Final[frozenset[tuple[bytes, int]]] = frozenset()

IN_THE_CLEAR: Final = PeerChannels(lambda: PeerTls.OFF, None)
