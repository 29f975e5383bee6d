"""A node of ours behind the same doors as `secured_kafka.py` has, with the same user."""

import subprocess
import sys
from pathlib import Path

from ropewalk.local.ports import free_ports
from tests.compat.conftest import AT_ONCE
from tests.compat.node_process import StartNode
from tests.compat.secured_kafka import PASSWORD, SESSION_MS, USER, Certificates, Doors


def start_secured(start_node: StartNode, directory: Path) -> Doors:
    certificates = Certificates(directory)
    plain, mutual, opened, safe = [f"127.0.0.1:{port}" for port in free_ports("127.0.0.1", 4)]
    settings = (
        f"listeners=PLAINTEXT://{plain},MUTUAL://{mutual},OPEN://{opened},SAFE://{safe}",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,MUTUAL:SSL,OPEN:SASL_PLAINTEXT,SAFE:SASL_SSL",
        f"ssl.keystore.location={directory / 'server.pem'}",
        f"ssl.truststore.location={certificates.ca}",
        "listener.name.mutual.ssl.client.auth=required",
        f"connections.max.reauth.ms={SESSION_MS}",
    )
    start_node("--memory", *AT_ONCE, *(word for setting in settings for word in ("--set", setting)))
    password_file = directory / "password"
    password_file.touch(mode=0o600)
    password_file.write_text(PASSWORD)
    program = str(Path(sys.executable).with_name("ropewalk"))
    added = [program, "-b", plain, "user", "add", USER, "--password-file", str(password_file)]
    subprocess.run([*added, "-m", "SCRAM-SHA-256", "-m", "SCRAM-SHA-512"], check=True, capture_output=True)
    return Doors(
        mutual,
        opened,
        safe,
        None,
        certificates.ca,
        certificates.other_ca,
        certificates.client,
        certificates.foreign_client,
    )
