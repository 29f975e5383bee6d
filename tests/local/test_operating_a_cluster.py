"""docs/operating/cluster.md, followed to the letter: every file and every command of the page, in its order.

Machines are ports of this one, directories are the test's own, and `systemctl` starts and stops what its unit names.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ropewalk.local.etcd import EtcdMember, is_healthy, member_command, plan_etcd
from ropewalk.local.ports import free_ports

PAGE = Path(__file__).parents[2] / "docs/operating/cluster.md"
PATIENCE_S = 120

pytestmark = [
    pytest.mark.compat,
    pytest.mark.skipif(shutil.which("etcd") is None, reason="there is no etcd here"),
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


class Site:
    """Four machines for nodes and three for etcd, all of them here."""

    def __init__(self, root: Path, members: list[EtcdMember], stack: ExitStack) -> None:
        self._root = root
        self._members = members
        self._stack = stack
        ports = iter(free_ports("127.0.0.1", 8))
        self._ports = {(node, port): next(ports) for node in range(4) for port in ("9092", "9192")}
        self._services: dict[str, subprocess.Popen[str]] = {}
        (root / "etc").mkdir()
        (page,) = blocks("toml")
        for node in range(4):
            own = page.replace("id = 0", f"id = {node}").replace("ropewalk/0", f"ropewalk/{node}")
            own = own.replace('advertise = "queue-0', f'advertise = "queue-{node}')
            for port in ("9092", "9192"):
                own = own.replace(f"0.0.0.0:{port}", f"127.0.0.1:{self._ports[node, port]}")
            (root / "etc" / f"node-{node}.toml").write_text(self.here(own))

    def here(self, text: str) -> str:
        """What the page says, with this machine's addresses and directories."""
        text = text.replace("/etc/ropewalk/", f"{self._root}/etc/")
        text = text.replace("/var/lib/ropewalk/", f"{self._root}/data/")
        text = re.sub(
            r"queue-(\d)\.example\.net:(\d+)", lambda at: f"127.0.0.1:{self._ports[int(at[1]), at[2]]}", text
        )
        return re.sub(r"http://etcd-(\d)\.example\.net:2379", lambda at: self._members[int(at[1])].url, text)

    def run(self, command: str) -> None:
        words = command.split()
        if words[:2] == ["systemctl", "start"]:
            self._start(words[2])
        elif words[:2] == ["systemctl", "stop"]:
            self._stop(words[2])
        elif words[:2] == ["ropewalk", "up"]:
            self._try_out(words[1:])
        else:
            ropewalk = f"{sys.executable} -m ropewalk "
            self._succeed(re.sub(r"^ropewalk ", ropewalk, self.here(command)))

    def replicas(self) -> dict[int, int]:
        """How many partitions each node of the cluster holds."""
        command = f"{sys.executable} -m ropewalk cluster nodes -o json -b queue-0.example.net:9092"
        return {each["node"]: each["replicas"] for each in json.loads(self._succeed(self.here(command)))}

    def _start(self, unit: str) -> None:
        (service,) = blocks("ini")
        start = re.search(r"^ExecStart=/opt/ropewalk/bin/ropewalk (.*)$", service, re.MULTILINE)
        assert start is not None
        arguments = self.here(start[1].replace("%i", unit.partition("@")[2])).split()
        process = self._begin(arguments)
        self._services[unit] = process
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ropewalk ready")

    def _stop(self, unit: str) -> None:
        process = self._services.pop(unit)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0

    def _try_out(self, arguments: list[str]) -> None:
        elsewhere = ("--data", str(self._root / "tried"), "--kafka", "127.0.0.1:0", "--http", "none")
        process = self._begin([*arguments, *elsewhere])
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ropewalk ready")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0

    def _begin(self, arguments: list[str]) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "ropewalk", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(),
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def _succeed(self, command: str) -> str:
        done = subprocess.run(
            ["sh", "-c", command], capture_output=True, text=True, timeout=PATIENCE_S, env=_environment()
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("ROPEWALK_")}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        members = plan_etcd(tmp_path)
        for member in members:
            process = subprocess.Popen(member_command("etcd", member, members, tmp_path))
            stack.callback(process.wait)
            stack.callback(process.kill)
        asyncio.run(_healthy(members))
        yield Site(tmp_path, members, stack)


async def _healthy(members: list[EtcdMember]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not all([await is_healthy(member) for member in members]):
            await asyncio.sleep(0.1)


def test_every_command_of_the_page_works(site: Site) -> None:
    commands = [line.strip() for block in blocks("sh") for line in block.splitlines() if line.strip()]
    assert len(commands) > 15, "the page has lost its commands"
    for command in commands:
        site.run(command)
        if command.startswith("ropewalk topic create orders --partitions 6 --replicas 3"):
            held = site.replicas()
            assert set(held) == {0, 1, 2}
            assert min(held.values()) >= 6, (
                "all of orders; the cluster's own topics come when they are needed"
            )
        elif command.startswith("ropewalk cluster add 3"):
            assert site.replicas()[3] > 0, "it has taken its share"
        elif command.startswith("ropewalk cluster remove 3"):
            assert site.replicas().get(3, 0) == 0, "it has given everything away"
    assert set(site.replicas()) == {0, 1, 2}
