"""Network namespaces for the nodes of a cluster, and cuts between them.

Every node has a namespace and an address of its own on one bridge; the load runs outside and reaches all of them. A cut is a rule in
the namespace of a node: packets to or from other nodes are dropped, with no word to either side. Needs root, `ip` and `nft`.
"""

import itertools
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_TABLE = "cut"
_numbers = itertools.count()


class Wires:
    """The network of `node_count` nodes. Use it as a context manager: what it made, it takes away."""

    def __init__(self, node_count: int) -> None:
        # What is taken away lingers for a moment, so every network has names and addresses of its own.
        number = next(_numbers)
        self._label = f"rw{os.getpid() % 100_000}x{number}"
        self._net = f"10.{77 + (os.getpid() + number) % 100}.{os.getpid() // 100 % 250}"
        self.addresses = [f"{self._net}.{10 + node_id}" for node_id in range(node_count)]
        self.outside = f"{self._net}.1"

    def __enter__(self) -> "Wires":
        bridge = self._label
        try:
            _ip("link", "add", bridge, "type", "bridge")
            _ip("addr", "add", f"{self.outside}/24", "dev", bridge)
            _ip("link", "set", bridge, "up")
            for node_id, address in enumerate(self.addresses):
                space, outer, inner = self._names(node_id)
                _ip("netns", "add", space)
                _ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", space)
                _ip("link", "set", outer, "master", bridge, "up")
                _inside(space, "ip", "addr", "add", f"{address}/24", "dev", inner)
                _inside(space, "ip", "link", "set", inner, "up")
                _inside(space, "ip", "link", "set", "lo", "up")
                _inside(space, "nft", "add", "table", "inet", _TABLE)
                for hook in ("input", "output"):
                    chain = f"{{ type filter hook {hook} priority 0 ; }}"
                    _inside(space, "nft", "add", "chain", "inet", _TABLE, hook, chain)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node_id in range(len(self.addresses)):
            subprocess.run(["ip", "netns", "del", self._names(node_id)[0]], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", self._label], capture_output=True, check=False)

    def prefix(self, node_id: int) -> list[str]:
        """What to put before a command so that it runs at that node's place."""
        return ["ip", "netns", "exec", self._names(node_id)[0]]

    def cut(self, node_id: int, others: Iterable[int], *, hears: bool = False, speaks: bool = False) -> None:
        """Between one node and others. It may still hear them, or speak to them; outside it is reached as before."""
        space = self._names(node_id)[0]
        for other in others:
            address = self.addresses[other]
            if not hears:
                self._drop(space, "input", "saddr", address)
            if not speaks:
                self._drop(space, "output", "daddr", address)

    def isolate(self, node_id: int) -> None:
        """Between one node and everything: the others, etcd and clients."""
        space = self._names(node_id)[0]
        for hook in ("input", "output"):
            _inside(space, "nft", "add", "rule", "inet", _TABLE, hook, *_not_loopback(hook), "drop")

    def lose(self, node_id: int, percent: int) -> None:
        """Drop so many of the packets that arrive at a node, whoever sends them."""
        space = self._names(node_id)[0]
        words = f"numgen random mod 100 < {percent} drop".split()
        _inside(space, "nft", "add", "rule", "inet", _TABLE, "input", *words)

    def heal(self) -> None:
        for node_id in range(len(self.addresses)):
            for hook in ("input", "output"):
                _inside(self._names(node_id)[0], "nft", "flush", "chain", "inet", _TABLE, hook)

    def _drop(self, space: str, hook: str, side: str, address: str) -> None:
        _inside(space, "nft", "add", "rule", "inet", _TABLE, hook, "ip", side, address, "drop")

    def _names(self, node_id: int) -> tuple[str, str, str]:
        return f"{self._label}n{node_id}", f"{self._label}o{node_id}", f"{self._label}i{node_id}"


@contextmanager
def no_wires() -> Iterator[None]:
    """Where all nodes are on the loopback, and nothing can be cut."""
    yield None


def _not_loopback(hook: str) -> tuple[str, ...]:
    return ("oifname" if hook == "output" else "iifname", "!=", "lo")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def _inside(space: str, *command: str) -> None:
    subprocess.run(["ip", "netns", "exec", space, *command], check=True, capture_output=True)
