"""`ropewalk user` as an administrator meets it, against a node."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ropewalk.cli.passwords import PASSWORD_VARIABLE
from ropewalk.testing import Cluster
from tests.cli.conftest import Ropewalk
from tests.cli.test_cli_commands import lines

USERS = ["USER", "MECHANISM", "ITERATIONS"]


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch, ropewalk: Ropewalk) -> Iterator[None]:
    """After `ropewalk`, which clears the environment."""
    with Cluster() as cluster:
        monkeypatch.setenv("ROPEWALK_BOOTSTRAP", cluster.bootstrap)
        yield


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text("from a file\nand not this\n")
    path.chmod(0o600)
    return path


@pytest.mark.usefixtures("node")
def test_users_are_added_listed_changed_and_removed(
    ropewalk: Ropewalk, monkeypatch: pytest.MonkeyPatch, password_file: Path
) -> None:
    assert lines(ropewalk("user", "ls").stdout) == [USERS]
    added = ropewalk("user", "add", "alice", "--password-file", str(password_file))
    assert lines(added.stdout) == [USERS, ["alice", "SCRAM-SHA-512", "16384"]]
    monkeypatch.setenv(PASSWORD_VARIABLE, "from the environment")
    both = ("-m", "SCRAM-SHA-256", "-m", "SCRAM-SHA-512", "-o", "json")
    told = {"user": "bob", "mechanisms": {"SCRAM-SHA-256": 16384, "SCRAM-SHA-512": 16384}}
    assert json.loads(ropewalk("user", "add", "bob", *both).stdout) == [told]
    again = ropewalk("user", "add", "bob")
    assert again.exit_code == 1
    assert "`ropewalk user passwd`" in again.stderr
    assert len(lines(ropewalk("user", "passwd", "bob").stdout)) == 3
    assert json.loads(ropewalk("user", "ls", "bob", "carol", "-o", "json").stdout) == [told]
    assert ropewalk("user", "rm", "bob").exit_code == 1, "nobody is there to ask"
    assert ropewalk("user", "rm", "bob", "--yes").exit_code == 0
    assert lines(ropewalk("user", "ls").stdout)[1:] == [["alice", "SCRAM-SHA-512", "16384"]]
    for command in ("passwd", "rm"):
        gone = ropewalk("user", command, "bob", *(("--yes",) if command == "rm" else ()))
        assert gone.exit_code == 1
        assert "there is no user 'bob'" in gone.stderr


@pytest.mark.usefixtures("node")
def test_a_name_that_nobody_can_have_is_refused_in_one_line(
    ropewalk: Ropewalk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, "secret")
    refused = ropewalk("user", "add", "*")
    assert refused.exit_code == 1
    assert "no user can be called '*'" in refused.stderr
    assert "secret" not in refused.stderr


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        pytest.param("secret", 0o640, "can be read by others (mode 0640)", id="the group may read it"),
        pytest.param("secret", 0o604, "can be read by others (mode 0604)", id="everybody may read it"),
        pytest.param("\nsecret", 0o600, "the password is empty", id="an empty line"),
        pytest.param("pass\tword", 0o600, "use printable ASCII", id="a control character"),
        pytest.param("pässword", 0o600, "use printable ASCII", id="what clients treat differently"),
        pytest.param(None, 0o600, "cannot be read", id="no file"),
    ],
)
def test_a_password_file_that_is_no_good_is_refused_by_name(
    ropewalk: Ropewalk, tmp_path: Path, content: str | None, mode: int, said: str
) -> None:
    path = tmp_path / "password"
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    refused = ropewalk("user", "add", "alice", "--password-file", str(path), "-b", "127.0.0.1:1")
    assert refused.exit_code == 1
    assert said in refused.stderr
    assert "secret" not in refused.stderr


def test_without_a_terminal_a_password_is_not_asked_for(ropewalk: Ropewalk) -> None:
    refused = ropewalk("user", "add", "alice", "-b", "127.0.0.1:1")
    assert refused.exit_code == 1
    assert PASSWORD_VARIABLE in refused.stderr


def test_a_first_user_is_set_where_no_listener_lets_anybody_in(
    ropewalk: Ropewalk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = str(tmp_path / "data")
    monkeypatch.setenv(PASSWORD_VARIABLE, "secret")
    fresh = ropewalk("user", "bootstrap", "admin", "--data", data)
    assert fresh.exit_code == 1
    assert "start it once" in fresh.stderr
    with Cluster(data=data) as cluster:
        running = ropewalk("user", "bootstrap", "admin", "--data", data)
        assert running.exit_code == 1
        assert "in use" in running.stderr or "uses" in running.stderr
        del cluster
    for password in ("secret", "changed"):
        monkeypatch.setenv(PASSWORD_VARIABLE, password)
        done = ropewalk("user", "bootstrap", "admin", "--data", data)
        assert done.exit_code == 0, done.stderr
        assert "secret" not in done.stdout
    refused = ropewalk("user", "bootstrap", "*", "--data", data)
    assert refused.exit_code == 1
    assert "no user can be called '*'" in refused.stderr
    with Cluster(data=data) as cluster:
        listed = ropewalk("user", "ls", "-b", cluster.bootstrap)
        assert lines(listed.stdout)[1:] == [["admin", "SCRAM-SHA-512", "16384"]]


@pytest.mark.usefixtures("node")
def test_tokens_are_issued_and_their_keys_replaced(
    ropewalk: Ropewalk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, "secret")
    assert ropewalk("user", "add", "alice").exit_code == 0
    (line,) = ropewalk("user", "token", "alice").stdout.splitlines()
    assert line.count(".") == 2
    told = json.loads(ropewalk("user", "token", "alice", "--lifetime", "12h", "-o", "json").stdout)
    assert told["user"] == "alice"
    assert told["ends_at_ms"] - told["issued_at_ms"] == 12 * 3_600_000
    variables = [
        line.removeprefix("export ").partition("=")
        for line in ropewalk("user", "token", "alice", "--for-sqs").stdout.splitlines()
    ]
    assert [name for name, _, _ in variables] == [
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
    ]
    session = json.loads(ropewalk("user", "token", "alice", "--for-sqs", "-o", "json").stdout)
    assert session["access_key"].startswith("ASRW")
    assert len(session["secret"]) == 40
    replaced = ropewalk("user", "replace-token-key")
    assert replaced.stdout.endswith(" signs tokens from here on.\n")
    assert ropewalk("user", "replace-token-key", "--known-to-others").exit_code == 1, "nobody is there to ask"
    yes = ropewalk("user", "replace-token-key", "--known-to-others", "--yes", "-o", "json")
    assert len(json.loads(yes.stdout)["key_id"]) == 16
    for arguments, said in (
        (("bob",), "no user 'bob'"),
        ((), "said no name"),
        (("alice", "--lifetime", "8d"), "are possible"),
    ):
        refused = ropewalk("user", "token", *arguments)
        assert refused.exit_code == 1
        assert said in refused.stderr
