"""The bundle holds what helps of every node that answers, and no secret that was planted anywhere."""

import json
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ropewalk.views.diagnosis.bundling import Bundle
from tests.cli.conftest import Ropewalk, start_process

SECRET_OF_CLUSTER = "planted-cluster-secret-0123456789abcdef"
SECRET_OF_WEBHOOK = "planted-webhook-path"
SECRET_OF_CLIENT = "planted-client-password"
RECORD = "planted-record"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a node of a cluster, with secrets in its configuration."""
    folder = tmp_path_factory.mktemp("node")
    (folder / "node.toml").write_text(
        f'"cluster.secret" = "{SECRET_OF_CLUSTER}"\n'
        f'"alerts.webhook" = "https://127.0.0.1:1/hook/{SECRET_OF_WEBHOOK}"\n'
    )
    (folder / "node.toml").chmod(0o600)
    process = start_process(
        "up",
        "--config",
        str(folder / "node.toml"),
        "--data",
        str(folder / "data"),
        "--kafka",
        "127.0.0.1:0",
        "--peer",
        "127.0.0.1:0",
        "--sqs",
        "none",
        "-o",
        "json",
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()
    yield json.loads(line)["kafka"][0]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)


@pytest.fixture
def archive(node: str, ropewalk: Ropewalk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("ROPEWALK_BOOTSTRAP", node)
    assert ropewalk("topic", "create", "orders", "-p", "1").exit_code == 0
    assert ropewalk("produce", "orders", stdin=RECORD).exit_code == 0
    path = tmp_path / "bundle.tar.gz"
    result = ropewalk("debug", "bundle", "--file", str(path), "-o", "json")
    assert result.exit_code == 0, result.output
    assert path.stat().st_mode & 0o777 == 0o600
    with tarfile.open(path) as opened:
        members = [(each.name, opened.extractfile(each)) for each in opened.getmembers()]
        read = {name.partition("/")[2]: file.read().decode() for name, file in members if file is not None}
    told = json.loads(result.stdout)
    assert (told["missing"], sorted(read)) == ([], told["files"])
    return read


def test_the_bundle_holds_what_helps_and_no_secret(archive: dict[str, str]) -> None:
    everything = "\n".join([*archive, *archive.values()])
    for secret in (SECRET_OF_CLUSTER, SECRET_OF_WEBHOOK, RECORD):
        assert secret not in everything
    assert '"ropewalk starts"' in archive["node-0/journal.jsonl"]
    assert "cluster.secret = (hidden)" in archive["node-0/configuration.txt"]
    assert "https://127.0.0.1:1/(hidden)" in archive["node-0/configuration.txt"]
    assert "ropewalk_ready 1" in archive["node-0/metrics.txt"]
    assert "tasks in" in archive["node-0/stacks.txt"]
    assert "disk ok" in archive["node-0/health.txt"]
    assert "num.partitions = 1  # default" in archive["node-0/settings.txt"]
    assert "alerts.webhook = https://127.0.0.1:1/(hidden)" in archive["node-0/settings.txt"]
    assert json.loads(archive["cluster.json"])["nodes"][0]["state"] == "active"
    assert any(each["name"] == "orders" for each in json.loads(archive["topics.json"]))
    assert isinstance(json.loads(archive["doctor.json"]), list)


def test_nothing_is_written_over(ropewalk: Ropewalk, tmp_path: Path) -> None:
    path = tmp_path / "there"
    path.write_text("dear")
    result = ropewalk("debug", "bundle", "-b", "127.0.0.1:1", "--file", str(path))
    assert result.exit_code == 1
    assert "is there already" in result.stderr
    assert path.read_text() == "dear"


def test_where_nobody_answers_there_is_an_archive_that_says_so(ropewalk: Ropewalk, tmp_path: Path) -> None:
    path = tmp_path / "bundle.tar.gz"
    result = ropewalk("debug", "bundle", "-b", "127.0.0.1:1", "--file", str(path))
    assert result.exit_code == 1
    assert "0 of 0 nodes" in result.stdout
    with tarfile.open(path) as opened:
        file = opened.extractfile("bundle/doctor.json")
        assert file is not None
        assert "bootstrap-unreachable" in file.read().decode()


def test_whatever_goes_in_goes_through_the_same_hands() -> None:
    bundle = Bundle([SECRET_OF_CLIENT])
    bundle.add("a", f"x {SECRET_OF_CLIENT} password={SECRET_OF_WEBHOOK}")
    bundle.add_json("b", {"said": SECRET_OF_CLIENT, "token": SECRET_OF_WEBHOOK})
    bundle.lacks("c", f"Bearer {SECRET_OF_WEBHOOK} {SECRET_OF_CLIENT}")
    everything = str(bundle.files) + str(bundle.missing)
    assert SECRET_OF_CLIENT not in everything
    assert SECRET_OF_WEBHOOK not in everything
