"""Apache Kafka itself, where Java and Maven are, behind every kind of door that it has: what a client of ours must be able to enter."""

import base64
import json
import subprocess
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import trustme
from cryptography.hazmat.primitives import serialization

from ropewalk import Admin, RopewalkError
from ropewalk.local.ports import free_ports
from tests.compat.java_tools import config_tool_class_path, java_command, run_java

USER: Final = "ada"
PASSWORD: Final = 'rope "yarn"'
OAUTH: Final = "org.apache.kafka.common.security.oauthbearer"
WITHIN_S: Final = 60
SESSION_MS: Final = 1_500
"""Of logins by SCRAM-SHA-512."""


@dataclass
class Doors:
    mutual: str
    """TLS, and a client's certificate."""
    open: str
    """A login without TLS."""
    safe: str
    """A login over TLS."""
    expired: str | None
    """TLS by a certificate that is over; None where the broker would not start with one."""
    ca: Path
    other_ca: Path
    client: Path
    """A client's certificate and key."""
    foreign_client: Path
    """The same of an authority that nobody here trusts."""


class KafkaProcess:
    def __init__(self, directory: Path) -> None:
        self._log = directory / "log"
        certificates = Certificates(directory)
        ports = dict(
            zip(
                ("plain", "mutual", "open", "safe", "old", "controller"),
                free_ports("127.0.0.1", 6),
                strict=True,
            )
        )
        settings = directory / "server.properties"
        settings.write_text(_settings(directory, ports))
        class_path = config_tool_class_path()
        scram = [
            part
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for part in ("--add-scram", f"{mechanism}=[name={USER},password={PASSWORD}]")
        ]
        run_java(
            class_path,
            "kafka.tools.StorageTool",
            "format",
            "-t",
            "MkU3OEVBNTcwNTJENDM2Qk",
            "-c",
            str(settings),
            *scram,
        )
        with open(self._log, "wb") as log:
            command = java_command(class_path, "kafka.Kafka", str(settings))
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=directory)
        self._wait(f"localhost:{ports['plain']}")
        address = {name: f"localhost:{port}" for name, port in ports.items()}
        self.doors = Doors(
            address["mutual"],
            address["open"],
            address["safe"],
            address["old"],
            certificates.ca,
            certificates.other_ca,
            certificates.client,
            certificates.foreign_client,
        )

    def _wait(self, bootstrap: str) -> None:
        deadline_s = time.monotonic() + WITHIN_S
        while not _answers(bootstrap):
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                self.stop()
                raise AssertionError(f"Kafka did not start:\n{self._log.read_text()[-4000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def _answers(bootstrap: str) -> bool:
    try:
        with Admin(bootstrap, request_timeout_ms=1_000) as admin:
            return bool(admin.describe_cluster().brokers)
    except RopewalkError:
        return False


class Certificates:
    """Files of PEM in a directory: of brokers and clients, of an authority and of another one."""

    def __init__(self, directory: Path) -> None:
        ours, theirs = trustme.CA(), trustme.CA()
        over = datetime.now(UTC) - timedelta(days=1)
        self.ca, self.other_ca = directory / "ca.pem", directory / "other-ca.pem"
        ours.cert_pem.write_to_path(self.ca)
        theirs.cert_pem.write_to_path(self.other_ca)
        write_pem(directory / "server.pem", ours.issue_cert("localhost", "127.0.0.1"))
        expired = ours.issue_cert("localhost", not_before=over - timedelta(days=9), not_after=over)
        write_pem(directory / "expired.pem", expired)
        self.client = write_pem(
            directory / "client.pem", ours.issue_cert("ada@example.org", common_name=USER)
        )
        self.foreign_client = write_pem(directory / "foreign.pem", theirs.issue_cert("eve@example.org"))


def write_pem(path: Path, issued: trustme.LeafCert) -> Path:
    """The key as Java reads it: PKCS #8."""
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.touch(mode=0o600)
    path.write_bytes(key + b"".join(each.bytes() for each in issued.cert_chain_pems))
    return path


def _settings(directory: Path, ports: dict[str, int]) -> str:
    doors = {"PLAINTEXT": "plain", "MUTUAL": "mutual", "OPEN": "open", "SAFE": "safe", "OLD": "old"}
    listeners = [f"{name}://localhost:{ports[door]}" for name, door in doors.items()]
    module = "org.apache.kafka.common.security"
    quoted = PASSWORD.replace('"', '\\\\"')
    lines = [
        "process.roles=broker,controller",
        "node.id=1",
        f"controller.quorum.voters=1@localhost:{ports['controller']}",
        f"listeners={','.join(listeners)},CONTROLLER://localhost:{ports['controller']}",
        f"advertised.listeners={','.join(listeners)}",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,MUTUAL:SSL,OLD:SSL,OPEN:SASL_PLAINTEXT,SAFE:SASL_SSL",
        "controller.listener.names=CONTROLLER",
        "inter.broker.listener.name=PLAINTEXT",
        f"log.dirs={directory / 'data'}",
        "offsets.topic.replication.factor=1",
        "offsets.topic.num.partitions=2",
        "transaction.state.log.replication.factor=1",
        "transaction.state.log.num.partitions=2",
        "transaction.state.log.min.isr=1",
        "group.initial.rebalance.delay.ms=0",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={directory / 'server.pem'}",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={directory / 'ca.pem'}",
        "listener.name.mutual.ssl.client.auth=required",
        "listener.name.old.ssl.keystore.type=PEM",
        f"listener.name.old.ssl.keystore.location={directory / 'expired.pem'}",
    ]
    for door in ("open", "safe"):
        prefix = f"listener.name.{door}"
        lines += [
            f"{prefix}.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            f'{prefix}.plain.sasl.jaas.config={module}.plain.PlainLoginModule required user_{USER}="{quoted}";',
            f"{prefix}.scram-sha-256.sasl.jaas.config={module}.scram.ScramLoginModule required;",
            f"{prefix}.scram-sha-512.sasl.jaas.config={module}.scram.ScramLoginModule required;",
            f"{prefix}.scram-sha-512.connections.max.reauth.ms={SESSION_MS}",
            f'{prefix}.oauthbearer.sasl.jaas.config={OAUTH}.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="kafka";',
        ]
    return "\n".join(lines) + "\n"


def unsigned_token(user: str = USER, *, lives_s: int = 60) -> str:
    """As Kafka's own handler for trials takes it: claims that nobody has signed."""
    now_s = int(time.time())
    claims = {"sub": user, "iat": now_s, "exp": now_s + lives_s}
    parts = [
        base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode()
        for each in ({"alg": "none"}, claims)
    ]
    return ".".join((*parts, ""))
