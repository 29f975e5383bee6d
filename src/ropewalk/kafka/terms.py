"""What one Kafka listener asks of those who come: on which protocol, with which certificates, and what they do first."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ropewalk.base.ports import TlsContexts
from ropewalk.metadata.records import KAFKA_LISTENER
from ropewalk.security.identity import Identity
from ropewalk.security.protocols import SecurityProtocol

if TYPE_CHECKING:
    from ropewalk.kafka.connection import Connection


class ListenerTerms(Struct, frozen=True, kw_only=True):
    listener: str
    """Its name among the endpoints that a node registers: clients are told the endpoints of that name."""

    protocol: SecurityProtocol
    tls: TlsContexts | None = None
    """None where the protocol is not encrypted."""

    identify: Callable[[bytes], Identity] | None = None
    """Who the owner of a certificate (DER) is. Raises `CertificateRefused`. None where clients show none."""

    admit: "Callable[[Connection], None] | None" = None
    """Called with every connection when it is accepted, before anything is read from it."""


PLAIN: Final = ListenerTerms(listener=KAFKA_LISTENER, protocol=SecurityProtocol.PLAINTEXT)
"""Whoever comes is served, and says no name."""
