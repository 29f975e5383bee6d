"""Put a node together by hand, and take it apart again.

    start   take the directory, read the metadata, open the HTTP door, open the partitions, then listen
    stop    listen no more, refuse writes, make everything durable, say that it was clean, close the HTTP door
    kill    end where it stands, as a crash would, inside a process that lives on

What a reader could get wrong
    A node whose background work fails does not stop in order: `failed` is set, and the process ends as after a
    crash, because what failed is usually the disk and nothing may be claimed about it any more.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from ropewalk.base.budget import ByteBudget
from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import parse_id
from ropewalk.base.limits import NODE_BUFFER_BYTES_MAX
from ropewalk.base.metrics import Source
from ropewalk.base.ports import Ports
from ropewalk.broker.cluster import Cluster
from ropewalk.broker.decisions import Decisions
from ropewalk.broker.facts import Facts
from ropewalk.broker.fetch_sessions import FetchSessions
from ropewalk.broker.groups import Groups
from ropewalk.broker.health import Stage
from ropewalk.broker.home import Home
from ropewalk.broker.housekeeping import Housekeeping
from ropewalk.broker.leadership import Leadership
from ropewalk.broker.log_directories import LogDirectories
from ropewalk.broker.partitions import Partitions
from ropewalk.broker.producer_ids import ProducerIds
from ropewalk.broker.quota_changes import QuotaChanges
from ropewalk.broker.quotas import ClientQuotas
from ropewalk.broker.topics import Topics
from ropewalk.controller.brokers import Registration, decide_create_cluster, decide_register_broker
from ropewalk.kafka.apis import SERVED_APIS, serve
from ropewalk.kafka.brokers import LISTENER
from ropewalk.kafka.connections import Connections
from ropewalk.kafka.figures import KafkaFigures
from ropewalk.kafka.listener import KafkaListener
from ropewalk.log.directory import DataDirectory
from ropewalk.log.storage import Storage
from ropewalk.metadata.records import Endpoint, Fact
from ropewalk.node.config import Config, parse_address
from ropewalk.node.instruments import Instruments
from ropewalk.node.metadata_home import open_metadata_log
from ropewalk.runtime.memory_disk import MemoryDisk
from ropewalk.runtime.tasks import Supervisor, unless

_log = structlog.get_logger()

SWEEP_S: Final = 5.0

_INTERRUPTIONS: Final = (RopewalkError, OSError, asyncio.CancelledError)
"""What may end a start half way. After a bug nothing is tidied up."""


class Node:
    """A running node. Made by `start`."""

    def __init__(self, parts: "_Parts", listener: KafkaListener) -> None:
        self._parts = parts
        self._listener = listener

    @property
    def kafka_address(self) -> tuple[str, int]:
        return self._listener.address

    @property
    def http_address(self) -> tuple[str, int] | None:
        """None where the node has no HTTP door."""
        return self._parts.instruments.http_address

    @property
    def cluster_id(self) -> str:
        return self._parts.directory.identity.cluster_id

    @property
    def failed(self) -> asyncio.Future[BaseException]:
        """Done, with the error, when the node can no longer be trusted: end the process."""
        return self._parts.failed

    @property
    def budget(self) -> ByteBudget:
        return self._parts.budget

    @property
    def partitions(self) -> Partitions:
        return self._parts.partitions

    @property
    def housekeeping(self) -> Housekeeping:
        return self._parts.housekeeping

    def sources(self) -> Sequence[Source]:
        """Everybody who counts, for the metrics."""
        return self._parts.instruments.sources()

    def pause(self) -> None:
        """Hang: clients stay connected and hear nothing until `resume`. Time and background work go on."""
        self._listener.pause()
        self._parts.instruments.pause()

    def resume(self) -> None:
        self._listener.resume()
        self._parts.instruments.resume()

    async def kill(self) -> None:
        """As a crash would: nobody is answered, nothing is written any more, nothing is said to be clean.

        Calls that the disk pool has begun run to their end: stop the pool, then close the disk. Also good
        after `stop`, for connections whose clients do not take their last answers.
        """
        self._listener.stop()
        self._listener.abort()
        self._parts.instruments.abort_door()
        await self._parts.supervisor.stop()
        self._parts.decisions.stop()
        self._parts.facts.stop()
        self._parts.groups.stop()
        self._parts.disk.stop()
        self._parts.partitions.end()

    async def stop(self) -> None:
        """In order: everything acknowledged is on disk and the next start is quick."""
        parts = self._parts
        parts.instruments.health.stage = Stage.STOPPING
        self._listener.stop()
        parts.partitions.refuse()
        await parts.supervisor.stop()
        parts.decisions.stop()
        parts.facts.stop()
        parts.groups.stop()
        parts.disk.stop()
        for partition in parts.partitions:
            if not partition.in_memory and partition.log.dirty:
                parts.disk.commits.note(partition)
        await parts.disk.commits.commit()
        parts.partitions.end()
        self._listener.close()
        await parts.partitions.close()
        parts.instruments.close_door()
        parts.ports.disk.close()


async def start(config: Config, ports: Ports) -> Node:
    """Raises `RopewalkError` for what the user can put right, `OSError` where the address cannot be had."""
    directory = await ports.pool.run(
        partial(
            DataDirectory.open,
            Storage(ports.disk),
            _data_path(config),
            node_id=config.node_id,
            rng=ports.rng,
        )
    )
    try:
        parts = await _assemble(config, ports, directory)
        try:
            return await unless(parts.failed, _bring_up(parts))
        except _INTERRUPTIONS:
            await parts.supervisor.stop()
            raise
    except _INTERRUPTIONS:
        ports.disk.close()
        raise


@dataclass(slots=True)
class _Parts:
    """Everything a node consists of, except the listener, which comes last and goes first."""

    config: Config
    ports: Ports
    directory: DataDirectory
    facts: Facts
    decisions: Decisions
    cluster: Cluster
    topics: Topics
    disk: Home
    memory: Home
    partitions: Partitions
    groups: Groups
    housekeeping: Housekeeping
    instruments: Instruments
    budget: ByteBudget
    supervisor: Supervisor
    failed: asyncio.Future[BaseException]


async def _assemble(config: Config, ports: Ports, directory: DataDirectory) -> _Parts:
    """Read the metadata and make the parts; nothing runs yet."""
    node_id = config.node_id
    metadata_log = await open_metadata_log(config, ports, directory.path)
    facts = Facts()
    decisions = Decisions(metadata_log, facts)
    await decisions.load()
    cluster = Cluster(facts, decisions)
    topics = Topics(cluster, node_id, config.broker_overrides, ports.rng)
    disk = Home(directory, ports.pool, ports.clock)
    in_memory = DataDirectory.open(Storage(MemoryDisk()), "/memory", node_id=node_id, rng=ports.rng)
    memory = Home(in_memory, ports.pool, ports.clock)
    partitions = Partitions(
        image=cluster.image,
        settings=topics.settings,
        node_id=node_id,
        disk=disk,
        memory=memory,
        pool=ports.pool,
        clock=ports.clock,
    )
    failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
    housekeeping = Housekeeping(cluster, partitions, disk, memory, topics.view, ports.pool, ports.clock)
    groups = Groups(topics, partitions, node_id=node_id, pool=ports.pool, clock=ports.clock, rng=ports.rng)
    instruments = Instruments(
        config,
        ports,
        cluster=cluster,
        topics=topics,
        partitions=partitions,
        groups=groups,
        home=disk,
        housekeeping=housekeeping,
        failed=failed,
    )
    return _Parts(
        config=config,
        ports=ports,
        directory=directory,
        facts=facts,
        decisions=decisions,
        cluster=cluster,
        topics=topics,
        disk=disk,
        memory=memory,
        partitions=partitions,
        groups=groups,
        housekeeping=housekeeping,
        instruments=instruments,
        budget=ByteBudget(NODE_BUFFER_BYTES_MAX),
        supervisor=Supervisor(partial(_on_failure, failed)),
        failed=failed,
    )


async def _bring_up(parts: _Parts) -> Node:
    """The HTTP door comes first: how far the rest is can be asked there."""
    instruments = parts.instruments
    await instruments.open_door()
    try:
        listener = await _begin_to_serve(parts)
    except _INTERRUPTIONS:
        instruments.abort_door()
        raise
    instruments.start(parts.supervisor)
    instruments.health.stage = Stage.SERVING
    return Node(parts, listener)


async def _begin_to_serve(parts: _Parts) -> KafkaListener:
    ports, cluster, identity = parts.ports, parts.cluster, parts.directory.identity
    for name, work in (
        ("metadata", parts.decisions.run()),
        ("following the metadata", parts.facts.run_following()),
        *parts.disk.works(),
        *((f"{name} in memory", work) for name, work in parts.memory.works()),
    ):
        parts.supervisor.start(name, work)
    held = await ports.pool.run(parts.directory.partitions)
    await cluster.propose(
        lambda image: decide_create_cluster(
            image, ports.rng, identity.cluster_id, partitions_held_count=len(held)
        )
    )
    await parts.partitions.open_all(held)
    await parts.groups.follow(())
    parts.instruments.health.stage = Stage.JOINING
    parts.facts.follow_with(partial(_follow, parts))
    connections = _connections(parts)
    listener = await _listen(parts, connections)
    try:
        endpoint = _endpoint(parts.config, listener.address)
        await cluster.propose(
            lambda image: decide_register_broker(
                image,
                Registration(
                    node_id=parts.config.node_id,
                    directory=parse_id(identity.directory_id),
                    endpoints=(endpoint,),
                    rack=parts.config.get("broker.rack"),
                    clock_ms=ports.clock.now_ms(),
                ),
                settings=parts.topics.settings,
                now_ms=ports.clock.now_ms(),
                is_lone=True,
            )
        )
    except _INTERRUPTIONS:
        listener.stop()
        listener.close()
        raise
    parts.supervisor.start("groups", parts.groups.run())
    parts.supervisor.start("housekeeping", parts.housekeeping.run())
    parts.supervisor.start("connections", _sweep(connections, parts.budget))
    return listener


async def _follow(parts: _Parts, records: Sequence[Fact]) -> None:
    """First the partitions, then what lives on them."""
    await parts.partitions.follow(records)
    await parts.groups.follow(records)


def _connections(parts: _Parts) -> Connections:
    settings = parts.topics.broker_settings
    return Connections(
        parts.ports.clock,
        ClientQuotas(parts.cluster.image),
        flexible_since={api.key: api.flexible_since for api in SERVED_APIS},
        frame_bytes_max=settings.socket_request_max_bytes,
        count_max=settings.max_connections,
        count_per_host_max=settings.max_connections_per_ip,
        idle_ms_max=settings.connections_max_idle_ms,
    )


async def _listen(parts: _Parts, connections: Connections) -> KafkaListener:
    node_id = parts.config.node_id
    budget, fetch_sessions = parts.budget, _fetch_sessions(parts)
    served = serve(
        leaders=parts.partitions,
        topics=parts.topics,
        trimming=parts.partitions,
        producer_ids=ProducerIds(parts.cluster, node_id),
        directories=LogDirectories(parts.partitions, parts.disk, parts.memory, parts.ports.pool),
        leadership=Leadership(parts.cluster, parts.topics.settings, parts.ports.clock),
        quota_changes=QuotaChanges(parts.cluster),
        groups=parts.groups,
        fetch_sessions=fetch_sessions,
        budget=budget,
        pool=parts.ports.pool,
        clock=parts.ports.clock,
        node_id=node_id,
    )
    host, port = parse_address(parts.config["kafka.listen"], "kafka.listen")
    parts.instruments.add_source(KafkaFigures(connections, served, budget))
    parts.instruments.add_source(fetch_sessions)
    return await KafkaListener.start(
        parts.ports.network, host, port, connections=connections, served=served, budget=budget
    )


def _fetch_sessions(parts: _Parts) -> FetchSessions:
    count_max = parts.topics.broker_settings.max_incremental_fetch_session_cache_slots
    return FetchSessions(parts.ports.rng, count_max=count_max)


def _data_path(config: Config) -> str:
    return "/ropewalk" if config.in_memory else config.data_path


def _endpoint(config: Config, address: tuple[str, int]) -> Endpoint:
    """What clients are told: the address configured for them, or the one listened on."""
    if config["kafka.advertise"]:
        host, port = parse_address(config["kafka.advertise"], "kafka.advertise")
        return Endpoint(LISTENER, host, port or address[1])
    host, port = address
    return Endpoint(LISTENER, "127.0.0.1" if host in ("0.0.0.0", "::") else host, port)


async def _sweep(connections: Connections, budget: ByteBudget) -> None:
    while True:
        await asyncio.sleep(SWEEP_S)
        connections.sweep()
        connections.relieve(budget)


def _on_failure(failed: asyncio.Future[BaseException], name: str, error: BaseException) -> None:
    _log.error("background work failed; the node ends", work=name, error=repr(error))
    if not failed.done():
        failed.set_result(error)
