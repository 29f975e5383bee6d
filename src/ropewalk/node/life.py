"""A node's life: it starts, serves, and is stopped in order or killed.

    start   find its place in the cluster, open the HTTP door, open the partitions, listen, then join
    stop    let those who route to it look elsewhere, answer those who wait, give up leadership, listen no more, refuse writes,
            make everything durable, say that it was clean
    kill    end where it stands, as a crash would, inside a process that lives on

What a reader could get wrong
    A node whose background work fails does not stop in order: `failed` is set, and the process ends as after a
    crash, because what failed is usually the disk and nothing may be claimed about it any more. That holds as well for
    what fails while the node is being stopped.
    To cancel work does not end what it has begun in the disk pool. An orderly stop lets that come to its end, and hears its errors.
    Records that are committed while the partitions are being opened are followed afterwards: following begins where the image
    stood before, and to follow a record twice does no harm.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

import structlog

from ropewalk.base.budget import ByteBudget
from ropewalk.base.errors import RopewalkError, StorageFailed
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import DRAIN_ANSWERS_MS_MAX, LEAVE_MS_MAX
from ropewalk.base.metrics import Source
from ropewalk.base.ports import Ports
from ropewalk.base.version import VERSION
from ropewalk.broker.administration.balancing import Balancing
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.facts import Facts
from ropewalk.broker.dispatch.to_queues import ToQueues
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.queues.queues import Queues
from ropewalk.broker.topics.queues import QueueChanges
from ropewalk.broker.upkeep.housekeeping import Housekeeping
from ropewalk.broker.watching.health import Stage
from ropewalk.log.directory import Held
from ropewalk.metadata.bounds import USUAL, MetadataBounds
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import Fact, LevelChanged, PartitionChanged
from ropewalk.metadata.settings.applied import BrokerSettings
from ropewalk.node.audit_file import open_audit
from ropewalk.node.authorities import read_authorities
from ropewalk.node.background import COPYING, Moment, begin
from ropewalk.node.between_nodes import read_between_nodes
from ropewalk.node.build import Parts, build
from ropewalk.node.certificates import read_certificates
from ropewalk.node.config import Config
from ropewalk.node.console_door import console_of
from ropewalk.node.doors import HTTP, KAFKA, PEER, SQS
from ropewalk.node.http_door import http_door
from ropewalk.node.kafka_door import kafka_door, serve_here
from ropewalk.node.peer_door import peer_door
from ropewalk.node.place import data_path, find_place
from ropewalk.node.sqs_door import sqs_door
from ropewalk.runtime.steps import turn
from ropewalk.runtime.tasks import Supervisor, unless

_log = structlog.get_logger()

_INTERRUPTIONS: Final = (RopewalkError, OSError, asyncio.CancelledError)
"""What may end a start half way. After a bug nothing is tidied up."""


class Node:
    """A running node. Made by `start`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @property
    def node_id(self) -> NodeId:
        return self._parts.config.node_id

    @property
    def kafka_address(self) -> tuple[str, int]:
        """That of the first listener."""
        address = self._parts.doors.address(KAFKA)
        assert address is not None, "asked of a node with a door for clients"
        return address

    @property
    def kafka_addresses(self) -> Sequence[tuple[str, int]]:
        """One for each listener; empty where the node has no door for clients."""
        return self._parts.doors.addresses(KAFKA)

    @property
    def peer_address(self) -> tuple[str, int] | None:
        """None where the node is alone."""
        return self._parts.doors.address(PEER)

    @property
    def http_address(self) -> tuple[str, int] | None:
        """None where the node has no HTTP door."""
        return self._parts.doors.address(HTTP)

    @property
    def sqs_address(self) -> tuple[str, int] | None:
        """None where the node has no SQS door."""
        return self._parts.doors.address(SQS)

    @property
    def cluster_id(self) -> str:
        return self._parts.place.directory.identity.cluster_id

    @property
    def failed(self) -> asyncio.Future[BaseException]:
        """Done, with the error, when the node can no longer be trusted: end the process."""
        return self._parts.failed

    @property
    def budget(self) -> ByteBudget:
        return self._parts.budget

    @property
    def image(self) -> Image:
        """The cluster as this node knows it."""
        return self._parts.cluster.image

    @property
    def queue_changes(self) -> QueueChanges:
        return self._parts.queue_changes

    @property
    def broker_settings(self) -> BrokerSettings:
        """Those in force here."""
        return self._parts.topics.broker_settings

    @property
    def balancing(self) -> Balancing:
        return self._parts.balancing

    @property
    def decides(self) -> bool:
        """Whether it is the active controller, as far as it knows."""
        return self._parts.cluster.decides

    @property
    def left_service(self) -> str | None:
        """Why it is out of service until it is started again; None where it is not."""
        return self._parts.facts.parted

    @property
    def partitions(self) -> Partitions:
        return self._parts.partitions

    @property
    def queues(self) -> Queues:
        """Those that are led here."""
        return self._parts.queues

    @property
    def to_queues(self) -> ToQueues:
        """The way to the leaders of queues, wherever they are."""
        return self._parts.to_queues

    @property
    def cluster(self) -> Cluster:
        return self._parts.cluster

    @property
    def housekeeping(self) -> Housekeeping:
        return self._parts.housekeeping

    def sources(self) -> Sequence[Source]:
        """Everybody who counts, for the metrics."""
        return self._parts.instruments.sources()

    def read_files_again(self) -> None:
        """Files of certificates or secrets have changed; they are looked at every few seconds anyway."""
        self._parts.certificates.look_now()
        if self._parts.between is not None:
            self._parts.between.look_now()

    def pause(self) -> None:
        """Hang: clients stay connected and hear nothing until `resume`. Time and background work go on."""
        self._parts.doors.pause()

    def resume(self) -> None:
        self._parts.doors.resume()

    def on_clock_moved(self) -> None:
        """Its clock has been moved ahead by more than timers know."""
        self._parts.groups.on_clock_moved()
        self._parts.transactions.on_clock_moved()
        self._parts.queues.on_clock_moved()

    async def kill(self) -> None:
        """As a crash would: nobody is answered, nothing is written any more, nothing is said to be clean.

        Calls that the disk pool has begun run to their end: stop the pool, then close the disk. Also good
        after `stop`, for connections whose clients do not take their last answers.
        """
        parts = self._parts
        parts.doors.stop()
        parts.doors.abort()
        await self._end_work()
        parts.partitions.end()

    async def stop(self) -> None:
        """In order: others lead, everything acknowledged is on disk and the next start is quick.

        Raises what keeps it from that, `SyncFailed` among others; the node has ended as after a crash then, and so must the process.
        """
        parts = self._parts
        parts.instruments.health.stage = Stage.STOPPING
        if parts.audit is not None:
            parts.audit.on_stopping(VERSION)
        await asyncio.sleep(parts.config.drain_ms / 1000)  # whoever routes to it looks elsewhere meanwhile
        await parts.doors.serving.hasten(within_ms=DRAIN_ANSWERS_MS_MAX)
        await parts.queues.write_down(whole=True)
        if not parts.config.is_alone:
            await parts.membership.leave(timeout_ms=LEAVE_MS_MAX)
        parts.doors.serving.stop()
        await parts.queues.write_down(whole=False)
        parts.partitions.refuse()
        if parts.audit is not None:
            await parts.audit.finish()
        await self._end_work()
        try:
            await self._close_logs()
        finally:
            parts.partitions.end()
            parts.doors.stop()
            parts.doors.close()
            parts.ports.disk.close()

    async def _end_work(self) -> None:
        """All that runs in the background, and then those who waited for it."""
        parts = self._parts
        await parts.supervisor.stop(first=(COPYING,))
        parts.place.stop()
        parts.groups.stop()
        parts.transactions.stop()
        parts.credits.stop()
        parts.queues.stop()
        parts.disk.stop()

    async def _close_logs(self) -> None:
        """Make everything durable, release those who wait for that, and say that it was clean, if it was."""
        parts = self._parts
        await parts.ports.pool.drain()
        await parts.ports.disk.drain()
        for partition in parts.partitions:
            if not partition.in_memory and partition.log.dirty:
                parts.disk.commits.note(partition)
        await parts.disk.commits.commit()
        if parts.failed.done():
            raise StorageFailed(f"the node failed while it was stopping: {parts.failed.result()!r}")
        parts.partitions.end()
        parts.doors.serving.close()
        await turn()  # those who were sent away hear of it now
        await parts.partitions.close()


