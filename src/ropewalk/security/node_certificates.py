"""Certificates that nodes show each other: one that a node makes for itself, and the names in those that an authority gives.

Behaviour worth knowing
    Where nobody vouches for nodes each makes a key and a certificate when it starts, and keeps them in memory: the proof of the
    cluster's secret covers the certificate, so nobody has to know it beforehand, and there is nothing on a disk to protect or to replace.
    The certificate of an authority names a node by one URI among its alternative names:

        ropewalk://CLUSTER/node/ID?roles=broker,controller,frontend

    CLUSTER is a word that the operator chose; all nodes of a cluster have the same. It is compared with the one in this node's own certificate.

What a reader could get wrong
    OpenSSL reads keys from files only. A key that is made here goes through a file that has no name on any disk where the system has
    such, and else through one that only its owner may read and that is gone at once.
    A session that is resumed shows the certificate that it began with: its end is looked at here, each time.
"""

import hashlib
import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from msgspec import structs

from ropewalk.base.errors import InvalidSetting
from ropewalk.security.certificates import (
    ClientAuth,
    Loaded,
    NodeNames,
    ShownContext,
    TlsFiles,
    load,
    load_authorities,
    load_key,
)
from ropewalk.security.identity import CertificateRefused

_URI: Final = re.compile(r"ropewalk://([A-Za-z0-9._-]{1,64})/node/([0-9]{1,10})\?roles=([a-z]+(?:,[a-z]+)*)")
_CRL: Final = b"-----BEGIN X509 CRL-----"
_SCHEME: Final = "ropewalk:"
_FLIGHTS_MAX: Final = 4
"""How often either side of a handshake has a turn. TLS 1.3 needs two."""


def names_of_node(der: bytes, now_ms: int) -> NodeNames:
    """Raises `CertificateRefused`."""
    try:
        certificate = x509.load_der_x509_certificate(der)
        ends_at_ms = int(certificate.not_valid_after_utc.timestamp() * 1000)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    except x509.ExtensionNotFound:
        uris = []
    except ValueError as error:
        raise CertificateRefused(f"its certificate cannot be read: {error}") from None
    ours = [uri for uri in uris if uri.startswith(_SCHEME)]
    if len(ours) != 1:
        raise CertificateRefused(
            f"its certificate has {len(ours)} names ropewalk://CLUSTER/node/ID?roles=…, a node's has one"
        )
    named = _URI.fullmatch(ours[0])
    if named is None:
        raise CertificateRefused(
            f"its certificate names {ours[0]!r}, which is not ropewalk://CLUSTER/node/ID?roles=…"
        )
    if ends_at_ms <= now_ms:
        raise CertificateRefused(f"the certificate of node {named[2]} has ended")
    return NodeNames(named[1], int(named[2]), frozenset(named[3].split(",")), ends_at_ms)


def check_names(named: NodeNames, own: NodeNames, *, node_id: int, roles: frozenset[str] | None) -> None:
    """Refuse a certificate that is not for the node which says that it is `node_id` and has `roles`; None where it says none.

    Raises `CertificateRefused`.
    """
    if named.cluster != own.cluster:
        raise CertificateRefused(
            f"its certificate is for cluster {named.cluster}, this node's for {own.cluster}"
        )
    if named.node_id != node_id:
        raise CertificateRefused(
            f"its certificate is for node {named.node_id}, it is said to be node {node_id}"
        )
    if roles is not None and not roles <= named.roles:
        wanted = ", ".join(sorted(roles - named.roles))
        raise CertificateRefused(f"its certificate does not let node {node_id} be {wanted}")


