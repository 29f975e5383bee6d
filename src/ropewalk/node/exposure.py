"""What of a node's addresses could surprise: clients that are sent to the wrong place, and doors that anybody may enter.

Said at every start, and by `ropewalk doctor` of every node of a cluster.
"""

from typing import Final

from ropewalk.node.config import Config, parse_address

_WILDCARDS: Final = ("0.0.0.0", "::", "")


def warnings_of(config: Config) -> tuple[str, ...]:
    found: list[str] = []
    host, _ = parse_address(config["kafka.listen"], "kafka.listen")
    if host in _WILDCARDS and not config["kafka.advertise"]:
        found.append(
            f"kafka.listen is {config['kafka.listen']} and kafka.advertise is not set: clients on other machines are sent to 127.0.0.1; "
            "set kafka.advertise to the address by which they reach this node"
        )
    open_doors = [
        name
        for name in ("kafka.listen", "http.listen")
        if config[name] != "none" and not _is_loopback(parse_address(config[name], name)[0])
    ]
    if open_doors:
        listed = " and ".join(f"{name} ({config[name]})" for name in open_doors)
        found.append(
            f"{listed} can be reached from other machines, and nobody has to prove who they are: whoever reaches the Kafka port may read, "
            "write and delete everything; listen on the loopback, or on a network whose machines you trust"
        )
    return tuple(found)


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