async def start(
    config: Config, ports: Ports, facts: Facts | None = None, bounds: MetadataBounds = USUAL
) -> Node:
    """Raises `RopewalkError` for what the user can put right, `OSError` where the address cannot be had.

    `facts` is for whoever wants to see what the node is told of the cluster from the first record on, `bounds` for whoever wants
    to see it in small pieces.
    """
    failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
    supervisor = Supervisor(partial(_on_failure, failed))
    try:
        return await unless(failed, _start(config, ports, supervisor, failed, facts or Facts(), bounds))
    except _INTERRUPTIONS:
        await supervisor.stop(first=(COPYING,))
        ports.disk.close()
        raise


async def _start(
    config: Config,
    ports: Ports,
    supervisor: Supervisor,
    failed: "asyncio.Future[BaseException]",
    facts: Facts,
    bounds: MetadataBounds,
) -> Node:
    """The HTTP door comes as soon as there is anything to tell: how far the rest is can be asked there."""
    certificates = await read_certificates(config, ports)  # first: whoever finds a place may wait for long
    authorities = await read_authorities(config, ports)
    between = None
    if not config.is_alone:
        between = await read_between_nodes(config, ports, facts.image, certificates, data_path(config))
        certificates.tell_also(between.trouble)
        for warning in between.warnings():
            _log.warning(warning)
    audit = await open_audit(config, ports.clock, ports.pool)
    place = await find_place(config, ports, supervisor, facts, between, bounds)
    parts = build(config, ports, place, supervisor, failed, certificates, authorities, between, audit)
    if audit is not None:
        audit.on_started(VERSION)
    console = console_of(parts)
    door = await http_door(parts, console)
    if door is not None:
        await parts.doors.open(door, supervisor)
    if console is not None:
        supervisor.start("console", console.run())
    try:
        await _begin_to_serve(parts)
    except _INTERRUPTIONS:
        parts.doors.stop()
        parts.doors.close()
        raise
    begin(parts, Moment.WATCHED)
    parts.instruments.health.stage = Stage.SERVING
    return Node(parts)


