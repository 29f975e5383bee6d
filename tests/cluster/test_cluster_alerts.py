"""Nodes look for alerts by themselves: each its own, the controller the cluster's; a webhook is told, and silences keep it quiet."""

import asyncio
import base64
import hmac
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import msgspec

from ropewalk.alerts.silences import Silence
from ropewalk.client.administration.admin import Admin, ResourceKind
from ropewalk.client.administration.membership import Alert
from ropewalk.client.calls.client import Client
from ropewalk.metadata.settings.alerts import SILENCES
from ropewalk.views.asking import ask_everyone
from tests.cluster.nodes import Nodes, in_a_cluster

SECRET = bytes(range(24))


class Hook(asyncio.Protocol):
    """A web server that takes notices, or answers what it is told to."""

    def __init__(self, told: "list[dict[str, Any]]", statuses: list[int], ids: list[str]) -> None:
        self._told = told
        self._statuses = statuses
        self._ids = ids
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, _, body = self._received.partition(b"\r\n\r\n")
        if not body.endswith(b"}}"):
            return
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        signature = base64.b64encode(hmac.digest(SECRET, signed, sha256)).decode()
        assert headers["webhook-signature"] == f"v1,{signature}"
        self._ids.append(headers["webhook-id"])
        status = self._statuses.pop(0) if self._statuses else 200
        if status == 200:
            self._told.append(msgspec.json.decode(body))
        self._transport.write(f"HTTP/1.1 {status} so\r\nContent-Length: 0\r\n\r\n".encode())


async def alerts_of(client: Client) -> dict[int, dict[str, Alert]]:
    """By node and name; nodes that do not answer are left out."""
    found = {}
    for node_id, answer in (await ask_everyone(client)).by_node.items():
        answerer = getattr(answer, "answerer", None)
        if answerer is not None:
            found[int(node_id)] = {alert.name: alert for alert in answerer.alerts}
    return found


async def until_told(told: "list[dict[str, Any]]", count: int, within_s: float = 60) -> float:
    """How long it took."""
    for waited in range(int(within_s * 10)):
        if len(told) >= count:
            return waited / 10
        await asyncio.sleep(0.1)
    raise AssertionError(f"{len(told)} of {count} were told: {told}")


def test_a_fault_is_told_by_who_sees_it_and_its_end_too(tmp_path: Path) -> None:
    secret_file = tmp_path / "secret"
    secret_file.write_text(f"whsec_{base64.b64encode(SECRET).decode()}\n")

    async def story(nodes: Nodes) -> None:
        told: list[dict[str, Any]] = []
        ids: list[str] = []
        statuses = [503, 404]
        nodes.world.machine("hook")
        await nodes.world.network.host("hook").listen(lambda: Hook(told, statuses, ids), "hook", 80)
        async with nodes.client() as client:
            await asyncio.sleep(20)
            assert await alerts_of(client) == {0: {}, 1: {}, 2: {}}
            nodes.members[2].kill()
            await until_told(told, 1)
            assert not statuses, "what the webhook did not take is sent again"
            assert len(set(ids)) == 1, "with the same id"
            assert told[0]["type"] == "alert.firing"
            assert told[0]["data"] == {
                "cluster": nodes[0].image.cluster_id,
                "node": 0,
                "alert": "RopewalkNodeFenced",
                "severity": "warning",
                "labels": {},
                "summary": "1 nodes are out of service",
                "value": 1.0,
                "since": told[0]["data"]["since"],
            }
            found = await alerts_of(client)
            assert found[0]["RopewalkNodeFenced"].state == "firing"
            assert "RopewalkNodeFenced" not in found[1], "only the node that decides speaks for the cluster"
            await nodes.members[2].start()
            await until_told(told, 2)
            assert (told[1]["type"], told[1]["data"]["alert"]) == ("alert.resolved", "RopewalkNodeFenced")
            await asyncio.sleep(120)
            assert len(told) == 2, "nothing is told twice"

    in_a_cluster(
        story,
        "alerts.webhook=http://hook:80/alerts",
        f"alerts.webhook.secret.file={secret_file}",
        with_http=True,
    )


def test_a_silenced_alert_is_shown_and_told_when_the_silence_ends(tmp_path: Path) -> None:
    secret_file = tmp_path / "secret"
    secret_file.write_text(f"whsec_{base64.b64encode(SECRET).decode()}\n")

    async def story(nodes: Nodes) -> None:
        told: list[dict[str, Any]] = []
        nodes.world.machine("hook")
        await nodes.world.network.host("hook").listen(lambda: Hook(told, [], []), "hook", 80)
        async with nodes.client() as client:
            until_ms = nodes.members[0].machine.clock.now_ms() + 90_000
            silence = Silence("RopewalkNodeFenced", (), until_ms)
            await Admin(client).alter_list(ResourceKind.BROKER, "", SILENCES, added=[silence.written])
            nodes.members[2].kill()
            await asyncio.sleep(60)
            shown = (await alerts_of(client))[0]["RopewalkNodeFenced"]
            assert (shown.state, shown.silenced_until_ms) == ("firing", until_ms)
            assert not told
            await until_told(told, 1)
            assert nodes.members[0].machine.clock.now_ms() >= until_ms
            await Admin(client).alter_list(ResourceKind.BROKER, "", SILENCES, removed=[silence.written])

    in_a_cluster(
        story,
        "alerts.webhook=http://hook:80/alerts",
        f"alerts.webhook.secret.file={secret_file}",
        with_http=True,
    )


def test_a_webhook_without_a_secret_is_told_nothing() -> None:
    async def story(nodes: Nodes) -> None:
        told: list[dict[str, Any]] = []
        nodes.world.machine("hook")
        await nodes.world.network.host("hook").listen(lambda: Hook(told, [], []), "hook", 80)
        nodes.members[2].kill()
        await asyncio.sleep(60)
        async with nodes.client() as client:
            assert (await alerts_of(client))[0]["RopewalkNodeFenced"].state == "firing"
        assert not told

    in_a_cluster(story, "alerts.webhook=http://hook:80/alerts", with_http=True)
