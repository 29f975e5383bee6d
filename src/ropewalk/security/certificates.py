"""Contexts for those who come by TLS, from files of PEM, and the names in the certificates that they show.

Behaviour worth knowing
    What cannot be used is refused with a sentence that names the file: a key that others may read or that does not fit its certificate, a
    certificate that has ended or has not begun, a list of revocations that is out of date, client certificates without an authority.
    TLS 1.2 and 1.3, with forward secrecy and authenticated encryption only; no renegotiation and no compression.
    One ticket for each session: without any, the first request of a client waits for an acknowledgement that TCP delays.

What a reader could get wrong
    A session that is resumed shows the certificate that it began with, which may have ended since: whoever takes a name from one looks at
    its end, and keeps it as the end of the connection. A context does not know the tickets of another, so that to replace the contexts
    is to forget all sessions.
    With a list of revocations, every authority whose clients come needs one.
"""

import hashlib
import os
import ssl
import stat
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import CERTIFICATE_FILE_BYTES_MAX, USER_NAME_BYTES_MAX
from ropewalk.security.distinguished_names import spelled
from ropewalk.security.identity import CertificateRefused
from ropewalk.security.principal_rules import PrincipalRules

_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_RSA_BITS_CHEAP: Final = 2048
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class ClientAuth(StrEnum):
    NONE = "none"
    REQUESTED = "requested"
    """Whoever shows a certificate has its name; whoever shows none has no name."""

    REQUIRED = "required"


class NameFrom(StrEnum):
    """Where in a certificate its owner's name is."""

    RULES = "rules"
    """The whole subject, as `ssl.principal.mapping.rules` have it."""

    COMMON_NAME = "cn"
    DNS = "san.dns"
    URI = "san.uri"


class ShownContext(ssl.SSLContext):
    """One that knows what it shows: OpenSSL does not tell afterwards."""

    certificate_hash: bytes
    """SHA-256 of the node's own certificate."""


class TlsFiles(Struct, frozen=True, kw_only=True):
    """What a context is made of. Equal ones share theirs."""

    keystore: str
    """The path of a key and its chain."""

    password: str = ""
    """Of the key; empty where it is not encrypted."""

    truststore: str = ""
    """The path of the authorities that client certificates come from."""

    revoked: str = ""
    """The path of a list of revocations; empty for none."""

    client_auth: ClientAuth = ClientAuth.NONE
    versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    node_id: int | None = None
    """Of this node, where the files are for connections to others; None where they are for clients."""

    roles: tuple[str, ...] = ()
    """What this node is."""

    def setting(self, name: str) -> str:
        """What the setting is called that names one of them."""
        return f"peer.ssl.{name}" if self.node_id is not None else f"ssl.{name}"

    def __repr__(self) -> str:
        return f"TlsFiles({self.keystore}, {self.client_auth})"


class NodeNames(Struct, frozen=True):
    """Which node of which cluster a certificate is for, and what it may be there."""

    cluster: str
    node_id: int
    roles: frozenset[str]
    ends_at_ms: int


class Loaded(Struct, frozen=True):
    context: ShownContext
    digest: bytes
    """Of what was in the files."""

    ends_at_ms: int
    """When the node's own certificate does, or a list of revocations before that."""

    warnings: tuple[str, ...]
    calling: ssl.SSLContext | None = None
    """For connections to other nodes; None where the files are not for these."""

    names: NodeNames | None = None
    """Of this node in its own certificate; None where it is not for other nodes."""

    revoked: frozenset[tuple[bytes, int]] = frozenset()
    """Issuers and serial numbers of certificates of nodes that are not good any more."""


