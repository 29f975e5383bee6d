"""A node as a process: start, say that it is ready, serve until told to stop.

exit 0   stopped by SIGTERM or SIGINT, in order
exit 1   had to end because the disk cannot be trusted, before it was stopped or while it was; one line says why

A node that cannot start raises, for whoever called to say in one line.
"""

import asyncio
import errno
import os
import platform
import signal
import sys
from typing import NoReturn

import msgspec
import structlog

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ports import Ports
from ropewalk.base.syncs import SyncFailed
from ropewalk.kafka.listener import CannotListenAt
from ropewalk.log.directory import known_cluster
from ropewalk.node import journal, life
from ropewalk.node.addresses import parse_address
from ropewalk.node.config import Config, load
from ropewalk.node.demo import called_as, show
from ropewalk.node.doors import HTTP, SQS
from ropewalk.node.life import Node
from ropewalk.node.options import NodeOptions
from ropewalk.node.peer_door import PeerAddressRefused
from ropewalk.node.place import data_path
from ropewalk.runtime.loop import freeze_start_up_objects, freeze_what_was_opened, run
from ropewalk.runtime.loop_watch import watch_if_wanted
from ropewalk.runtime.ports import SystemPorts, in_memory, on_disk
from ropewalk.runtime.process import PYTHONS_TESTED, is_tested_python, raise_descriptor_limit
from ropewalk.runtime.service_manager import ServiceManager
from ropewalk.security.protocols import SecurityProtocol

_log = structlog.get_logger()


class CannotStart(RopewalkError):
    """One line for the person who tried."""


def run_up(options: NodeOptions) -> NoReturn:
    """`ropewalk up`: a node from defaults and options. Ends the process."""
    sys.exit(_run(options))


def run_serve(options: NodeOptions) -> NoReturn:
    """`ropewalk serve`: a node from a file, as a service manager starts it. Ends the process."""
    sys.exit(_run(options))


def _run(options: NodeOptions) -> int:
    config = load(options, os.environ)
    if options.demo and [each.protocol for each in config.kafka_listeners[:1]] != [
        SecurityProtocol.PLAINTEXT
    ]:
        raise CannotStart("--demo is shown at a first listener that is plain; leave it out")
    journal.configure(config)
    raise_descriptor_limit()
    ports = _ports(config)
    journal.begin(config, cluster_id=known_cluster(ports.disk, data_path(config)))
    if not is_tested_python(sys.version_info[:2]):
        _log.warning(
            "this version of Python is not among those that this version of Ropewalk was tested on",
            python=platform.python_version(),
            tested=", ".join(f"{major}.{minor}" for major, minor in PYTHONS_TESTED),
        )
    return run(_serve(config, options, ports))


def _ports(config: Config) -> SystemPorts:
    if config.in_memory:
        return in_memory()
    try:
        return on_disk(config.data_path)
    except OSError as error:
        raise _cannot_use(config, error) from error


def _cannot_use(config: Config, error: OSError) -> CannotStart:
    return CannotStart(
        f"cannot use {config.data_path}: {error.strerror or error}; choose another place with --data DIR"
    )


async def _serve(config: Config, options: NodeOptions, ports: SystemPorts) -> int:
    watch_if_wanted(os.environ)
    manager = ServiceManager.of_this_process()
    manager.on_status("starting: logs are opened and recovered, then the node joins its cluster")
    node = await _start(config, options, ports)
    journal.join(node.cluster_id)
    stop = _stop_signals()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, node.read_files_again)
    freeze_start_up_objects()
    node.partitions.on_opened = freeze_what_was_opened
    _announce(node, config, options)
    if manager.beat_ms is not None:
        _beat(manager, manager.beat_ms / 1000)
    manager.on_ready(f"serving as node {node.node_id} of cluster {node.cluster_id}")
    if options.demo:
        sqs = None if config["sqs.credentials"] or config.is_encrypted(SQS) else node.sqs_address
        text = await show(
            node.kafka_address,
            ports,
            keeps_data=not config.in_memory,
            sqs=sqs,
            program=called_as(sys.argv[0]),
        )
        print(text, flush=True)  # noqa: T201  this is what the user came for
    waits: list[asyncio.Future[None] | asyncio.Future[BaseException]] = [stop, node.failed]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    if node.failed.done():
        # Ending in order would claim a clean state that nobody can vouch for.
        return 1
    _log.info("stopping")
    manager.on_stopping()
    try:
        await node.stop()
    except SyncFailed as error:
        _log.error(
            "the node could not be stopped in order; the next start checks its logs", reason=error.strerror
        )
        return 1
    _log.info("stopped")
    return 0


