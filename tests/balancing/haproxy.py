"""HAProxy as a process, with the configuration of docs/operating/haproxy.cfg and addresses of this machine."""

import csv
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

PAGE: Final = Path(__file__).parents[2] / "docs/operating/haproxy.cfg"
WITHIN_S: Final = 20.0
DOORS: Final = {"sqs": 9324, "kafka": 9092, "http": 9644}
"""By the name of its backend, the port that the configuration has for it."""


def program(name: str) -> str | None:
    """Where it is; system programs are seldom in the path of ordinary users."""
    return shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")


class FrontEnd(NamedTuple):
    """Ports of a front end on the loopback."""

    sqs: int
    kafka: int
    http: int


class Balanced(NamedTuple):
    """What HAProxy says of one server of a backend."""

    status: str
    """`UP`, `DOWN`, or on the way: `UP 1/2`."""
    session_count: int


class Haproxy:
    """Use it as a context manager."""

    def __init__(self, scratch: Path, front_ends: Sequence[FrontEnd], ports: FrontEnd) -> None:
        """`ports` are those that it listens on."""
        self.ports = ports
        self.path = scratch / "haproxy.cfg"
        self._socket = scratch / "haproxy.sock"
        self._log = scratch / "haproxy.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.path.write_text(configuration(front_ends, ports, self._socket))

    def __enter__(self) -> "Haproxy":
        found = program("haproxy")
        assert found is not None, "haproxy is there"
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [found, "-db", "-f", str(self.path)], stdout=output, stderr=output
            )
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def servers(self, backend: str) -> dict[str, Balanced]:
        rows = csv.DictReader(self._ask("show stat").lstrip("# ").splitlines())
        return {
            row["svname"]: Balanced(row["status"], int(row["stot"]))
            for row in rows
            if row["pxname"] == backend and row["svname"] not in ("FRONTEND", "BACKEND")
        }

    def wait_until(self, server: str, status: str, *, backend: str = "sqs") -> float:
        """Until the server is so; answers how long that took."""
        began = time.monotonic()
        while (found := self.servers(backend)[server].status) != status:
            if time.monotonic() > began + WITHIN_S:
                raise RuntimeError(f"{server} is {found}, not {status}, after {WITHIN_S} s")
            time.sleep(0.02)
        return time.monotonic() - began

    def _wait_until_it_answers(self) -> None:
        assert self._process is not None, "it was started"
        deadline = time.monotonic() + WITHIN_S
        while True:
            try:
                self._ask("show info")
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"haproxy did not start: {self._log.read_text()}") from None
                time.sleep(0.02)
            else:
                return

    def _ask(self, command: str) -> str:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(self._socket))
            line.sendall(command.encode() + b"\n")
            answer = b""
            while piece := line.recv(1 << 16):
                answer += piece
        return answer.decode()


def configuration(front_ends: Sequence[FrontEnd], ports: FrontEnd, admin: Path) -> str:
    """The file of the docs, with other addresses, for whoever runs the tests."""
    text = PAGE.read_text()
    text = re.sub(r"^    (chroot|user|group) .*\n", "", text, flags=re.MULTILINE)
    text = text.replace("/run/haproxy/admin.sock", str(admin)).replace(
        "/dev/log", str(admin.with_name("log"))
    )
    # Each connection takes two descriptors, and tests may have fewer than a service.
    text = text.replace("maxconn 20000", "maxconn 500").replace("maxconn 8000", "maxconn 200")
    for door, port in DOORS.items():
        text = text.replace(f"bind :{port}", f"bind 127.0.0.1:{getattr(ports, door)}")
    lines = []
    for line in text.splitlines():
        lines += _here(line, front_ends)
    return "\n".join(lines) + "\n"


def _here(line: str, front_ends: Sequence[FrontEnd]) -> list[str]:
    found = re.fullmatch(r"    server front-(\d) front-\d\.example\.net:(\d+)", line)
    if found is None:
        assert "example.net" not in line, line
        # Health is asked at the port of the SQS door; that is one for all only where they are different machines.
        return [line.replace(" port 9324", "")]
    number = int(found[1])
    if number >= len(front_ends):
        return []
    (door,) = [door for door, port in DOORS.items() if port == int(found[2])]
    own = front_ends[number]
    check = f" port {own.sqs}" if door == "kafka" else ""
    return [f"    server front-{number} 127.0.0.1:{getattr(own, door)}{check}"]
