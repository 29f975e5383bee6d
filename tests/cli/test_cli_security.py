"""How commands log in: what the command line, profiles and the environment say, which of them counts, and that no secret is ever shown."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Ropewalk, in_terminal
from tests.client.fake_login import PASSWORD, REFUSAL, USER, FakeLogin
from tests.client.loopback import LoopbackBroker

NEEDED_BY_SECURITY = ["scramp", "cryptography", "ropewalk.client.connections.admission", "tomllib"]


@pytest.fixture
def secured() -> Iterator[LoopbackBroker]:
    broker = LoopbackBroker(login=FakeLogin())
    broker.cluster.add_topic("orders", 0)
    broker.start()
    yield broker
    broker.stop()


class Profiles:
    """The file of a user, who has nothing else to say."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "ropewalk" / "profiles.toml"
        self.path.parent.mkdir()

    def write(self, text: str, mode: int = 0o600) -> None:
        self.path.write_text(text)
        self.path.chmod(mode)


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Profiles:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return Profiles(tmp_path)


def prod(broker: LoopbackBroker, *more: str) -> str:
    lines = (
        "[prod]",
        f'bootstrap = "{broker.address}"',
        'security.protocol = "SASL_PLAINTEXT"',
        'sasl.mechanism = "SCRAM-SHA-256"',
        f'sasl_username = "{USER}"',
        *more,
    )
    return "\n".join(lines)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--profile", "prod", "topic", "ls"), id="before the command"),
        pytest.param(("topic", "ls", "--profile", "prod"), id="behind it"),
    ],
)
def test_a_profile_says_where_a_cluster_is_and_how_to_log_in(
    ropewalk: Ropewalk, profiles: Profiles, secured: LoopbackBroker, arguments: tuple[str, ...]
) -> None:
    profiles.write(prod(secured, f'sasl.password = "{PASSWORD}"'))
    result = ropewalk(*arguments)
    assert "orders" in result.stdout, result.stderr


def test_the_profile_may_come_from_the_environment_and_counts_more_than_its_brokers(
    ropewalk: Ropewalk, profiles: Profiles, secured: LoopbackBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiles.write(prod(secured, f'sasl.password = "{PASSWORD}"'))
    monkeypatch.setenv("ROPEWALK_PROFILE", "prod")
    monkeypatch.setenv("ROPEWALK_BOOTSTRAP", "127.0.0.1:1")
    assert "orders" in ropewalk("topic", "ls").stdout
    elsewhere = ropewalk("topic", "ls", "--bootstrap", "127.0.0.1:1")
    assert "127.0.0.1:1" in elsewhere.stderr


def test_a_password_may_lie_in_a_file_or_in_the_environment(
    ropewalk: Ropewalk,
    profiles: Profiles,
    secured: LoopbackBroker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = tmp_path / "password"
    secret.touch(mode=0o600)
    secret.write_text(PASSWORD)
    profiles.write(prod(secured), mode=0o644)
    login = ("--profile", "prod", "-X", f"sasl.password.file={secret}", "topic", "ls")
    assert "orders" in ropewalk(*login).stdout
    monkeypatch.setenv("ROPEWALK_SASL_PASSWORD", PASSWORD)
    assert "orders" in ropewalk("--profile", "prod", "topic", "ls").stdout


def test_all_of_it_may_come_from_the_environment(
    ropewalk: Ropewalk, secured: LoopbackBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"BOOTSTRAP": secured.address, "SECURITY_PROTOCOL": "SASL_PLAINTEXT", "SASL_MECHANISM": "PLAIN"}
    for name, value in (said | {"SASL_USERNAME": USER, "SASL_PASSWORD": PASSWORD}).items():
        monkeypatch.setenv(f"ROPEWALK_{name}", value)
    assert "orders" in ropewalk("topic", "ls").stdout
    checks = ropewalk("doctor")
    assert "answered in" in checks.stdout


def test_records_are_produced_and_consumed_by_a_profile(
    ropewalk: Ropewalk, profiles: Profiles, secured: LoopbackBroker
) -> None:
    profiles.write(prod(secured, f'sasl.password = "{PASSWORD}"'))
    assert ropewalk("produce", "orders", "--profile", "prod", stdin="rope\n").exit_code == 0
    assert "rope" in ropewalk("consume", "orders", "--profile", "prod", "-o", "start", "-e").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(
            ("-X", f"sasl.password={PASSWORD}"),
            "-X sasl.password: others could read it there; say it in a profile, in ROPEWALK_SASL_PASSWORD",
            id="a password on the command line",
        ),
        pytest.param(("--profile", "test"), "there is no profile 'test'", id="no such profile"),
        pytest.param(
            ("-X", "sasl.passwort=x"), "sasl.passwort is not a client setting", id="no such setting"
        ),
    ],
)
def test_what_cannot_be_is_one_line_that_says_what_to_do(
    ropewalk: Ropewalk, profiles: Profiles, secured: LoopbackBroker, arguments: tuple[str, ...], said: str
) -> None:
    profiles.write(prod(secured, f'sasl.password = "{PASSWORD}"'))
    for placed in ((*arguments, "topic", "ls"), ("topic", "ls", *arguments)):
        result = ropewalk(*placed)
        assert result.exit_code == 1
        assert said in result.stderr
        assert PASSWORD not in result.output


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_file_of_profiles_with_a_secret_is_its_owners_alone(
    ropewalk: Ropewalk, profiles: Profiles, secured: LoopbackBroker, mode: int
) -> None:
    profiles.write(prod(secured, f'sasl.password = "{PASSWORD}"'), mode=mode)
    result = ropewalk("--profile", "prod", "topic", "ls")
    assert result.exit_code == 1
    assert f"others than its owner may use {profiles.path} (mode {mode:04o}); run chmod 600" in result.stderr