async def _begin_to_serve(parts: Parts) -> None:
    begin(parts, Moment.OPENING)
    held = await parts.ports.pool.run(parts.place.directory.partitions)
    parts.facts.begin()
    await parts.partitions.open_all(held)
    await parts.groups.follow(())
    await parts.transactions.follow(())
    await parts.queues.follow(())
    parts.facts.follow_with(partial(_follow, parts))
    begin(parts, Moment.FOLLOWING)
    parts.instruments.health.stage = Stage.JOINING
    here = serve_here(parts)
    clients = await kafka_door(parts, here)
    if clients is not None:
        await parts.doors.open(clients, parts.supervisor)
    if parts.config.peer_listen is not None:
        await parts.doors.open(peer_door(parts, here), parts.supervisor)
    queues = sqs_door(parts)
    if queues is not None:
        await parts.doors.open(queues, parts.supervisor)
    await _join(parts, held)
    begin(parts, Moment.IN_SERVICE)


async def _join(parts: Parts, held: Sequence[Held]) -> None:
    """Returns when the node is in service. `held` is what was in its directory."""
    membership = parts.membership
    begin(parts, Moment.JOINING)
    await membership.join(parts.account)
    begin(parts, Moment.REGISTERED)
    await parts.facts.reached(membership.broker_epoch + 1)
    _report_ignored_settings(parts)
    if parts.place.seat is not None:
        parts.instruments.add_source(parts.upkeep)
    begin(parts, Moment.SETTLED)
    if parts.config.is_alone:
        return
    await parts.partitions.remove_strays(held)
    begin(parts, Moment.AMONG_OTHERS)
    if parts.fetchers is not None:
        await parts.fetchers.follow(None)
    begin(parts, Moment.COPYING)
    await membership.in_service()


def _report_ignored_settings(parts: Parts) -> None:
    for name, here, cluster in parts.topics.view.ignored():
        _log.warning(
            "this node's configuration differs from the cluster's; the cluster's value counts, and is changed for all brokers",
            setting=name,
            here=here,
            cluster=cluster,
        )


async def _follow(parts: Parts, records: Sequence[Fact]) -> None:
    """First the partitions, then what lives on them."""
    parts.access.follow(records)
    if parts.between is not None and any(isinstance(record, LevelChanged) for record in records):
        await parts.between.mark(parts.place.directory)
    opened = await parts.partitions.follow(records)
    if parts.fetchers is not None:
        await parts.fetchers.follow(None if parts.facts.parted is not None else records, opened)
    await parts.groups.follow(records)
    await parts.transactions.follow(records)
    await parts.queues.follow(records)
    if any(isinstance(record, PartitionChanged) for record in records):
        parts.to_queues.on_leaders_changed()


def _on_failure(failed: asyncio.Future[BaseException], name: str, error: BaseException) -> None:
    _log.error("background work failed; the node ends", work=name, error=repr(error), exc_info=error)
    if not failed.done():
        failed.set_result(error)
