"""`ropewalk up --nodes N`: a cluster on this machine, from the first process to the last.

exit 0   stopped by SIGTERM or SIGINT, in order
exit 1   every node has ended by itself

What a reader could get wrong
    The cluster is ready when every node lists every other to clients, which it does once all are registered and unfenced.
    Nodes are stopped from the last to the first, which may keep the metadata, so that each can hand over what it leads;
    etcd goes after them. A second signal ends everything at once.
    With `--memory` the files of the cluster are in a directory of their own that goes with it.
"""

import asyncio
import fcntl
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import SystemRandom
from typing import Final, NoReturn

import msgspec

from ropewalk.base.errors import RopewalkError
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import Address
from ropewalk.local.console import Console
from ropewalk.local.errors import DidNotStart, ImpossiblePlan
from ropewalk.local.etcd import EtcdMember, etcd_program, is_healthy, member_command, plan_etcd
from ropewalk.local.plan import NodePlan, plan_nodes
from ropewalk.local.ports import free_ports, is_free
from ropewalk.local.supervisor import Seat, Supervisor
from ropewalk.node.addresses import parse_address
from ropewalk.node.config import Config, is_variable, merged
from ropewalk.node.options import NodeOptions
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.network import TcpNetwork

AUTO: Final = "auto"
_SECRET_BYTES: Final = 32
_ANSWER_MS: Final = 2000
_DOORS: Final = ("kafka", "http", "sqs", "peer")


def run_cluster(options: NodeOptions, *, etcd: str | None, restarts: bool) -> NoReturn:
    """Ends the process; raises `RopewalkError` if the cluster cannot start. `etcd` is URLs, `auto`, or None for none."""
    if options.demo:
        raise ImpossiblePlan("--demo shows one node; leave --nodes out")
    config = merged(options, os.environ)
    with ExitStack() as stack:
        directory = stack.enter_context(_directory(config))
        _keep_secret(directory, config["cluster.secret"])
        members = plan_etcd(directory) if etcd == AUTO else []
        endpoints = [member.url for member in members] or [url for url in (etcd or "").split(",") if url]
        nodes = plan_nodes(
            config,
            options.nodes,
            directory=directory,
            etcd=endpoints,
            log_format="text" if sys.stderr.isatty() else "json",
            free_ports=free_ports,
            is_free=is_free,
        )
        for node in nodes:
            _write_privately(_configuration(directory, node), node.toml())
        cluster = LocalCluster(directory, nodes, members, options, restarts=restarts)
        code = asyncio.run(cluster.run())
    sys.exit(code)


class LocalCluster:
    def __init__(
        self,
        directory: Path,
        nodes: Sequence[NodePlan],
        members: list[EtcdMember],
        options: NodeOptions,
        *,
        restarts: bool,
    ) -> None:
        self._options = options
        self._plans = nodes
        self._members = members
        self._console = Console(sys.stderr.buffer)
        self._supervisor = Supervisor(
            self._console, _environment(os.environ), restarts=restarts, on_restart=self._on_restart
        )
        self._etcd_seats = [
            Seat(member.name, member_command(etcd_program(), member, members, directory))
            for member in members
        ]
        self._node_seats = [
            Seat(
                node.name,
                (sys.executable, "-m", "ropewalk", "serve", "--config", str(_configuration(directory, node))),
            )
            for node in nodes
        ]
        self._doors: list[Mapping[str, str]] = []
        """Of each node, once all are ready."""

    async def run(self) -> int:
        stop = asyncio.Event()
        self._listen_to_signals(stop)
        async with self._supervisor.running():
            try:
                await _unless(stop, self._start())
                if not stop.is_set():
                    self._announce()
                    await _unless(stop, self._all_gone())
            finally:
                await self._supervisor.stop([*reversed(self._node_seats), *self._etcd_seats])
            if not stop.is_set():
                self._console.say("every node has ended")
                return 1
        return 0

    async def _start(self) -> None:
        for seat in self._etcd_seats:
            await self._supervisor.start(seat)
        await self._supervisor.until(self._etcd_seats, self._is_etcd_healthy)
        if self._plans[0].settings["metadata.home"] == "local":
            self._console.say(
                "node-0 keeps the metadata: while it is down no leader changes, and writes with acks=all may have to wait; "
                "--etcd has no such node"
            )
        for seat in self._node_seats:
            await self._supervisor.start(seat)
        self._doors = [_doors(seat, await self._supervisor.said(seat)) for seat in self._node_seats]
        await self._supervisor.until(self._node_seats, self._does_everybody_know_everybody)

    async def _is_etcd_healthy(self) -> bool:
        return all(await asyncio.gather(*map(is_healthy, self._members)))

    async def _does_everybody_know_everybody(self) -> bool:
        expected = {node.node_id for node in self._plans}
        known = await asyncio.gather(*(_brokers_known_at(doors["kafka"]) for doors in self._doors))
        return all(expected <= brokers for brokers in known)

    async def _all_gone(self) -> None:
        for seat in self._node_seats:
            await seat.gone.wait()

    def _listen_to_signals(self, stop: asyncio.Event) -> None:
        def on_signal() -> None:
            if stop.is_set():
                self._supervisor.kill()
            stop.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, on_signal)

    def _on_restart(self) -> None:
        if self._doors:
            self._write_ready_file()

    def _announce(self) -> None:
        document = self._write_ready_file()
        by_door = [(door, [each[door] for each in self._doors if door in each]) for door in _DOORS]
        in_words = " ".join(
            ["ropewalk ready", *(f"{door}={','.join(addresses)}" for door, addresses in by_door if addresses)]
        )
        print(document.decode() if self._options.ready_as_json else in_words, flush=True)

    def _write_ready_file(self) -> bytes:
        document: dict[str, object] = {
            door: [each[door] for each in self._doors]
            for door in _DOORS
            if all(door in each for each in self._doors)
        }
        document["pids"] = [seat.child.pid for seat in self._node_seats if seat.child is not None]
        if self._members:
            document["etcd"] = [member.url for member in self._members]
            document["etcd_pids"] = [seat.child.pid for seat in self._etcd_seats if seat.child is not None]
        encoded = msgspec.json.encode(document)
        if self._options.ready_file is not None:
            temporary = Path(f"{self._options.ready_file}.tmp")
            temporary.write_bytes(encoded)
            temporary.replace(self._options.ready_file)
        return encoded


