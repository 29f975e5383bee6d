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
    make, use = blocks("sh")
    subprocess.run(
        ["bash", "-e", "-c", make], cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE_S
    )
    (configuration,) = blocks("toml")
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
