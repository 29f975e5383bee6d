"""Put a node together by hand, and take it apart again.

    start   take the directory, read the metadata, open the partitions, then listen
    stop    listen no more, refuse writes, make everything durable, say that it was clean
    kill    end where it stands, as a crash would, inside a process that lives on

What a reader could get wrong
    A node whose background work fails does not stop in order: `failed` is set, and the process ends as after a
    crash, because what failed is usually the disk and nothing may be claimed about it any more.
"""

import asyncio
from functools import partial

import structlog

from ropewalk.base.budget import ByteBudget
from ropewalk.base.ids import NodeId, parse_id
from ropewalk.base.limits import NODE_BUFFER_BYTES_MAX
from ropewalk.base.ports import Disk, Ports
from ropewalk.broker.cluster import Cluster
from ropewalk.broker.group_commit import GroupCommit
from ropewalk.broker.housekeeping import Housekeeping
from ropewalk.broker.log_starts import LogStarts
from ropewalk.broker.partitions import Home, Partitions
from ropewalk.broker.producer_ids import ProducerIds
from ropewalk.broker.topics import Topics
from ropewalk.controller.brokers import decide_create_cluster, decide_register_broker
from ropewalk.kafka.apis import SERVED_APIS, serve
from ropewalk.kafka.connections import Connections
from ropewalk.kafka.handlers.metadata import LISTENER
from ropewalk.kafka.listener import KafkaListener
from ropewalk.log.directory import DataDirectory
from ropewalk.log.storage import Storage
from ropewalk.metadata.local import LocalMetadataLog
from ropewalk.metadata.records import Endpoint
from ropewalk.node.config import Config, parse_address
from ropewalk.runtime.memory_disk import MemoryDisk
from ropewalk.runtime.tasks import Supervisor

_log = structlog.get_logger()

SWEEP_S = 5.0


class Node:
    """A running node. Made by `start`."""

    def __init__(
        self,
        *,
        ports: Ports,
        directory: DataDirectory,
        cluster: Cluster,
        partitions: Partitions,
        disk_home: Home,
        housekeeping: Housekeeping,
        listener: KafkaListener,
        supervisor: Supervisor,
        failed: asyncio.Future[BaseException],
    ) -> None:
        self._ports = ports
        self._directory = directory
        self._cluster = cluster
        self._partitions = partitions
        self._disk_home = disk_home
        self._listener = listener
        self._supervisor = supervisor
        self.housekeeping = housekeeping
        self.failed = failed
        """Done, with the error, when the node can no longer be trusted: end the process."""

    @property
    def kafka_address(self) -> tuple[str, int]:
        return self._listener.address

    @property
    def cluster_id(self) -> str:
        return self._directory.identity.cluster_id

    def pause(self) -> None:
        """Hang: clients stay connected and hear nothing until `resume`. Time and background work go on."""
        self._listener.pause()

    def resume(self) -> None:
        self._listener.resume()

    async def kill(self) -> None:
        """As a crash would: nobody is answered, nothing is written any more, nothing is said to be clean.

        Calls that the disk pool has begun run to their end: stop the pool, then close the disk. Also good
        after `stop`, for connections whose clients do not take their last answers.
        """
        self._listener.stop()
        self._listener.abort()
        await self._supervisor.stop()
        self._cluster.stop()
        self._disk_home.log_starts.stop()
        self._partitions.end()

    async def stop(self) -> None:
        """In order: everything acknowledged is on disk and the next start is quick."""
        self._listener.stop()
        self._partitions.refuse()
        await self._supervisor.stop()
        self._cluster.stop()
        self._disk_home.log_starts.stop()
        for partition in self._partitions:
            if not partition.in_memory and partition.log.dirty:
                self._disk_home.commits.note(partition)
        await self._disk_home.commits.commit()
        self._partitions.end()
        self._listener.close()
        await self._partitions.close()
        self._ports.disk.close()


async def start(config: Config, ports: Ports) -> Node:
    """Raises `RopewalkError` for what the user can put right, `OSError` where the address cannot be had."""
    node_id = config.node_id
    data = _data_path(config)
    directory = await ports.pool.run(
        partial(DataDirectory.open, Storage(ports.disk), data, node_id=node_id, rng=ports.rng)
    )
    try:
        return await _start(config, ports, directory, node_id)
    except BaseException:
        ports.disk.close()
        raise


