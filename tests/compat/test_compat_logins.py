"""Real clients log in on a listener with SASL: by every mechanism that we serve, and where they may not they say why."""

import itertools
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from ropewalk.local.ports import free_ports
from tests.compat.conftest import AT_ONCE
from tests.compat.java_tools import config_tool_class_path, run_java, tools_class_path
from tests.compat.logging_in import CLIENTS, CouldNot, Login
from tests.compat.node_process import NodeProcess, StartNode
from tests.security.authority import authority

pytestmark = pytest.mark.compat

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
PASSWORD = "a secret, of =alice="
_numbers = itertools.count()


class Place(NamedTuple):
    node: NodeProcess
    open: str
    """The listener for whoever comes."""

    guarded: str
    encrypted: str
    ca: str


@pytest.fixture(scope="module")
def place(start_node: StartNode, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A node with a user alice, whom `ropewalk user` has added."""
    opened, guarded, encrypted = [f"127.0.0.1:{port}" for port in free_ports("127.0.0.1", 3)]
    listeners = f"listeners=PLAINTEXT://{opened},SASL_PLAINTEXT://{guarded},SASL_SSL://{encrypted}"
    keystore, ca = authority().write(tmp_path_factory.mktemp("certificates"))
    stores = ("--set", f"ssl.keystore.location={keystore}")
    node = start_node("--memory", *AT_ONCE, "--set", listeners, *stores)
    password_file = tmp_path_factory.mktemp("passwords") / "alice"
    password_file.write_text(f"{PASSWORD}\n")
    password_file.chmod(0o600)
    program = str(Path(sys.executable).with_name("ropewalk"))
    mechanisms = ("-m", "SCRAM-SHA-256", "-m", "SCRAM-SHA-512")
    command = [
        program,
        "-b",
        opened,
        "user",
        "add",
        "alice",
        "--password-file",
        str(password_file),
        *mechanisms,
    ]
    subprocess.run(command, check=True, capture_output=True)
    return Place(node, opened, guarded, encrypted, str(ca))


@pytest.mark.parametrize(
    ("client", "mechanism"),
    [
        (client, mechanism)
        for client, mechanism in itertools.product(CLIENTS, MECHANISMS)
        if client != "kcat" or mechanism == "PLAIN"
    ],
)
def test_a_client_that_logs_in_is_served(place: Place, topic: str, client: str, mechanism: str) -> None:
    assert CLIENTS[client](Login(place.guarded, mechanism, "alice", PASSWORD), topic) == b"hello"


@pytest.mark.parametrize(
    ("client", "mechanism"),
    [
        ("kcat", "PLAIN"),
        ("confluent-kafka", "SCRAM-SHA-256"),
        ("kafka-python", "SCRAM-SHA-512"),
        ("aiokafka", "PLAIN"),
    ],
)
def test_over_tls_as_well(place: Place, topic: str, client: str, mechanism: str) -> None:
    login = Login(place.encrypted, mechanism, "alice", PASSWORD, place.ca)
    assert CLIENTS[client](login, topic) == b"hello"
    with pytest.raises(CouldNot, match="uthentication"):
        CLIENTS[client](login._replace(mechanism="PLAIN", password="wrong"), topic)


@pytest.mark.parametrize(
    ("name", "password", "mechanism", "reason"),
    [
        pytest.param("alice", "wrong", "PLAIN", "the password is wrong", id="wrong password"),
        pytest.param("nobody", PASSWORD, "PLAIN", "there is no such user", id="unknown user"),
        pytest.param("alice", "wrong", "SCRAM-SHA-512", "the password is wrong", id="wrong, by SCRAM"),
    ],
)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_may_not_says_that_it_is_its_login(
    place: Place, topic: str, client: str, name: str, password: str, mechanism: str, reason: str
) -> None:
    login = Login(place.guarded, mechanism, name, password)
    with pytest.raises(CouldNot, match="uthentication"):
        CLIENTS[client](login, topic)
    log = place.node.log
    if client != "kcat" or mechanism == "PLAIN":
        assert f"{mechanism}: {reason}" in log
    assert "127.0.0.1" in log
    assert PASSWORD not in log


def test_confluents_admin_client_sets_describes_and_removes_users(place: Place) -> None:
    admin = AdminClient({"bootstrap.servers": place.open})
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    upsertion = UserScramCredentialUpsertion("carol", info, b"a password")
    for done in admin.alter_user_scram_credentials([upsertion]).values():
        done.result(10)
    asked = admin.describe_user_scram_credentials(["carol"])
    assert isinstance(asked, dict)
    described = asked["carol"].result(10)
    assert [(each.mechanism, each.iterations) for each in described.scram_credential_infos] == [
        (ScramMechanism.SCRAM_SHA_256, 8192)
    ]
    login = Login(place.guarded, "SCRAM-SHA-256", "carol", "a password")
    assert CLIENTS["confluent-kafka"](login, f"topic-of-carol-{next(_numbers)}") == b"hello"
    deletion = UserScramCredentialDeletion("carol", ScramMechanism.SCRAM_SHA_256)
    for done in admin.alter_user_scram_credentials([deletion]).values():
        done.result(10)
    everybody = admin.describe_user_scram_credentials()
    assert not isinstance(everybody, dict)
    assert "carol" not in everybody.result(10)


def test_kafkas_own_tools_set_a_password_and_log_in_with_it(place: Place, topic: str, tmp_path: Path) -> None:
    tool = (config_tool_class_path(), "kafka.admin.ConfigCommand", "--bootstrap-server", place.open)
    dora = ("--entity-type", "users", "--entity-name", "dora")
    run_java(*tool, "--alter", *dora, "--add-config", "SCRAM-SHA-512=[iterations=8192,password=from Java]")
    assert "SCRAM-SHA-512=iterations=8192" in run_java(*tool, "--describe", *dora)
    settings = tmp_path / "client.properties"
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="dora" password="from Java";'
    settings.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={jaas}\n"
    )
    settings.chmod(0o600)
    tools = tools_class_path()
    reached = ("--bootstrap-server", place.guarded)
    run_java(
        tools,
        "org.apache.kafka.tools.ConsoleProducer",
        *reached,
        "--command-config",
        str(settings),
        "--topic",
        topic,
        stdin=b"hello\n",
    )
    read = run_java(
        tools,
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *reached,
        "--command-config",
        str(settings),
        "--topic",
        topic,
        "--from-beginning",
        "--max-messages",
        "1",
    )
    assert read.strip() == "hello"
