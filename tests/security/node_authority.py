"""An authority that vouches for nodes, in tests."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

BEGINS: Final = datetime(2020, 1, 1, tzinfo=UTC)
ENDS: Final = datetime(2040, 1, 1, tzinfo=UTC)


class NodeAuthority:
    """No dice and no clock are asked beside OpenSSL's own, so that it works inside a simulated run."""

    def __init__(self, name: str = "nodes") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self._serial = 1
        self.certificate = (
            self._builder(self._name, self._key.public_key(), ENDS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def issue(
        self,
        path: Path,
        node_id: int,
        roles: str = "broker,controller,frontend",
        *,
        cluster: str = "orders",
        ends: datetime = ENDS,
        uris: tuple[str, ...] | None = None,
    ) -> Path:
        """A key with its certificate in a file, by one move; `uris` in the place of the one of a node."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"node {node_id}")])
        named = (f"ropewalk://{cluster}/node/{node_id}?roles={roles}",) if uris is None else uris
        builder = self._builder(name, key.public_key(), ends)
        if named:
            names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri) for uri in named])
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return put(
            path,
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + certificate.public_bytes(Encoding.PEM),
        )

    def trust(self, path: Path, *others: "NodeAuthority") -> Path:
        return put(path, b"".join(each.pem for each in (self, *others)))

    def revoke(self, path: Path, *keystores: Path) -> Path:
        lists = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self._name)
            .last_update(BEGINS)
            .next_update(ENDS)
        )
        for keystore in keystores:
            serial = x509.load_pem_x509_certificates(keystore.read_bytes())[0].serial_number
            entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(BEGINS).build()
            lists = lists.add_revoked_certificate(entry)
        return put(path, lists.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def _builder(
        self, name: x509.Name, key: ec.EllipticCurvePublicKey, ends: datetime
    ) -> x509.CertificateBuilder:
        self._serial += 1
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(self._serial)
            .not_valid_before(BEGINS)
            .not_valid_after(ends)
        )


def put(path: Path, content: bytes | str) -> Path:
    """Replace a file in one move, readable by its owner alone."""
    beside = path.with_name(f"{path.name}.next")
    beside.write_bytes(content if isinstance(content, bytes) else content.encode())
    beside.chmod(0o600)
    beside.replace(path)
    return path
