"""What somebody who is to help from afar wants to see of a cluster: files of text, from every node that answers.

What a reader could get wrong
    There are no records in it, and no keys: names of topics, groups, users and machines there are.
    Whatever a file is made of, secrets are taken out of it at the end, here.
    A page that a node does not give is noted in a file of its own, and keeps nobody from the rest.
"""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.hiding import HIDDEN, hide
from ropewalk.base.ports import Network
from ropewalk.client.administration.admin import Admin, ResourceKind, Setting
from ropewalk.client.administration.membership import Node
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.together import together
from ropewalk.client.connections.security import ClientSecurity
from ropewalk.views.answering import deadline_ms
from ropewalk.views.diagnosis.facts import Facts, NodeFacts
from ropewalk.views.diagnosis.pages import read_page

_PAGES: Final = (
    ("metrics.txt", "/metrics"),
    ("health.txt", "/healthz?verbose"),
    ("journal.jsonl", "/debug/journal"),
    ("stacks.txt", "/debug/stacks"),
    ("configuration.txt", "/debug/settings"),
)


class Bundle:
    """Files by their path, in the order in which they came."""

    def __init__(self, known: Iterable[str]) -> None:
        """`known` are the secrets of whoever asks."""
        self._known = tuple(known)
        self.files: dict[str, str] = {}
        self.missing: list[str] = []

    def add(self, path: str, text: str) -> None:
        self.files[path] = hide(text, self._known)

    def add_json(self, path: str, value: object) -> None:
        self.add(path, msgspec.json.format(msgspec.json.encode(value), indent=2).decode())

    def lacks(self, path: str, why: object) -> None:
        self.missing.append(hide(f"{path}: {why}", self._known))


class _Asker(Struct, frozen=True):
    network: Network
    security: ClientSecurity


async def fill(
    bundle: Bundle, facts: Facts, network: Network, security: ClientSecurity, client: Client | None
) -> None:
    """From what is known already, and what nodes are asked for. Without a client no settings are asked for."""
    if facts.membership is not None:
        bundle.add_json("cluster.json", facts.membership)
    bundle.add_json("topics.json", [each.state for each in facts.topics])
    bundle.add_json("settings-of-topics.json", {each.state.name: each.settings for each in facts.topics})
    bundle.add_json("groups.json", facts.groups)
    bundle.add_json("reached.json", [*facts.asked, *(each.reached for each in facts.nodes if each.reached)])
    asker = _Asker(network, security)
    await together([_of_node(bundle, each, asker, client) for each in facts.nodes])


async def _of_node(bundle: Bundle, facts: NodeFacts, asker: _Asker, client: Client | None) -> None:
    node = facts.node
    folder = f"node-{node.node_id}"
    if facts.answer is not None:
        bundle.add_json(f"{folder}/as-it-sees-the-cluster.json", facts.answer)
    elif facts.silence is not None:
        bundle.lacks(f"{folder}/as-it-sees-the-cluster.json", facts.silence)
    bundle.add_json(f"{folder}/directories.json", facts.directories)
    if client is not None and node.address is not None:
        try:
            described = await _settings(client, node)
            bundle.add(f"{folder}/settings.txt", "\n".join(map(_line, described)))
        except RopewalkError as error:
            bundle.lacks(f"{folder}/settings.txt", error)
    for name, path in _PAGES:
        try:
            page = await read_page(asker.network, node, path, asker.security, may_be_unwell=True)
        except RopewalkError as error:
            bundle.lacks(f"{folder}/{name}", error)
            continue
        bundle.add(f"{folder}/{name}", page)


def _line(setting: Setting) -> str:
    """A name and its value on one line: secrets are known by the name before them."""
    shown = HIDDEN if setting.is_sensitive else setting.value
    return f"{setting.name} = {shown}  # {setting.source.name.lower()}"


async def _settings(client: Client, node: Node) -> list[Setting]:
    return await Admin(client).describe_settings(
        ResourceKind.BROKER, str(node.node_id), deadline_ms=deadline_ms(client)
    )
