"""Where a node stands in its cluster: whose facts it has, who decides, and which directory is its own.

    alone            it decides itself, with the metadata in its directory
    local home       as above, and other nodes hear of it through this one
    etcd             it tails the metadata there, and may come to decide
    none             it hears of everything through a controller

What a reader could get wrong
    A directory is marked with the id of its cluster when it is made. Where the cluster is elsewhere, its id has to be learnt
    first, so a new node makes no directory before it has reached a controller.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import structlog

from ropewalk.base.errors import CannotFollow, DirectoryRefused, MetadataUnavailable, RopewalkError
from ropewalk.base.limits import CONTROLLER_TAKE_OVER_RETRY_MS, JOIN_RETRY_MS, REIGN_BYTES
from ropewalk.base.ports import Ports, TlsContexts
from ropewalk.base.reserve import Reserve
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.controller_link import ControllerLink
from ropewalk.broker.cluster.controller_seat import ControllerSeat
from ropewalk.broker.cluster.decisions import Decisions
from ropewalk.broker.cluster.facts import Facts
from ropewalk.broker.cluster.metadata_feed import MetadataFeed, MetadataTail
from ropewalk.broker.cluster.second_opinion import SecondOpinion
from ropewalk.broker.peers.peers import PeerLinks
from ropewalk.broker.peers.seeds import Seeds
from ropewalk.controller.agreement import decide_agreement
from ropewalk.controller.brokers import decide_create_cluster
from ropewalk.controller.levels import decide_first_level
from ropewalk.log.directory import DataDirectory
from ropewalk.log.storage import Storage
from ropewalk.metadata.bounds import USUAL, MetadataBounds
from ropewalk.metadata.log import Holder, MetadataLog
from ropewalk.node.between_nodes import BetweenNodes
from ropewalk.node.config import Config
from ropewalk.node.etcd_contexts import read_etcd_contexts
from ropewalk.node.metadata_home import open_metadata_log
from ropewalk.runtime.reserve import FileReserve
from ropewalk.runtime.tasks import Supervisor

_log = structlog.get_logger()

T = TypeVar("T")


@dataclass(slots=True)
class Place:
    facts: Facts
    cluster: Cluster
    directory: DataDirectory
    log: MetadataLog | None
    decisions: Decisions | None
    """None on a node that never decides; so are `log` and `seat`."""
    seat: ControllerSeat | None
    feed: MetadataFeed
    links: PeerLinks | None
    """None on a node that is alone; so is `link`."""
    link: ControllerLink | None
    tail: MetadataTail | None
    """None on a node that may decide: it hears of the metadata at its home."""

    def metadata_trouble(self) -> str | None:
        """Why this node cannot follow the metadata at present, in a sentence for people; None while it can."""
        if self.facts.parted is not None:
            return self.facts.parted
        if self.log is not None:
            return self.log.trouble
        return None if self.tail is None else self.tail.trouble

    def unheard(self) -> str | None:
        """As `metadata_trouble`, but a home that cannot be written to is heard."""
        if self.facts.parted is not None or self.log is None:
            return self.metadata_trouble()
        return self.log.unheard

    def stop(self) -> None:
        """Send everybody away; call after the background work has ended."""
        if self.decisions is not None:
            self.decisions.stop()
        self.facts.stop()
        if self.log is not None:
            self.log.close()
        if self.links is not None:
            self.links.close()


async def find_place(
    config: Config,
    ports: Ports,
    supervisor: Supervisor,
    facts: Facts,
    between: BetweenNodes | None,
    bounds: MetadataBounds = USUAL,
) -> Place:
    """Returns when the cluster's facts are known as of a moment ago, and go on to be heard of. `between` is None for a node that is alone.

    Raises `DirectoryRefused` where the data belongs to another cluster. Waits for a controller as long as it takes.
    """
    links = None if between is None else _links(config, ports, facts, between)
    seeds = Seeds(ports.network, config.seeds)
    link = None if links is None else ControllerLink(links, facts.image, seeds.addresses)
    if config.seeds:
        await seeds.look_up()
        supervisor.start("seeds", seeds.run())
    directory: DataDirectory | None = None
    log: MetadataLog | None = None
    decisions: Decisions | None = None
    seat: ControllerSeat | None = None
    feed = MetadataFeed(None, facts)
    tail: MetadataTail | None = None
    if config.keeps_metadata or await ports.pool.run(ports.disk.exists, f"{data_path(config)}/identity"):
        directory = await claim_directory(config, ports, cluster_id=None)
    if "controller" in config.roles:
        tls = await read_etcd_contexts(config, ports.pool)
        if tls is not None:
            supervisor.start("certificates for etcd", tls.run())
        log = await _open_home(
            config, ports, None if directory is None else directory.storage.reserve, bounds, tls
        )
        decisions = Decisions(log, facts, ports.clock, bounds)
        await _load(decisions)
        # Only a cluster that nobody has heard of yet is created, and only by who holds nothing of another.
        held_count = 0
        if directory is not None and facts.image.cluster_id is None:
            held_count = len(await ports.pool.run(directory.partitions))
        seat = ControllerSeat(
            config.node_id,
            log,
            facts,
            decisions,
            create_cluster=lambda image: decide_create_cluster(
                image,
                ports.rng,
                None if directory is None else directory.identity.cluster_id,
                partitions_held_count=held_count,
            ),
            settle_settings=partial(
                decide_agreement, configuration=config.broker_overrides, is_alone=config.is_alone
            ),
            settle_level=partial(decide_first_level, software=facts.software),
            others_agree=_nobody_else
            if links is None
            else SecondOpinion(config.node_id, facts.image, links).agrees,
            name_reign=lambda: ports.rng.randbytes(REIGN_BYTES).hex(),
        )
        supervisor.start("hearing the metadata", log.run())
        supervisor.start("metadata", decisions.run())
        supervisor.start("controller", seat.run())
        await seat.settled()
        feed = MetadataFeed(log, facts, bounds)
    else:
        assert link is not None, "a node that does not decide has seeds, and so a secret"
        tail = MetadataTail(config.node_id, facts, link, ports.clock)
        await _catch_up(tail)
        supervisor.start("hearing the metadata", tail.run())
    cluster_id = facts.image.cluster_id
    assert cluster_id is not None, "whoever decides has created the cluster"
    if directory is None:
        directory = await claim_directory(config, ports, cluster_id=cluster_id)
    elif directory.identity.cluster_id != cluster_id:
        raise DirectoryRefused(
            f"{directory.path} belongs to cluster {directory.identity.cluster_id}, this is cluster {cluster_id}; "
            "choose another directory"
        )
    await ports.pool.run(directory.begin)
    if between is not None:
        await between.mark(directory)
    return Place(
        facts=facts,
        cluster=Cluster(facts, decisions),
        directory=directory,
        log=log,
        decisions=decisions,
        seat=seat,
        feed=feed,
        links=links,
        link=link,
        tail=tail,
    )


def data_path(config: Config) -> str:
    return "/ropewalk" if config.in_memory else config.data_path


async def claim_directory(config: Config, ports: Ports, *, cluster_id: str | None) -> DataDirectory:
    """Have the node's directory for this process alone; it is made if it is not there."""
    return await ports.pool.run(_claim, config, ports, cluster_id)