async def _unless(stop: asyncio.Event, work: Coroutine[object, object, None]) -> None:
    """Wait for the work, or until `stop` is set, which ends it."""
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(work), loop.create_task(stop.wait())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            if not task.done():
                task.cancel()
        await asyncio.wait(tasks)
    if not tasks[0].cancelled():
        await tasks[0]


async def _brokers_known_at(address: str) -> set[int]:
    """The ids of the brokers that one node tells clients of; none while it does not answer."""
    where = Address(*parse_address(address, "kafka"))

    client = Client(TcpNetwork(), SystemClock(), SystemRandom(), (where,))
    try:
        view = await client.metadata([], deadline_ms=client.session.deadline_ms(_ANSWER_MS))
    except RopewalkError:
        return set()
    finally:
        client.close()
    return {int(broker.node_id) for broker in view.brokers}


def _doors(seat: Seat, line: str) -> Mapping[str, str]:
    """`ropewalk ready kafka=… http=…` as a mapping; of several listeners the first."""
    words = line.split()
    if words[:2] != ["ropewalk", "ready"]:
        raise DidNotStart(f"{seat.name} said {line!r} where it should have said that it is ready")
    said = (word.split("=", 1) for word in words[2:])
    return {door: addresses.partition(",")[0] for door, addresses in said}


@contextmanager
def _directory(config: Config) -> Iterator[Path]:
    """Where the cluster's files are, for this process alone."""
    if config.in_memory:
        with tempfile.TemporaryDirectory(prefix="ropewalk-") as name:
            yield Path(name)
        return
    directory = Path(config.data_path)
    if (directory / "identity").exists():
        raise ImpossiblePlan(
            f"{directory} holds the data of a single node; choose another place with --data DIR"
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / "supervisor.lock").open("w")
    except OSError as error:
        raise ImpossiblePlan(
            f"cannot use {directory}: {error.strerror}; choose another place with --data DIR"
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ImpossiblePlan(f"another `ropewalk up` runs the cluster in {directory}") from None
        yield directory


def _keep_secret(directory: Path, chosen: str) -> None:
    path = directory / "secret"
    if chosen or not path.exists():
        _write_privately(path, (chosen or secrets.token_hex(_SECRET_BYTES)) + "\n")


def _write_privately(path: Path, text: str) -> None:
    """For its owner's eyes only, from the first moment on."""
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    temporary.replace(path)


def _configuration(directory: Path, node: NodePlan) -> Path:
    return directory / f"{node.name}.toml"


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Without those that are settings: they are in the configurations already."""
    return {name: value for name, value in variables.items() if not is_variable(name)}
