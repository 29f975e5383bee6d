"""Three members of etcd for a local cluster, started from the program of that name.

What a reader could get wrong
    A member keeps the addresses of the others in its data, so they are chosen once and kept in DIR/etcd.json.
"""

import asyncio
import shutil
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from ropewalk.local.errors import ImpossiblePlan
from ropewalk.local.ports import free_ports

MEMBER_COUNT: Final = 3
_HOST: Final = "127.0.0.1"
_ANSWER_S: Final = 1.0
"""A member that takes longer is asked again."""


class EtcdMember(Struct, frozen=True):
    name: str
    client_port: int
    peer_port: int

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self.client_port}"

    @property
    def peer_url(self) -> str:
        return f"http://{_HOST}:{self.peer_port}"


def plan_etcd(directory: Path) -> list[EtcdMember]:
    """The members of this directory: those it has had before, or new ones."""
    path = directory / "etcd.json"
    if path.exists():
        return msgspec.json.decode(path.read_bytes(), type=list[EtcdMember])
    ports = free_ports(_HOST, 2 * MEMBER_COUNT)
    members = [
        EtcdMember(f"etcd-{number}", ports[number], ports[MEMBER_COUNT + number])
        for number in range(MEMBER_COUNT)
    ]
    path.write_bytes(msgspec.json.encode(members))
    return members


def etcd_program() -> str:
    program = shutil.which("etcd")
    if program is None:
        raise ImpossiblePlan(
            "--etcd auto: there is no program `etcd` here; install it (on Debian, etcd-server), or name a running one "
            "with --etcd URL,…"
        )
    return program


def member_command(program: str, member: EtcdMember, members: list[EtcdMember], directory: Path) -> list[str]:
    cluster = ",".join(f"{each.name}={each.peer_url}" for each in members)
    return [
        program,
        *("--name", member.name),
        *("--data-dir", str(directory / member.name)),
        *("--listen-client-urls", member.url),
        *("--advertise-client-urls", member.url),
        *("--listen-peer-urls", member.peer_url),
        *("--initial-advertise-peer-urls", member.peer_url),
        *("--initial-cluster", cluster),
        *("--initial-cluster-state", "new"),
        *("--logger", "zap"),
        *("--log-level", "error"),
    ]


async def is_healthy(member: EtcdMember) -> bool:
    """Whether the member answers and knows a leader."""
    try:
        async with asyncio.timeout(_ANSWER_S):
            reader, writer = await asyncio.open_connection(_HOST, member.client_port)
            try:
                writer.write(f"GET /health HTTP/1.0\r\nHost: {_HOST}\r\n\r\n".encode())
                answer = await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
    return b'"health":"true"' in answer