async def _start(config: Config, ports: Ports, directory: DataDirectory, node_id: NodeId) -> Node:
    failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
    supervisor = Supervisor(partial(_on_failure, failed))
    try:
        metadata_log = await ports.pool.run(
            LocalMetadataLog.open, ports.disk, ports.pool, f"{directory.path}/metadata"
        )
        cluster = Cluster(metadata_log)
        await cluster.load()
        topics = Topics(cluster, node_id, config.broker_overrides, ports.rng)
        memory_directory = DataDirectory.open(
            Storage(MemoryDisk()),
            "/memory",
            node_id=node_id,
            rng=ports.rng,
            cluster_id=cluster.image.cluster_id,
        )
        disk_home = _home(directory, ports.disk, ports)
        memory_home = _home(memory_directory, memory_directory.storage.disk, ports)
        partitions = Partitions(
            image=cluster.image,
            view=topics.view,
            node_id=node_id,
            disk=disk_home,
            memory=memory_home,
            pool=ports.pool,
            clock=ports.clock,
        )
        housekeeping = Housekeeping(
            cluster, partitions, disk_home, memory_home, topics.view, ports.pool, ports.clock
        )
        for name, work in (
            ("metadata", cluster.run()),
            ("group commit", disk_home.commits.run()),
            ("group commit in memory", memory_home.commits.run()),
            ("log starts", disk_home.log_starts.run()),
            ("log starts in memory", memory_home.log_starts.run()),
        ):
            supervisor.start(name, work)
        held = await ports.pool.run(directory.partitions)
        await cluster.propose(
            lambda image: decide_create_cluster(
                image, ports.rng, directory.identity.cluster_id, partitions_held_count=len(held)
            )
        )
        await partitions.open_all()
        cluster.follow_with(partitions.follow)
        settings = topics.broker_settings
        connections = Connections(
            ports.clock,
            flexible_since={api.key: api.flexible_since for api in SERVED_APIS},
            frame_bytes_max=settings.socket_request_max_bytes,
            count_max=settings.max_connections,
            count_per_host_max=settings.max_connections_per_ip,
            idle_ms_max=settings.connections_max_idle_ms,
        )
        served = serve(
            leaders=partitions,
            topics=topics,
            trimming=partitions,
            producer_ids=ProducerIds(cluster, node_id),
            pool=ports.pool,
            node_id=node_id,
        )
        host, port = parse_address(config["kafka.listen"], "kafka.listen")
        listener = await KafkaListener.start(
            ports.network,
            host,
            port,
            connections=connections,
            served=served,
            budget=ByteBudget(NODE_BUFFER_BYTES_MAX),
        )
        endpoint = _endpoint(config, listener.address)
        await cluster.propose(
            lambda image: decide_register_broker(
                image,
                node_id,
                directory=parse_id(directory.identity.directory_id),
                endpoints=(endpoint,),
                rack=config.get("broker.rack"),
            )
        )
        supervisor.start("housekeeping", housekeeping.run())
        supervisor.start("connections", _sweep(connections))
    except BaseException:
        await supervisor.stop()
        raise
    return Node(
        ports=ports,
        directory=directory,
        cluster=cluster,
        partitions=partitions,
        disk_home=disk_home,
        housekeeping=housekeeping,
        listener=listener,
        supervisor=supervisor,
        failed=failed,
    )


def _data_path(config: Config) -> str:
    return "/ropewalk" if config.in_memory else config.data_path


def _home(directory: DataDirectory, disk: Disk, ports: Ports) -> Home:
    return Home(directory, LogStarts(directory, ports.pool), GroupCommit(disk, ports.pool, ports.clock))


def _endpoint(config: Config, address: tuple[str, int]) -> Endpoint:
    """What clients are told: the address configured for them, or the one listened on."""
    if config["kafka.advertise"]:
        host, port = parse_address(config["kafka.advertise"], "kafka.advertise")
        return Endpoint(LISTENER, host, port or address[1])
    host, port = address
    return Endpoint(LISTENER, "127.0.0.1" if host in ("0.0.0.0", "::") else host, port)


async def _sweep(connections: Connections) -> None:
    while True:
        await asyncio.sleep(SWEEP_S)
        connections.sweep()


def _on_failure(failed: asyncio.Future[BaseException], name: str, error: BaseException) -> None:
    _log.error("background work failed; the node ends", work=name, error=repr(error))
    if not failed.done():
        failed.set_result(error)
