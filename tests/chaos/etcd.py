"""Three members of etcd as processes of their own."""

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

READY_WITHIN_S = 30.0
QUOTA_BYTES = 24 << 20
JUNK = b"junk/"
JUNK_BYTES = 500_000
NO_SPACE = 8
"""gRPC's RESOURCE_EXHAUSTED."""


class EtcdProcesses:
    """Use it as a context manager. Members can be ended and started again one by one."""

    def __init__(self, directory: Path, host: str = "127.0.0.1", member_count: int = 3) -> None:
        self._directory = directory
        self._host = host
        ports = _free_ports(host, 2 * member_count)
        self._clients = [f"http://{host}:{port}" for port in ports[::2]]
        self._peers = [f"http://{host}:{port}" for port in ports[1::2]]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def endpoints(self) -> str:
        return ",".join(self._clients)

    @property
    def member_count(self) -> int:
        return len(self._clients)

    @property
    def running(self) -> list[int]:
        return sorted(self._processes)

    def __enter__(self) -> "EtcdProcesses":
        self._directory.mkdir(parents=True, exist_ok=True)
        for member in range(self.member_count):
            self.start(member)
        try:
            self.wait_until_healthy()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for member in list(self._processes):
            self.kill(member)

    def wait_until_healthy(self) -> None:
        """Until every member that runs says so, which takes a leader among them."""
        deadline = time.monotonic() + READY_WITHIN_S
        while not all(map(self._is_healthy, self.running)):
            if time.monotonic() > deadline:
                raise RuntimeError(f"etcd was not ready in {READY_WITHIN_S} s")
            time.sleep(0.05)

    def start(self, member: int) -> None:
        program = shutil.which("etcd")
        assert program is not None, "etcd is there"
        initial = ",".join(f"m{number}={address}" for number, address in enumerate(self._peers))
        client, peer = self._clients[member], self._peers[member]
        command = [program, "--name", f"m{member}", "--data-dir", str(self._directory / f"m{member}")]
        command += ["--listen-client-urls", client, "--advertise-client-urls", client]
        command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        command += ["--initial-cluster", initial, "--initial-cluster-state", "new"]
        command += ["--quota-backend-bytes", str(QUOTA_BYTES)]
        with (self._directory / f"m{member}.log").open("ab") as output:
            self._processes[member] = subprocess.Popen(command, stdout=output, stderr=output)

    def kill(self, member: int) -> None:
        process = self._processes.pop(member)
        process.kill()
        process.wait()

    def signal(self, number: signal.Signals) -> None:
        """To every member that runs."""
        for process in self._processes.values():
            process.send_signal(number)

    def fill(self) -> None:
        """Until it refuses to write, by what belongs to somebody else."""
        value = _text(b"x" * JUNK_BYTES)
        for number in range(2 * QUOTA_BYTES // JUNK_BYTES):
            answer = self._call(0, "/v3/kv/put", key=_text(JUNK + b"%d" % number), value=value)
            if answer.get("code") == NO_SPACE:
                return
        raise RuntimeError("etcd never ran full")

    def make_room(self) -> None:
        """As an operator would: delete, compact, defragment, and say that all is well again."""
        end = _text(JUNK[:-1] + bytes([JUNK[-1] + 1]))
        deleted = self._call(0, "/v3/kv/deleterange", key=_text(JUNK), range_end=end)
        self._call(0, "/v3/kv/compaction", revision=deleted["header"]["revision"], physical=True)
        for member in self.running:
            self._call(member, "/v3/maintenance/defragment")
        for member in self._call(0, "/v3/maintenance/alarm", action="GET").get("alarms", []):
            self._call(
                0, "/v3/maintenance/alarm", action="DEACTIVATE", memberID=member["memberID"], alarm="NOSPACE"
            )

    def copy(self, target: Path) -> None:
        """Of all members at one moment, which takes them down for as long."""
        self._at_rest(lambda: shutil.copytree(self._directory, target))

    def put_back(self, copy: Path) -> None:
        def replace() -> None:
            for member in range(self.member_count):
                shutil.rmtree(self._directory / f"m{member}")
                shutil.copytree(copy / f"m{member}", self._directory / f"m{member}")

        self._at_rest(replace)

    def _at_rest(self, work: Callable[[], object]) -> None:
        for member in self.running:
            self.kill(member)
        work()
        for member in range(self.member_count):
            self.start(member)
        self.wait_until_healthy()

    def _call(self, member: int, path: str, **body: object) -> Any:
        """An answer, or a refusal: both are of interest."""
        request = urllib.request.Request(f"{self._clients[member]}{path}", json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=READY_WITHIN_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    def leader(self) -> int:
        """The member that the others follow. All must be there."""
        status = [self._status(member) for member in range(self.member_count)]
        return [each["header"]["member_id"] for each in status].index(status[0]["leader"])

    def _status(self, member: int) -> Any:
        request = urllib.request.Request(f"{self._clients[member]}/v3/maintenance/status", b"{}")
        with urllib.request.urlopen(request, timeout=READY_WITHIN_S) as answer:
            return json.load(answer)

    def _is_healthy(self, member: int) -> bool:
        try:
            with urllib.request.urlopen(f"{self._clients[member]}/health", timeout=1) as answer:
                return b"true" in answer.read()
        except (urllib.error.URLError, OSError):
            return False


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _free_ports(host: str, count: int) -> list[int]:
    """Outside the range that outgoing connections take theirs from; each process looks from a place of its own, since two may look at once."""
    ports = list(range(17_000, 21_000))
    first = os.getpid() * 50 % len(ports)
    found: list[int] = []
    for port in ports[first:] + ports[:first]:
        with socket.socket() as probe:
            try:
                probe.bind((host, port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError("no free ports between 17000 and 21000")