def load_for_nodes(files: TlsFiles, now_ms: int) -> Loaded:
    """As `load`, for both sides of a connection between nodes. Waits for the disk; raises `InvalidSetting`.

    Without authorities the certificate is shown, and nobody is asked for one. With them a node that others would refuse is refused
    here: it shakes hands with itself.
    """
    loaded = load(files, now_ms)
    listening = loaded.context
    restrict(listening)
    listening.num_tickets = (
        0  # nobody comes back with a certificate that has ended, or was revoked, meanwhile
    )
    calling = calling_unvouched()
    load_key(calling, files)
    if files.client_auth is ClientAuth.NONE:
        return structs.replace(loaded, calling=calling)
    calling.verify_mode = ssl.CERT_REQUIRED
    load_authorities(calling, files, datetime.fromtimestamp(now_ms / 1000, UTC))
    try:
        names = names_of_node(_shown_to_itself(listening, calling), now_ms)
        assert files.node_id is not None, "they are for connections to other nodes"
        check_names(names, names, node_id=files.node_id, roles=frozenset(files.roles))
    except ssl.SSLCertVerificationError as error:
        reason = f"{files.truststore} does not vouch for it: {error.verify_message}"
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).replace("_", " ").lower()
    except CertificateRefused as error:
        reason = str(error)
    else:
        return structs.replace(loaded, calling=calling, names=names, revoked=revoked_in(files))
    raise InvalidSetting(
        f"{files.setting('keystore.location')}: node {files.node_id} cannot use {files.keystore}: {reason}"
    )


def revoked_in(files: TlsFiles) -> frozenset[tuple[bytes, int]]:
    """Waits for the disk. Of files that were loaded just now."""
    if not files.revoked:
        return frozenset()
    pieces = Path(files.revoked).read_bytes().split(_CRL)[1:]
    lists = [x509.load_pem_x509_crl(_CRL + piece) for piece in pieces]
    return frozenset((each.issuer.public_bytes(), entry.serial_number) for each in lists for entry in each)


def serial_of(der: bytes) -> tuple[bytes, int]:
    """As `revoked_in` has them."""
    certificate = x509.load_der_x509_certificate(der)
    return certificate.issuer.public_bytes(), certificate.serial_number


def _shown_to_itself(listening: ssl.SSLContext, calling: ssl.SSLContext) -> bytes:
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    caller = calling.wrap_bio(back, there, server_side=False)
    answerer = listening.wrap_bio(there, back, server_side=True)
    for _ in range(_FLIGHTS_MAX):
        for end in (caller, answerer):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    shown = caller.getpeercert(binary_form=True)
    assert shown is not None, "a server shows a certificate, or the handshake fails"
    return shown


def self_signed() -> tuple[ShownContext, ssl.SSLContext]:
    """For those who call this node, and for when it calls: a certificate that nobody vouches for, and that nobody is asked for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ropewalk")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(
            datetime(2000, 1, 1, tzinfo=UTC)
        )  # no clock is asked: it lives as long as the process
        .not_valid_after(datetime(9999, 12, 31, tzinfo=UTC))
        .sign(key, hashes.SHA256())
    )
    listening = ShownContext(ssl.PROTOCOL_TLS_SERVER)
    restrict(listening)
    listening.num_tickets = 0
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with _as_file(secret + certificate.public_bytes(Encoding.PEM)) as path:
        listening.load_cert_chain(path)
    listening.certificate_hash = hashlib.sha256(certificate.public_bytes(Encoding.DER)).digest()
    return listening, calling_unvouched()


def calling_unvouched() -> ssl.SSLContext:
    """For a connection to whoever: who it is is proved by other means."""
    calling = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    restrict(calling)
    calling.check_hostname = False  # a node is known by its id, wherever it is
    calling.verify_mode = ssl.CERT_NONE
    return calling


def restrict(context: ssl.SSLContext) -> None:
    """To what nodes speak with each other."""
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.options |= ssl.OP_NO_COMPRESSION


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("key")
        try:
            with open(descriptor, "wb", closefd=False) as file:
                file.write(content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile(prefix="ropewalk-") as file:  # mode 0600
        file.write(content)
        file.flush()
        yield file.name