def load(files: TlsFiles, now_ms: int) -> Loaded:
    """Waits for the disk. Raises `InvalidSetting`, in which no secret is quoted."""
    contents = _contents(files)
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    certificates = _certificates(contents[files.setting("keystore.location")], files.keystore)
    own = certificates[0]
    _check_times(own, files.keystore, now)
    context = ShownContext(ssl.PROTOCOL_TLS_SERVER)
    context.certificate_hash = hashlib.sha256(own.public_bytes(Encoding.DER)).digest()
    versions = sorted(_VERSIONS[version] for version in files.versions)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.num_tickets = 1
    load_key(context, files)
    ends = own.not_valid_after_utc
    if files.client_auth is not ClientAuth.NONE:
        if not files.truststore:
            raise InvalidSetting(
                f"ssl.client.auth={files.client_auth} needs ssl.truststore.location, the authorities that client certificates come from"
            )
        _trust(context, _certificates(contents[files.setting("truststore.location")], files.truststore))
        context.verify_mode = (
            ssl.CERT_REQUIRED if files.client_auth is ClientAuth.REQUIRED else ssl.CERT_OPTIONAL
        )
        if files.revoked:
            ends = min(ends, _load_revocations(context, contents[files.setting("crl.location")], files, now))
    return Loaded(
        context, digest_of(contents), int(ends.timestamp() * 1000), tuple(_warnings(own, files.keystore))
    )


def load_authorities(context: ssl.SSLContext, files: TlsFiles, now: datetime) -> None:
    """Those that vouch for others, with what they have revoked. Raises `InvalidSetting`."""
    contents = _contents(files)
    _trust(context, _certificates(contents[files.setting("truststore.location")], files.truststore))
    if files.revoked:
        _load_revocations(context, contents[files.setting("crl.location")], files, now)


def _trust(context: ssl.SSLContext, authorities: Sequence[x509.Certificate]) -> None:
    context.load_verify_locations(cadata=b"".join(each.public_bytes(Encoding.DER) for each in authorities))


def read_digest(files: TlsFiles) -> bytes:
    """Waits for the disk. What tells one state of the files from another; raises as `load`."""
    return digest_of(_contents(files))


def digest_of(contents: dict[str, bytes]) -> bytes:
    parts = (hashlib.sha256(content).digest() for content in contents.values())
    return hashlib.sha256(b"".join(parts)).digest()


class CertificateNames:
    """Who the owner of a client certificate is."""

    def __init__(self, name_from: NameFrom, rules: str) -> None:
        """Raises `InvalidSetting` for rules that are none."""
        self._from = name_from
        self._rules = PrincipalRules(rules)

    def name_of(self, der: bytes, now_ms: int) -> tuple[str, int]:
        """The name, and when it ends. Raises `CertificateRefused`."""
        try:
            certificate = x509.load_der_x509_certificate(der)
            ends_at_ms = int(certificate.not_valid_after_utc.timestamp() * 1000)
            name = self._name(certificate)
        except ValueError as error:
            raise CertificateRefused(f"its certificate cannot be read: {error}") from None
        if ends_at_ms <= now_ms:
            raise CertificateRefused(f"the certificate of {name!r} has ended")
        return _checked(name), ends_at_ms

    def _name(self, certificate: x509.Certificate) -> str:
        if self._from is NameFrom.RULES:
            subject = spelled(certificate.subject.public_bytes())
            name = self._rules.apply(subject)
            if name is None:
                raise CertificateRefused(f"no rule of ssl.principal.mapping.rules matches {subject!r}")
            return name
        if self._from is NameFrom.COMMON_NAME:
            found = [
                str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
            ]
        else:
            found = _alternative_names(certificate, self._from)
        if len(found) != 1:
            raise CertificateRefused(
                f"its certificate has {len(found)} names of the kind that ssl.principal.from={self._from} asks for, must have one"
            )
        return found[0]


def _alternative_names(certificate: x509.Certificate, name_from: NameFrom) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    if name_from is NameFrom.DNS:
        return names.get_values_for_type(x509.DNSName)
    return names.get_values_for_type(x509.UniformResourceIdentifier)


def _checked(name: str) -> str:
    if name in ("", "*") or not name.isprintable() or len(name.encode()) > USER_NAME_BYTES_MAX:
        raise CertificateRefused(f"{name[:USER_NAME_BYTES_MAX]!r} is no name that a user can have")
    return name


