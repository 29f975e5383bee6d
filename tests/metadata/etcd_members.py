"""Real members of etcd on the loopback, from Debian's package, for tests that must not trust a model."""

import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

START_S_MAX = 20.0


class EtcdMembers:
    """A cluster of its own in `directory`. `options` go to every member."""

    def __init__(self, directory: Path, *options: str, member_count: int = 3, scheme: str = "http") -> None:
        if shutil.which("etcd") is None:
            pytest.skip("etcd is not installed (Debian: etcd-server)")
        self._directory = directory
        self._options = options
        self._scheme = scheme
        ports = _free_ports(2 * member_count)
        self.client_ports, self._peer_ports = ports[:member_count], ports[member_count:]
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * member_count
        for number in range(member_count):
            self.start(number)
        self.wait_until_served()

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(f"{self._scheme}://127.0.0.1:{port}" for port in self.client_ports)

    def start(self, number: int) -> None:
        assert self._processes[number] is None
        cluster = ",".join(f"m{index}=http://127.0.0.1:{port}" for index, port in enumerate(self._peer_ports))
        peer, client = f"http://127.0.0.1:{self._peer_ports[number]}", self.urls[number]
        with open(self._directory / f"m{number}.log", "ab") as log:
            self._processes[number] = subprocess.Popen(
                [
                    "etcd",
                    *("--name", f"m{number}", "--data-dir", str(self._directory / f"m{number}")),
                    *("--listen-client-urls", client, "--advertise-client-urls", client),
                    *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
                    *("--initial-cluster", cluster, "--initial-cluster-state", "new"),
                    *("--logger", "zap", "--log-level", "error"),
                    *self._options,
                ],
                stdout=log,
                stderr=log,
            )

    def kill(self, number: int) -> None:
        process, self._processes[number] = self._processes[number], None
        if process is not None:
            process.kill()
            process.wait()

    def stop(self) -> None:
        for number in range(len(self._processes)):
            self.kill(number)

    def wait_until_served(self) -> None:
        """Until every member answers a question that takes a majority."""
        if self._scheme == "https":
            return  # whoever has the certificates waits
        deadline = time.monotonic() + START_S_MAX
        for url in self.urls:
            while True:
                try:
                    urllib.request.urlopen(f"{url}/v3/kv/range", b'{"key":"YQ=="}', timeout=2).read()
                    break
                except (urllib.error.URLError, OSError):
                    assert time.monotonic() < deadline, self.log()
                    time.sleep(0.05)

    def log(self) -> str:
        return "\n".join(path.read_text()[-2000:] for path in sorted(self._directory.glob("*.log")))


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
