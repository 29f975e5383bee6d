"""What of a node's addresses could surprise: clients that are sent to the wrong place, and doors that anybody may enter.

Said at every start, and by `ropewalk doctor` of every node of a cluster.
"""

from typing import Final

from ropewalk.node.addresses import NONE, parse_address
from ropewalk.node.config import Config
from ropewalk.node.kafka_listeners import ListenerPlan

METRICS_OPEN: Final = "http.metrics.open"

_WILDCARDS: Final = ("0.0.0.0", "::", "")


def warnings_of(config: Config) -> tuple[str, ...]:
    found: list[str] = []
    listeners = config.kafka_listeners
    for each in listeners:
        if each.host in _WILDCARDS and each.advertised is None:
            setting = "kafka.advertise" if config.is_default("listeners") else "advertised.listeners"
            found.append(
                f"{each.said_as} is every address and {setting} is not set: clients on other machines are sent to 127.0.0.1; "
                f"set {setting} to the address by which they reach this node"
            )
    open_doors = [
        each.said_as for each in listeners if not is_loopback(each.host) and not _asks_for_names(config, each)
    ]
    http = config["http.listen"]
    if http != NONE and not is_loopback(parse_address(http, "http.listen")[0]):
        open_doors.append(f"http.listen ({http})")
    if open_doors:
        listed = " and ".join(open_doors)
        found.append(
            f"{listed} can be reached from other machines, and nobody has to prove who they are: whoever reaches the Kafka port may read, "
            "write and delete everything; listen on the loopback, or on a network whose machines you trust"
        )
    return tuple(found)


def _asks_for_names(config: Config, listener: ListenerPlan) -> bool:
    by_certificate = config.of_listener(listener.name, "ssl.client.auth") == "required"
    return listener.protocol.has_sasl or (listener.protocol.is_encrypted and by_certificate)


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
