"""Certificates for tests: an authority, and what it and another one give to servers and clients."""

import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

Contexts = Callable[[], ssl.SSLContext]


_MAKER: Final = ThreadPoolExecutor(1)
"""Where keys and certificates are made: a simulated run has no real dice, in its own thread."""
_MAKER.submit(int).result()


class Authority:
    """Its own keys are made at once."""

    def __init__(self) -> None:
        self._ca = trustme.CA()
        self.server = self._server("node", "localhost", "127.0.0.1")
        yesterday = datetime.now(UTC) - timedelta(days=1)
        before = yesterday - timedelta(days=10)
        self.expired_server = self._server("node", "127.0.0.1", not_before=before, not_after=yesterday)
        self.misnamed_server = self._server("another")
        trusting = ssl.create_default_context()
        self._ca.configure_trust(trusting)
        self.client: Contexts = lambda: trusting
        """Trusts what this authority gave."""

    def _server(self, *names: str, **times: datetime) -> Contexts:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(*names, **times).configure_cert(context)  # type: ignore[arg-type]
        return lambda: context

    def issue(self, path: Path, *names: str, **options: Any) -> Path:
        """A key with its chain in a file, as a client or a node keeps them; options are those of trustme."""
        return _MAKER.submit(self._issue, path, *names, **options).result()

    def _issue(self, path: Path, *names: str, **options: Any) -> Path:
        issued = self._ca.issue_cert(*names, **options)
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        issued.private_key_and_cert_chain_pem.write_to_path(path)
        return path

    def write_rsa(self, path: Path) -> Path:
        """A key of RSA with more bits than are wise, and a certificate that it signed itself."""
        return _MAKER.submit(self._write_rsa, path).result()

    def _write_rsa(self, path: Path) -> Path:
        key = rsa.generate_private_key(public_exponent=65537, key_size=3072)
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rsa")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(1)
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .sign(key, hashes.SHA256())
        )
        path.touch(mode=0o600)
        path.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + certificate.public_bytes(Encoding.PEM)
        )
        return path

    def trust(self, path: Path) -> Path:
        """The authority itself in a file."""
        return _MAKER.submit(self._trust, path).result()

    def _trust(self, path: Path) -> Path:
        self._ca.cert_pem.write_to_path(path)
        return path

    def revoke(self, path: Path, *keystores: Path, days: int = 3000) -> Path:
        """A list of revocations in a file, with the certificates in those files."""
        return _MAKER.submit(self._revoke, path, *keystores, days=days).result()

    def _revoke(self, path: Path, *keystores: Path, days: int = 3000) -> Path:
        now = datetime.now(UTC)
        ca = x509.load_pem_x509_certificate(self._ca.cert_pem.bytes())
        key = load_pem_private_key(self._ca.private_key_pem.bytes(), None)
        assert isinstance(key, EllipticCurvePrivateKey)
        lists = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(ca.subject)
            .last_update(now - timedelta(days=5000))
            .next_update(now + timedelta(days=days))
        )
        for keystore in keystores:
            serial = x509.load_pem_x509_certificates(keystore.read_bytes())[0].serial_number
            entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build()
            lists = lists.add_revoked_certificate(entry)
        path.write_bytes(lists.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
        return path

    def write(self, directory: Path, *names: str) -> tuple[Path, Path]:
        """A server's key with its chain, and the authority, as files of PEM."""
        issued = self._ca.issue_cert(*(names or ("localhost", "127.0.0.1")))
        keystore, trust = directory / "server.pem", directory / "ca.pem"
        keystore.touch(mode=0o600)
        issued.private_key_and_cert_chain_pem.write_to_path(keystore)
        self._ca.cert_pem.write_to_path(trust)
        return keystore, trust


@lru_cache(maxsize=4)
def authority(name: str = "ours") -> Authority:
    """One for each name in a process: making keys takes time."""
    assert name
    return Authority()
