"""The page on TLS is true: its certificates can be made, its node starts with them, and its client is served."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.compat.node_process import NodeProcess

PAGE = Path(__file__).parents[2] / "docs/operating/tls.md"
PATIENCE_S = 60

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None or shutil.which("kcat") is None, reason="openssl and kcat are missing"
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def test_the_page_makes_certificates_that_a_node_and_its_clients_use(tmp_path: Path) -> None:
    make, use, _ = blocks("sh")
    subprocess.run(
        ["bash", "-e", "-c", make], cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE_S
    )
    configuration, _ = blocks("toml")
    said = configuration.replace("/etc/ropewalk", str(tmp_path)).replace(
        "/var/lib/ropewalk", str(tmp_path / "data")
    )
    said = re.sub(r"^advertise = .*$", "", said, flags=re.MULTILINE)
    said = re.sub(r'^listen = ".*"$', 'listen = "127.0.0.1:0"', said, flags=re.MULTILINE)
    (tmp_path / "node.toml").write_text(said)
    node = NodeProcess(tmp_path, "--config", str(tmp_path / "node.toml"), command="serve")
    try:
        produce = use.replace("127.0.0.1:9093", node.bootstrap)
        subprocess.run(
            ["bash", "-e", "-c", produce], cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE_S
        )
        consume = produce.partition("| ")[2].replace(" -P ", " -C -c 1 -e ")
        told = subprocess.run(
            ["bash", "-e", "-c", consume], cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE_S
        )
        assert told.stdout == b"hello\n"
    finally:
        assert node.stop() == 0


def test_the_page_makes_a_certificate_that_vouches_for_a_node(tmp_path: Path) -> None:
    make, _, make_for_node = blocks("sh")
    make_authority = "".join(make.splitlines(keepends=True)[:2]).replace("ca.", "nodes-ca.")
    subprocess.run(
        ["bash", "-e", "-c", make_authority + make_for_node],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    _, configuration = blocks("toml")
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    secret.write_text("as long as a secret should be, and longer")
    _, configuration = blocks("toml")
    said = configuration.replace("/etc/ropewalk", str(tmp_path))
    (tmp_path / "node.toml").write_text(f'{said}listen = "127.0.0.1:0"\n')
    more = (f"cluster.secret.file={secret}", f"node.data={tmp_path / 'data'}", "http.listen=127.0.0.1:0")
    node = NodeProcess(
        tmp_path,
        "--config",
        str(tmp_path / "node.toml"),
        *(word for each in more for word in ("--set", each)),
        command="serve",
    )
    try:
        assert node.peer is not None
        authority = str(tmp_path / "nodes-ca.pem")
        shown = subprocess.run(
            ["openssl", "s_client", "-connect", node.peer, "-CAfile", authority, "-verify_return_error"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_S,
        )
        assert b"CN = node 0" in shown.stdout, shown.stderr
        assert b"Verify return code: 0 (ok)" in shown.stdout, shown.stderr
    finally:
        assert node.stop() == 0
