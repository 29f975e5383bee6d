"""Contexts from files: what is loaded, what is refused by name, and who the owner of a certificate is."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from ropewalk.base.errors import InvalidSetting
from ropewalk.security.certificates import (
    CertificateNames,
    ClientAuth,
    NameFrom,
    TlsFiles,
    load,
    read_digest,
)
from ropewalk.security.identity import CertificateRefused
from tests.security.authority import authority

OURS, OTHER = authority(), authority("other")
NOW = datetime.now(UTC)
NOW_MS = int(NOW.timestamp() * 1000)
DAY = timedelta(days=1)


def der_of(keystore: Path) -> bytes:
    return x509.load_pem_x509_certificates(keystore.read_bytes())[0].public_bytes(Encoding.DER)


def test_a_context_follows_the_policy(tmp_path: Path) -> None:
    keystore = OURS.issue(tmp_path / "node.pem", "node")
    loaded = load(TlsFiles(keystore=str(keystore)), NOW_MS)
    context = loaded.context
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.options & ssl.OP_NO_COMPRESSION
    assert context.num_tickets == 1
    assert {cipher["kea"] for cipher in context.get_ciphers() if cipher["protocol"] == "TLSv1.2"} == {
        "kx-ecdhe"
    }
    assert all(cipher["aead"] for cipher in context.get_ciphers())
    assert context.verify_mode is ssl.CERT_NONE
    assert loaded.ends_at_ms > NOW_MS
    assert loaded.warnings == ()
    only_new = load(TlsFiles(keystore=str(keystore), versions=("TLSv1.3",)), NOW_MS).context
    assert only_new.minimum_version is ssl.TLSVersion.TLSv1_3


def test_what_is_in_the_files_tells_one_state_from_another(tmp_path: Path) -> None:
    keystore = OURS.issue(tmp_path / "node.pem", "node")
    files = TlsFiles(keystore=str(keystore))
    loaded = load(files, NOW_MS)
    assert read_digest(files) == loaded.digest
    OURS.issue(keystore, "node")
    assert read_digest(files) != loaded.digest


def test_a_node_that_trusts_clients_needs_authorities_and_takes_their_lists(tmp_path: Path) -> None:
    keystore, trust = OURS.issue(tmp_path / "node.pem", "node"), OURS.trust(tmp_path / "ca.pem")
    revoked = OURS.revoke(tmp_path / "crl.pem", keystore, days=5)
    files = TlsFiles(
        keystore=str(keystore), truststore=str(trust), revoked=str(revoked), client_auth=ClientAuth.REQUIRED
    )
    loaded = load(files, NOW_MS)
    assert loaded.context.verify_mode is ssl.CERT_REQUIRED
    assert loaded.context.verify_flags & ssl.VERIFY_CRL_CHECK_LEAF
    assert loaded.ends_at_ms < NOW_MS + 6 * 86_400_000, "a list that is out of date lets nobody in"
    bare = TlsFiles(keystore=str(keystore), client_auth=ClientAuth.REQUESTED)
    with pytest.raises(InvalidSetting, match=r"ssl\.client\.auth=requested needs ssl\.truststore\.location"):
        load(bare, NOW_MS)
    OURS.revoke(revoked, days=-1)
    with pytest.raises(InvalidSetting, match=r"crl.pem is out of date since"):
        load(files, NOW_MS)
    revoked.write_text("nothing of the kind")
    with pytest.raises(InvalidSetting, match=r"crl.pem holds no list of revocations"):
        load(files, NOW_MS)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_a_key_that_others_may_read_is_refused_by_name(tmp_path: Path, mode: int) -> None:
    keystore = OURS.issue(tmp_path / "node.pem", "node")
    keystore.chmod(mode)
    with pytest.raises(InvalidSetting, match=rf"others than its owner may use .*node.pem.*mode {mode:04o}"):
        load(TlsFiles(keystore=str(keystore)), NOW_MS)


def test_files_that_are_of_no_use_are_refused_by_name(tmp_path: Path) -> None:
    keystore = tmp_path / "node.pem"
    files = TlsFiles(keystore=str(keystore))

    def refused(words: str) -> None:
        with pytest.raises(InvalidSetting, match=words):
            load(files, NOW_MS)

    refused("node.pem cannot be read: No such file")
    OURS.issue(keystore, "node", not_before=NOW - 2 * DAY, not_after=NOW - DAY)
    refused(r"the certificate in .*node.pem \(.*\) ended at")
    OURS.issue(keystore, "node", not_before=NOW + DAY, not_after=NOW + 2 * DAY)
    refused(r"the certificate in .*node.pem \(.*\) begins at")
    one = OURS.issue(keystore, "node").read_bytes()
    other = OURS.issue(keystore, "node").read_bytes()
    key, certificate = one[: one.index(b"-----BEGIN CERT")], other[other.index(b"-----BEGIN CERT") :]
    keystore.write_bytes(key + certificate)
    refused("its key does not fit its first certificate")
    keystore.write_bytes(certificate)
    refused("it has no key, or an encrypted one")
    keystore.write_bytes(key)
    refused("node.pem holds no certificate")
    keystore.write_bytes(bytes(2 << 20))
    refused("is larger than")


def test_an_expensive_key_is_warned_of(tmp_path: Path) -> None:
    keystore = OURS.write_rsa(tmp_path / "rsa.pem")
    (warning,) = load(TlsFiles(keystore=str(keystore)), NOW_MS).warnings
    assert "RSA of 3072 bits" in warning


@pytest.mark.parametrize(
    ("name_from", "rules", "expected"),
    [
        (NameFrom.RULES, "DEFAULT", "CN=alice,OU=Testing cert #"),
        (NameFrom.RULES, r"RULE:^CN=([a-z]+),.*$/$1/U", "ALICE"),
        (NameFrom.COMMON_NAME, "DEFAULT", "alice"),
        (NameFrom.DNS, "DEFAULT", "alice.example"),
    ],
)
def test_a_certificate_names_its_owner_until_it_ends(
    tmp_path: Path, name_from: NameFrom, rules: str, expected: str
) -> None:
    keystore = OURS.issue(
        tmp_path / "alice.pem", "alice.example", common_name="alice", not_after=NOW + timedelta(days=3)
    )
    name, ends_at_ms = CertificateNames(name_from, rules).name_of(der_of(keystore), NOW_MS)
    assert name.startswith(expected.rstrip("#").rstrip())
    assert abs(ends_at_ms - NOW_MS - 3 * 86_400_000) < 1_000
    with pytest.raises(CertificateRefused, match="has ended"):
        CertificateNames(name_from, rules).name_of(der_of(keystore), ends_at_ms)


@pytest.mark.parametrize(
    ("name_from", "rules", "names", "common_name", "words"),
    [
        (
            NameFrom.RULES,
            "RULE:^CN=bob,.*$/bob/",
            ("a.example",),
            "alice",
            "no rule of ssl.principal.mapping",
        ),
        (NameFrom.RULES, "RULE:.*/*/", ("a.example",), "alice", "no name that a user can have"),
        (NameFrom.COMMON_NAME, "DEFAULT", ("a.example",), None, "has 0 names"),
        (NameFrom.DNS, "DEFAULT", ("a.example", "b.example"), "alice", "has 2 names"),
        (NameFrom.URI, "DEFAULT", ("a.example",), "alice", "has 0 names"),
    ],
)
def test_a_certificate_that_says_no_name_is_refused(
    tmp_path: Path,
    name_from: NameFrom,
    rules: str,
    names: tuple[str, ...],
    common_name: str | None,
    words: str,
) -> None:
    keystore = OURS.issue(tmp_path / "client.pem", *names, common_name=common_name)
    with pytest.raises(CertificateRefused, match=words):
        CertificateNames(name_from, rules).name_of(der_of(keystore), NOW_MS)


def test_bytes_that_are_no_certificate_are_refused() -> None:
    with pytest.raises(CertificateRefused, match="cannot be read"):
        CertificateNames(NameFrom.RULES, "DEFAULT").name_of(b"\x30\x03abc", NOW_MS)
