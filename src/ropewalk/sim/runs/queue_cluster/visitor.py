"""A client of queues: every request goes to a door that is drawn, and often its answer is not waited for."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from ropewalk.base.ports import Network
from ropewalk.sim.clients.http_link import HttpLink, HttpLost, open_http_link
from ropewalk.sim.clients.workload import Caller, Workload
from ropewalk.sim.runs.cluster.members import SQS_PORT

PATIENCE_S: Final = 5.0
_ERRORS_OF_THE_NODE: Final = 500
_UNCERTAIN: Final = frozenset({"RequestThrottled"})
"""Refusals of a part of the way to the leader, whatever the rest of it has done."""


class Refused(Exception):
    """The door said no, and nothing was done."""


class Told(Struct, frozen=True):
    body: dict[str, Any]
    asked_s: float
    answered_s: float
    door: str
    """The node that was asked."""


class Visitor(Caller):
    def __init__(self, workload: Workload, name: str, doors: list[str]) -> None:
        """`doors` are the nodes it knows."""
        super().__init__(workload, name)
        self._doors = doors
        self._hosts: Network = workload.world.network.host(name)
        self._links: dict[str, HttpLink] = {}

    @property
    def now_s(self) -> float:
        return self.workload.world.now_s

    async def ask(
        self,
        action: str,
        body: Mapping[str, object],
        *,
        patience_s: float = PATIENCE_S,
        target: str = "AmazonSQS",
    ) -> Told | None:
        """None where nobody knows what has become of it. Raises `Refused`. Whoever is out of patience hangs up."""
        self.workload.operation_count += 1
        asked_s, door = self.now_s, self.rng.choice(self._doors)
        try:
            link = await self._open(door)
        except HttpLost:
            await self.pause(0.3)
            return None
        answering = link.ask(_request(door, f"{target}.{action}", body))
        try:
            async with asyncio.timeout(patience_s):
                answer = await answering
        except (HttpLost, TimeoutError):
            link.close()
            await self.pause(0.1)
            return None
        if answer.status >= _ERRORS_OF_THE_NODE:
            await self.pause(0.3)
            return None
        content = json.loads(answer.body or b"{}")
        if answer.status >= 400:
            kind = str(content.get("__type", "")).rpartition("#")[2]
            if kind in _UNCERTAIN:
                return None
            raise Refused(f"{kind}: {content.get('message')}")
        return Told(content, asked_s, self.now_s, door)

    def close(self) -> None:
        for link in self._links.values():
            link.close()

    async def _open(self, door: str) -> HttpLink:
        link = self._links.get(door)
        if link is None or not link.is_open:
            link = self._links[door] = await open_http_link(self._hosts, self.name, (door, SQS_PORT))
        return link


def _request(host: str, target: str, body: Mapping[str, object]) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST / HTTP/1.1\r\nHost: {host}:{SQS_PORT}\r\nContent-Type: application/x-amz-json-1.0\r\n"
        f"X-Amz-Target: {target}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content
