"""Which nodes a local cluster has, where each listens, and what its configuration says.

    DIR/secret          what the nodes prove to each other; readable by its owner only
    DIR/node-I.toml     the configuration of node I, so that one can be started again by hand: ropewalk serve --config …
    DIR/node-I/         what node I keeps

What a reader could get wrong
    Every port is chosen before the first node starts, port 0 included: nodes must know each other's addresses, and a
    node that is started again must be where clients left it.
    Files and environment have had their say when the plan is made; the nodes are started without those variables.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from ropewalk.local.errors import ImpossiblePlan
from ropewalk.node.addresses import parse_address
from ropewalk.node.config import Config, check_etcd_endpoints
from ropewalk.security.protocols import SecurityProtocol

NODES_MAX: Final = 64
"""On one machine: each is a process with an event loop of its own."""

FreePorts = Callable[[str, int], Sequence[int]]
"""That many ports of a host that nobody listens on, all different."""

IsFree = Callable[[str, int], bool]


class NodePlan(Struct, frozen=True):
    node_id: int
    settings: dict[str, str]

    @property
    def name(self) -> str:
        return f"node-{self.node_id}"

    def toml(self) -> str:
        """A string in JSON is one in TOML too."""
        lines = [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in sorted(self.settings.items())]
        return "\n".join([f"# {self.name} of a local cluster; written by `ropewalk up --nodes`.", *lines, ""])


def plan_nodes(
    config: Config,
    count: int,
    *,
    directory: Path,
    etcd: Sequence[str],
    log_format: str,
    free_ports: FreePorts,
    is_free: IsFree,
) -> list[NodePlan]:
    """`config` holds what was said for all nodes; without `etcd` the first node keeps the metadata."""
    _check(config, count)
    check_etcd_endpoints(etcd, "--etcd")
    kafka = _kafka(config, count, free_ports)
    http = _following_or_free(config, "http.listen", count, free_ports, is_free)
    sqs = _following_or_free(config, "sqs.listen", count, free_ports, is_free)
    peers = _following_or_free(config, "peer.listen", count, free_ports, is_free)
    common = {name: entry.value for name, entry in config.entries() if not config.is_default(name)}
    if config["node.log.format"] == "auto":
        common["node.log.format"] = log_format
    plans = []
    for node_id in range(count):
        settings = {
            **common,
            "node.id": str(node_id),
            "node.data": str(directory / f"node-{node_id}"),
            **kafka[node_id],
            "http.listen": http[node_id],
            "sqs.listen": sqs[node_id],
            "peer.listen": peers[node_id],
            "cluster.secret.file": str(directory / "secret"),
            **_metadata_settings(node_id, peers, etcd),
        }
        settings.pop("cluster.secret", None)  # it is in the file
        if config["kafka.advertise"]:
            settings["kafka.advertise"] = _next_address(config["kafka.advertise"], "kafka.advertise", node_id)
        plans.append(NodePlan(node_id, settings))
    return plans


def _metadata_settings(node_id: int, peers: Sequence[str], etcd: Sequence[str]) -> dict[str, str]:
    if etcd:
        others = [peer for number, peer in enumerate(peers) if number != node_id]
        return {
            "metadata.home": "etcd",
            "metadata.etcd.endpoints": ",".join(etcd),
            "cluster.seeds": ",".join(others),
        }
    if node_id == 0:
        return {"metadata.home": "local"}
    return {"metadata.home": "local", "node.roles": "broker,frontend", "cluster.seeds": peers[0]}


def _check(config: Config, count: int) -> None:
    if not 2 <= count <= NODES_MAX:
        raise ImpossiblePlan(f"--nodes {count}: a local cluster has 2 to {NODES_MAX} nodes")
    for name in ("node.id", "node.roles", "cluster.seeds", "peer.advertise"):
        if not config.is_default(name):
            raise ImpossiblePlan(
                f"{config.origin(name)}: {name} is each node's own, so it cannot be given with --nodes {count}; "
                "start such nodes one by one with `ropewalk serve`"
            )
    if [each.protocol for each in config.kafka_listeners[:1]] != [SecurityProtocol.PLAINTEXT]:
        raise ImpossiblePlan(
            f"--nodes {count}: nodes of one machine are watched by their first listener, which must be a plain one, as in "
            "listeners=PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"
        )


def _kafka(config: Config, count: int, free_ports: FreePorts) -> list[dict[str, str]]:
    """By node: where it listens for Kafka's clients."""
    if config.is_default("listeners"):
        return [{"kafka.listen": each} for each in _following(config, "kafka.listen", count, free_ports)]
    listeners = config.kafka_listeners
    if any(each.port for each in listeners):
        raise ImpossiblePlan(f"{config.origin('listeners')}: several nodes take listeners with port 0 only")
    ports = iter(free_ports(listeners[0].host, count * len(listeners)))
    return [
        {"listeners": ",".join(f"{each.name}://{_written(each.host, next(ports))}" for each in listeners)}
        for _ in range(count)
    ]


def _following(config: Config, name: str, count: int, free_ports: FreePorts) -> list[str]:
    """The address of each node: ports that follow the one that was given, or free ones for port 0."""
    if config[name] == "none":
        return ["none"] * count
    host, port = parse_address(config[name], name)
    ports = free_ports(host, count) if port == 0 else range(port, port + count)
    if ports[-1] > 65535:
        raise ImpossiblePlan(f"{config.origin(name)}: there are no {count} ports from {port} on")
    return [_written(host, each) for each in ports]


def _following_or_free(
    config: Config, name: str, count: int, free_ports: FreePorts, is_free: IsFree
) -> list[str]:
    """As `_following`; where nobody chose the address and one of them is taken, all are free ones."""
    addresses = _following(config, name, count, free_ports)
    if not config.is_default(name) or all(is_free(*parse_address(address, name)) for address in addresses):
        return addresses
    host, _ = parse_address(config[name], name)
    return [_written(host, port) for port in free_ports(host, count)]


def _next_address(text: str, name: str, steps: int) -> str:
    host, port = parse_address(text, name)
    return _written(host, port + steps if port else 0)


def _written(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