def _claim(config: Config, ports: Ports, cluster_id: str | None) -> DataDirectory:
    """Runs in the pool."""
    path = data_path(config)
    reserve = None
    if ports.disk.can_be_full and not config.in_memory:
        bytes_min = int(config["node.reserve.bytes"])
        reserve = FileReserve(ports.disk, path, ports.rng, bytes_min=bytes_min)
    storage = Storage(ports.disk, reserve=reserve)
    return DataDirectory.claim(storage, path, node_id=config.node_id, rng=ports.rng, cluster_id=cluster_id)


async def _open_home(
    config: Config,
    ports: Ports,
    reserve: Reserve | None,
    bounds: MetadataBounds,
    tls: TlsContexts | None,
) -> MetadataLog:
    return await _until_reached(
        lambda: open_metadata_log(config, ports, data_path(config), reserve, bounds, tls)
    )


async def _load(decisions: Decisions) -> None:
    await _until_reached(decisions.load)


async def _until_reached(attempt: Callable[[], Awaitable[T]]) -> T:
    """Whatever `attempt` comes to, once the home of the metadata can be reached."""
    complaint: str | None = None
    while True:
        try:
            return await attempt()
        except MetadataUnavailable as error:
            if complaint is None:
                complaint = str(error)
                _log.warning("waiting for the metadata", reason=complaint)
            await asyncio.sleep(CONTROLLER_TAKE_OVER_RETRY_MS / 1000)


async def _catch_up(tail: MetadataTail) -> None:
    """Hear all there is, however long it takes to find somebody who tells."""
    complaint: str | None = None
    while True:
        try:
            if not await tail.step(wait_ms=0):
                return
        except CannotFollow:
            raise  # of another version; or put back while it was being read, and the next start reads it from its beginning
        except RopewalkError as error:
            if complaint is None:
                complaint = str(error)
                _log.warning("waiting for a controller", reason=complaint)
            await asyncio.sleep(JOIN_RETRY_MS / 1000)


async def _nobody_else(_holder: Holder) -> bool:
    """There is nobody whose opinion could be asked."""
    return True


def _links(config: Config, ports: Ports, facts: Facts, between: BetweenNodes) -> PeerLinks:
    return PeerLinks(
        ports.network,
        ports.clock,
        ports.rng,
        node_id=config.node_id,
        image=facts.image,
        secret=between.secret,
        cluster_id=lambda: facts.image.cluster_id,
        roles=config.roles,
        channels=between.channels,
    )