def test_a_wrong_password_is_told_in_the_brokers_words_with_a_next_step(
    ropewalk: Ropewalk, profiles: Profiles, secured: LoopbackBroker
) -> None:
    profiles.write(prod(secured, 'sasl.password = "wrong-one"'))
    result = ropewalk("--profile", "prod", "topic", "ls")
    assert result.exit_code == 1
    assert REFUSAL in result.stderr
    assert "check sasl_username" in result.stderr
    assert "wrong-one" not in result.output


def test_without_a_terminal_nobody_is_asked_for_a_password(
    ropewalk: Ropewalk, profiles: Profiles, secured: LoopbackBroker
) -> None:
    profiles.write(prod(secured))
    result = ropewalk("--profile", "prod", "topic", "ls")
    assert result.exit_code == 1
    assert f"user '{USER}' has no password: say it in a profile, in ROPEWALK_SASL_PASSWORD" in result.stderr


def test_at_a_terminal_the_password_is_asked_for_and_not_shown(
    profiles: Profiles, secured: LoopbackBroker
) -> None:
    profiles.write(prod(secured))
    shown, exit_code = in_terminal(
        "--profile", "prod", "topic", "ls", bootstrap="", until=f"Password of {USER}: ", then=f"{PASSWORD}\n"
    )
    assert exit_code == 0, shown
    assert "orders" in shown
    assert PASSWORD not in shown


def test_nothing_of_security_is_loaded_where_nothing_of_it_is_said() -> None:
    script = (
        "import sys\n"
        "from ropewalk.cli.main import app\n"
        "try:\n"
        "    app(['topic', 'ls', '-b', '127.0.0.1:1'])\n"
        "except SystemExit:\n"
        "    pass\n"
        "import ropewalk\n"
        "ropewalk.Producer, ropewalk.Consumer, ropewalk.Admin\n"
        "print('modules:', *sys.modules)\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROPEWALK_")}
    completed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    modules = completed.stdout.rpartition("modules:")[2].split()
    assert "ropewalk.client.producing.producer" in modules
    assert [name for name in NEEDED_BY_SECURITY if name in modules] == []