def _contents(files: TlsFiles) -> dict[str, bytes]:
    """By the setting that names the file."""
    named = {
        files.setting("keystore.location"): files.keystore,
        files.setting("truststore.location"): files.truststore,
        files.setting("crl.location"): files.revoked,
    }
    return {
        setting: _read(path, setting, is_secret=path == files.keystore)
        for setting, path in named.items()
        if path
    }


def _read(path: str, setting: str, *, is_secret: bool) -> bytes:
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(CERTIFICATE_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidSetting(f"{setting}: {path} cannot be read: {error.strerror or error}") from None
    if is_secret and mode & _OTHERS:
        raise InvalidSetting(
            f"{setting}: others than its owner may use {path}, which holds a key (mode {stat.S_IMODE(mode):04o}); run chmod 600 {path}"
        )
    if len(content) > CERTIFICATE_FILE_BYTES_MAX:
        raise InvalidSetting(f"{setting}: {path} is larger than {CERTIFICATE_FILE_BYTES_MAX} bytes")
    return content


def _certificates(content: bytes, path: str) -> Sequence[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        raise InvalidSetting(f"{path} holds no certificate in PEM") from None


def _check_times(own: x509.Certificate, path: str, now: datetime) -> None:
    if own.not_valid_after_utc <= now:
        raise InvalidSetting(
            f"the certificate in {path} ({spelled(own.subject.public_bytes())}) ended at {_written(own.not_valid_after_utc)}"
        )
    if own.not_valid_before_utc > now:
        raise InvalidSetting(
            f"the certificate in {path} ({spelled(own.subject.public_bytes())}) begins at {_written(own.not_valid_before_utc)}"
        )


def load_key(context: ssl.SSLContext, files: TlsFiles) -> None:
    """Raises `InvalidSetting`."""
    try:
        # A password is always given: OpenSSL asks at the terminal otherwise.
        context.load_cert_chain(files.keystore, password=files.password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            reason = "its key does not fit its first certificate"
        elif files.password:
            reason = f"it has no key that {files.setting('key.password')} opens"
        else:
            reason = f"it has no key, or an encrypted one, which needs {files.setting('key.password')}"
        raise InvalidSetting(
            f"{files.setting('keystore.location')}: {files.keystore} cannot be used: {reason}"
        ) from None
    except OSError as error:
        raise InvalidSetting(
            f"{files.setting('keystore.location')}: {files.keystore}: {error.strerror or error}"
        ) from None


def _load_revocations(context: ssl.SSLContext, content: bytes, files: TlsFiles, now: datetime) -> datetime:
    """When the first of the lists is out of date."""
    path, setting = files.revoked, files.setting("crl.location")
    pieces = content.split(b"-----BEGIN X509 CRL-----")[1:]
    try:
        lists = [x509.load_pem_x509_crl(b"-----BEGIN X509 CRL-----" + piece) for piece in pieces]
        context.load_verify_locations(cafile=path)
    except (ValueError, OSError):
        lists = []
    if not lists:
        raise InvalidSetting(f"{setting}: {path} holds no list of revocations in PEM")
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    ends = min(each.next_update_utc or datetime.max.replace(tzinfo=UTC) for each in lists)
    if ends <= now:
        raise InvalidSetting(
            f"{setting}: the list of revocations in {path} is out of date since {_written(ends)}"
        )
    return ends


def _warnings(own: x509.Certificate, path: str) -> Sequence[str]:
    key = own.public_key()
    if isinstance(key, RSAPublicKey) and key.key_size > _RSA_BITS_CHEAP:
        return (
            f"the key in {path} is RSA of {key.key_size} bits: each handshake holds the node up for some milliseconds; ECDSA with P-256 takes a "
            "fiftieth of a millisecond",
        )
    return ()


def _written(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%d %H:%M:%S UTC")
