"""The commands of `docs/operating/etcd.md`, run in their order on the loopback, with a metadata log between them."""

import asyncio
import os
import random
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ropewalk.base.errors import MetadataUnavailable
from ropewalk.base.ids import NodeId, ProducerId
from ropewalk.local.ports import free_ports
from ropewalk.metadata.etcd.client import Access, parse_members
from ropewalk.metadata.etcd.log import EtcdMetadataLog
from ropewalk.metadata.log import Committed
from ropewalk.metadata.records import ProducerIdsAllocated
from ropewalk.node.config import load
from ropewalk.node.options import NodeOptions
from ropewalk.runtime.network import TcpNetwork
from tests.metadata.etcd_homes import RealClock

PAGE = Path(__file__).parent.parent.parent / "docs/operating/etcd.md"
MEMBERS = (1, 2, 3)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


class Loopback:
    """Three machines of the page, all of them here: every address becomes a free port."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        ports = iter(free_ports("127.0.0.1", 6))
        self._addresses = {
            f"10.0.0.{number}:{port}": f"127.0.0.1:{next(ports)}"
            for number in MEMBERS
            for port in (2379, 2380)
        }
        self.endpoints = ",".join(f"http://{self._addresses[f'10.0.0.{number}:2379']}" for number in MEMBERS)
        self._environment = {**os.environ, "ETCDCTL_API": "3", "ETCDCTL_ENDPOINTS": self.endpoints}
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self, command: str) -> None:
        """The command of the first machine, as it would be on each."""
        listening, others = command.split("--initial-cluster ")
        for number in MEMBERS:
            own = listening.replace("etcd-1", f"etcd-{number}").replace("10.0.0.1", f"10.0.0.{number}")
            text = self._here(f"{own}--initial-cluster {others}").replace(
                "/var/lib", f"{self.directory}/{number}"
            )
            self._processes.append(
                subprocess.Popen(
                    ["sh", "-c", f"exec {text}"], stderr=subprocess.DEVNULL, env=self._environment
                )
            )

    def run(self, commands: str) -> str:
        text = "set -e\n" + self._here(commands).replace("/var/lib", str(self.directory))
        done = subprocess.run(
            ["sh", "-c", text], cwd=self.directory, env=self._environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def append(self, number: int, *, user: str = "", password: str = "") -> None:
        """As a node would, beside the operator."""

        async def main() -> None:
            members = parse_members(self.endpoints.split(","))
            log = await EtcdMetadataLog.open(
                TcpNetwork(),
                RealClock(),
                random.Random(),
                Access(members, user=user, password=password),
                prefix="/ropewalk/",
            )
            epoch = await log.take_over(
                NodeId(0), expected_epoch=log.holder.epoch if log.holder is not None else 0
            )
            assert epoch is not None
            outcome = await log.append(
                [ProducerIdsAllocated(NodeId(0), ProducerId(number))],
                expected_epoch=epoch,
                expected_end_offset=log.end_offset,
            )
            assert outcome == Committed(number)
            log.close()

        asyncio.run(main())

    def _here(self, text: str) -> str:
        for address, here in self._addresses.items():
            text = text.replace(address, here)
        return text


@pytest.mark.compat
@pytest.mark.skipif(
    not (shutil.which("etcd") and shutil.which("etcdctl")),
    reason="etcd or etcdctl is not installed (Debian: etcd-server, etcd-client)",
)
def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    start, health, make_room, save, restore, password = blocks("sh")
    loopback = Loopback(tmp_path)
    loopback.start(start)
    try:
        _until_it_works(lambda: loopback.run(health))
        loopback.append(1)
        loopback.run(make_room)
        loopback.append(2)
        loopback.run(save)
        loopback.run(restore)
        assert (tmp_path / "etcd-restored/member").is_dir()
        loopback.run(password)
        with pytest.raises(MetadataUnavailable, match="user name is empty"):
            loopback.append(3)
        loopback.append(3, user="walker", password="rope")
    finally:
        loopback.stop()


def test_the_configuration_of_the_page_is_one(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text(blocks("toml")[0])
    config = load(NodeOptions(config=str(path)), {})
    assert config["metadata.home"] == "etcd"
    assert len(parse_members(config.etcd_endpoints)) == 3


def _until_it_works(call: Callable[[], str]) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            call()
            return
        except AssertionError:
            if time.monotonic() > deadline:
                raise