def _beat(manager: ServiceManager, every_s: float) -> None:
    """Again and again, on the loop that serves clients: if that hangs, nothing is said."""
    manager.on_alive()
    asyncio.get_running_loop().call_later(every_s, _beat, manager, every_s)


async def _start(config: Config, options: NodeOptions, ports: Ports) -> Node:
    if options.demo and options.kafka is None and await _is_taken(config, ports):
        # Found out beforehand: a start that fails half way has said already what it found.
        host = config["kafka.listen"].rpartition(":")[0]
        config = config.with_value("kafka.listen", f"{host}:0", "--demo")
    try:
        return await life.start(config, ports)
    except PeerAddressRefused as error:
        raise CannotStart(f"{error}; choose another address with --peer HOST:PORT") from error
    except CannotListenAt as error:
        address = _written((error.host, error.port))
        if error.errno != errno.EADDRINUSE:
            raise CannotStart(f"cannot listen on {address}: {error.strerror}") from error
        option = "--kafka HOST:PORT" if config.is_default("listeners") else "listeners"
        raise CannotStart(
            f"{address} is taken by another process; choose another address with {option} "
            "(port 0 takes any free one)"
        ) from error
    except OSError as error:
        raise _cannot_use(config, error) from error


async def _is_taken(config: Config, ports: Ports) -> bool:
    """Whether another process has the address of the short form."""
    if not config.is_default("listeners"):
        return False
    host, port = parse_address(config["kafka.listen"], "kafka.listen")
    try:
        listener = await ports.network.listen(asyncio.Protocol, host, port)
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    listener.stop()
    return False


def _stop_signals() -> asyncio.Future[None]:
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[None] = loop.create_future()

    def on_signal() -> None:
        if not stop.done():
            stop.set_result(None)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    return stop


def _announce(node: Node, config: Config, options: NodeOptions) -> None:
    """The ready line, and the same as JSON for programs. A door that is not there is left out."""
    doors: dict[str, list[str]] = {}
    if node.kafka_addresses:
        doors["kafka"] = [_written(address) for address in node.kafka_addresses]
    if node.http_address is not None:
        doors["http"] = [f"{_scheme(config, HTTP)}://{_written(node.http_address)}"]
    if node.sqs_address is not None:
        doors["sqs"] = [f"{_scheme(config, SQS)}://{_written(node.sqs_address)}"]
    if node.peer_address is not None:
        doors["peer"] = [_written(node.peer_address)]
    document = msgspec.json.encode({**doors, "pids": [os.getpid()]})
    if options.ready_file is not None:
        temporary = f"{options.ready_file}.tmp"
        with open(temporary, "wb") as file:
            file.write(document)
        os.replace(temporary, options.ready_file)
    in_words = " ".join(
        ["ropewalk ready", *(f"{door}={','.join(addresses)}" for door, addresses in doors.items())]
    )
    line = document.decode() if options.ready_as_json else in_words
    print(line, flush=True)  # noqa: T201  the contract with whoever started us


def _scheme(config: Config, door: str) -> str:
    return "https" if config.is_encrypted(door) else "http"


def _written(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
