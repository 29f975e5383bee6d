"""Everything a node consists of, made by hand and not yet running."""

import asyncio
from dataclasses import dataclass
from functools import partial

from ropewalk.base.budget import ByteBudget
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import (
    CONNECTION_GRACE_MS,
    ERRANDS_MAX,
    NODE_BUFFER_BYTES_MAX,
    PROCESS_BYTES,
    TAKE_OVER_GRACE_MS,
)
from ropewalk.base.ports import Ports
from ropewalk.broker.access import Access
from ropewalk.broker.administration.balancing import Balancing
from ropewalk.broker.administration.rounds import Upkeep
from ropewalk.broker.administration.scale_webhook import ScaleWebhook
from ropewalk.broker.bearers import Bearers
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.facts import Facts
from ropewalk.broker.cluster.forwarding import Forwarding
from ropewalk.broker.cluster.knowledge import Knowledge
from ropewalk.broker.cluster.membership import Membership
from ropewalk.broker.cluster.producer_ids import ProducerIds
from ropewalk.broker.cluster.registry import Registry
from ropewalk.broker.cluster.to_controller import ToController
from ropewalk.broker.coordinators.groups import Groups
from ropewalk.broker.coordinators.marker_writing import MarkerWriting
from ropewalk.broker.coordinators.markers import Finisher
from ropewalk.broker.coordinators.transactions import Transactions
from ropewalk.broker.copying.fetchers import Fetchers
from ropewalk.broker.dispatch.dispatch import Dispatch
from ropewalk.broker.dispatch.ends import Ends
from ropewalk.broker.dispatch.far_queues import FarQueues
from ropewalk.broker.dispatch.in_flight import InFlight
from ropewalk.broker.dispatch.to_queues import ToQueues
from ropewalk.broker.dispatch.transaction_entry import TransactionEntry
from ropewalk.broker.hosting.steady_time import SteadyTime
from ropewalk.broker.partitions.believed_clock import BelievedClock
from ropewalk.broker.partitions.home import Home
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.passwords import Passwords
from ropewalk.broker.queues.credits import Credits
from ropewalk.broker.queues.erasing import Erasing
from ropewalk.broker.queues.expiring import Expiring
from ropewalk.broker.queues.queues import Queues
from ropewalk.broker.topics.queues import QueueChanges
from ropewalk.broker.topics.topics import Topics
from ropewalk.broker.upkeep.housekeeping import Housekeeping
from ropewalk.broker.upkeep.load_meter import LoadMeter
from ropewalk.broker.upkeep.vitals import Vitals
from ropewalk.broker.upkeep.wholeness import Wholeness
from ropewalk.broker.watching.audit_journal import AuditJournal
from ropewalk.broker.watching.cluster_health import ClusterHealth
from ropewalk.broker.watching.membership_figures import MembershipFigures
from ropewalk.controller.sessions import Sessions
from ropewalk.kafka.authentication import Authentication
from ropewalk.kafka.exchanges import Exchanges
from ropewalk.log.directory import DataDirectory
from ropewalk.log.storage import Storage
from ropewalk.node.account import Account
from ropewalk.node.authorities import Authorities
from ropewalk.node.authorizer import policy_of
from ropewalk.node.between_nodes import BetweenNodes
from ropewalk.node.certificates import Certificates
from ropewalk.node.config import Config
from ropewalk.node.differing_settings import differing_settings
from ropewalk.node.doors import Doors
from ropewalk.node.exposure import warnings_of
from ropewalk.node.instruments import Instruments
from ropewalk.node.place import Place
from ropewalk.runtime.errands import Errands
from ropewalk.runtime.memory_disk import MemoryDisk
from ropewalk.runtime.tasks import Supervisor


@dataclass(slots=True)
class Parts:
    """Everything, with the doors that are open by now."""

    config: Config
    ports: Ports
    place: Place
    topics: Topics
    access: Access
    registry: Registry
    upkeep: Upkeep
    balancing: Balancing
    webhook: ScaleWebhook
    meter: LoadMeter
    controller: ToController
    membership: Membership
    account: Account
    knowledge: Knowledge
    cluster_health: ClusterHealth
    wholeness: Wholeness
    errands: Errands
    forwarding: Forwarding | None
    """None on a node that is alone."""
    disk: Home
    memory: Home
    partitions: Partitions
    fetchers: Fetchers | None
    """None on a node that is alone."""
    groups: Groups
    producer_ids: ProducerIds
    marker_writing: MarkerWriting
    finisher: Finisher
    transactions: Transactions
    queues: Queues
    erasing: Erasing
    expiring: Expiring
    in_flight: InFlight
    credits: Credits
    to_queues: ToQueues
    dispatch: Dispatch
    entry: TransactionEntry
    queue_changes: QueueChanges
    authentication: Authentication
    audit: AuditJournal | None
    """None where nothing is written to a file."""
    housekeeping: Housekeeping
    instruments: Instruments
    budget: ByteBudget
    supervisor: Supervisor
    failed: asyncio.Future[BaseException]
    doors: Doors
    """Those that are open: none before the node starts."""
    certificates: Certificates
    authorities: Authorities
    bearers: Bearers
    """Whose tokens count at doors that speak HTTP."""
    passwords: Passwords
    between: BetweenNodes | None
    """None on a node that is alone."""

    @property
    def cluster(self) -> Cluster:
        return self.place.cluster

    @property
    def facts(self) -> Facts:
        return self.place.facts


def build(
    config: Config,
    ports: Ports,
    place: Place,
    supervisor: Supervisor,
    failed: "asyncio.Future[BaseException]",
    certificates: Certificates,
    authorities: Authorities,
    between: BetweenNodes | None,
    audit: AuditJournal | None,
) -> Parts:
    """From what knows nobody to what knows everybody: nothing is given a name that comes further down."""
    node_id, cluster, clock = config.node_id, place.cluster, BelievedClock(ports.clock)
    topics = Topics(cluster, node_id, config.broker_overrides, ports.rng, ports.clock)
    errands = Errands(count_max=ERRANDS_MAX)
    forwarding = None if place.link is None else Forwarding(cluster, place.link, errands, clock)
    if forwarding is not None:
        topics.forward_with(forwarding)
    registry = _registry(config, ports, place, topics)
    controller = ToController(cluster, clock, registry, place.link)
    membership = Membership(
        node_id,
        controller,
        place.facts,
        ports.clock,  # whether the wall clock is right is for others to see
        interval_ms=int(config["node.heartbeat.interval.ms"]),
        session_timeout_ms=int(config["node.session.timeout.ms"]),
        leave_directory=partial(ports.pool.run, place.directory.become_another, ports.rng),
        on_controller_lost=_nobody_else if place.seat is None else place.seat.on_connection_lost,
        on_controller_back=_nobody if place.seat is None else place.seat.on_connection_back,
    )
    disk = Home(place.directory, ports.pool, clock)
    in_memory = DataDirectory.open(Storage(MemoryDisk()), "/memory", node_id=node_id, rng=ports.rng)
    memory = Home(in_memory, ports.pool, clock)
    partitions = Partitions(
        image=cluster.image,
        settings=topics.settings,
        node_id=node_id,
        disk=disk,
        memory=memory,
        pool=ports.pool,
        clock=clock,
        may_lead=lambda: config.is_alone or membership.is_in_image,
        is_withdrawn=lambda: place.facts.parted is not None,
        is_out_of_touch=lambda: not config.is_alone and membership.is_out_of_touch,
    )
    fetchers = None
    if place.links is not None:
        fetchers = Fetchers(
            node_id,
            image=cluster.image,
            settings=topics.settings,
            partitions=partitions,
            disk=disk,
            links=place.links,
            pool=ports.pool,
            clock=clock,
        )
    vitals = Vitals(ports.process, ports.disk, place.directory.path, ports.pool, clock)
    meter = LoadMeter(partitions, vitals, clock)
    upkeep = Upkeep(node_id, cluster, topics, registry.sessions, meter, clock, is_alone=config.is_alone)
    housekeeping = Housekeeping(cluster, partitions, disk, memory, topics.view, ports.pool, clock)
    process = ports.rng.randbytes(PROCESS_BYTES)
    groups = Groups(topics, partitions, pool=ports.pool, clock=clock, rng=ports.rng)
    producer_ids = ProducerIds(controller, membership, errands)
    marker_writing = MarkerWriting(partitions, groups)
    dispatch = Dispatch(node_id, cluster.image, clock, place.links)
    finisher = Finisher(marker_writing, cluster.image, dispatch)
    ends = Ends(partitions, dispatch, errands)
    passwords = Passwords(cluster.image.users, rng=ports.rng, pool=ports.pool, clock=ports.clock)
    authentication = Authentication(
        settings=lambda: topics.broker_settings,
        exchanges=Exchanges(passwords, rng=ports.rng),
        clock=ports.clock,
    )
    queue_changes = QueueChanges(cluster, topics.settings, forwarding, ends.of, ports.rng, ports.clock)
    transactions = Transactions(topics, partitions, producer_ids, finisher, pool=ports.pool, clock=clock)
    queues = Queues(
        image=cluster.image,
        settings=topics.settings,
        partitions=partitions,
        pool=ports.pool,
        clock=clock,
        time=SteadyTime(clock),
        producer_ids=producer_ids,
        errands=errands,
    )
    far_queues = FarQueues(dispatch, errands, ports.rng)
    queues.ship_with(far_queues.ship)
    knowledge = Knowledge(
        place.facts,
        None if config.is_alone else membership,
        place.unheard,
        clock,
        session_timeout_ms=int(config["node.session.timeout.ms"]),
    )
    to_queues = ToQueues(queues, far_queues, dispatch, ports.pool)
    queues.tasks.connect(to_queues.share, queue_changes.end_move_task)
    instruments = Instruments(
        config,
        ports,
        cluster=cluster,
        topics=topics,
        partitions=partitions,
        groups=groups,
        transactions=transactions,
        finisher=finisher,
        queues=queues,
        to_queues=to_queues,
        membership=None if config.is_alone else membership,
        metadata_trouble=place.metadata_trouble,
        lack=lambda: knowledge.lack,
        vitals=vitals,
        home=disk,
        housekeeping=housekeeping,
        certificates=certificates,
        authorities=authorities,
        failed=failed,
    )
    cluster_health = ClusterHealth(
        node_id,
        cluster,
        topics.settings,
        registry.reports,
        knowledge,
        place.link,
        errands,
        clock,
        complaints=lambda: instruments.health.complaints,
        alerts=lambda: instruments.alerting.alerts(),
        warnings=lambda: (
            *warnings_of(config),
            *certificates.warnings(),
            *(() if between is None else between.warnings()),
            *differing_settings(topics.view),
        ),
    )
    instruments.add_source(cluster_health)
    if not config.is_alone:
        instruments.add_source(MembershipFigures(cluster, membership, registry, place.metadata_trouble))
    instruments.add_source(partitions.in_sync)
    if fetchers is not None:
        instruments.add_source(fetchers)
    doors, wholeness = Doors(), Wholeness(node_id, cluster.image, partitions, clock)
    account = Account(
        config=config,
        clock=ports.clock,
        place=place,
        doors=doors,
        wholeness=wholeness,
        meter=meter,
        health=instruments.health,
        process=process,
    )
    access = Access(cluster.image, policy_of(config))
    if audit is not None:
        authentication.tell(audit)
        access.tell(audit.on_denied)
        instruments.add_source(audit)
    return Parts(
        config=config,
        ports=ports,
        place=place,
        topics=topics,
        access=access,
        registry=registry,
        upkeep=upkeep,
        balancing=Balancing(cluster, topics.settings, upkeep, ports.clock),
        webhook=ScaleWebhook(cluster, topics, upkeep, ports.network, ports.pool, clock),
        meter=meter,
        controller=controller,
        membership=membership,
        account=account,
        knowledge=knowledge,
        cluster_health=cluster_health,
        wholeness=wholeness,
        errands=errands,
        forwarding=forwarding,
        disk=disk,
        memory=memory,
        partitions=partitions,
        fetchers=fetchers,
        groups=groups,
        producer_ids=producer_ids,
        marker_writing=marker_writing,
        finisher=finisher,
        transactions=transactions,
        queues=queues,
        erasing=Erasing(queues, partitions),
        expiring=Expiring(queues, ports.pool),
        in_flight=InFlight(queues, to_queues),
        credits=Credits(queues.by_id),
        to_queues=to_queues,
        dispatch=dispatch,
        entry=TransactionEntry(transactions, dispatch, errands, clock),
        queue_changes=queue_changes,
        authentication=authentication,
        audit=audit,
        housekeeping=housekeeping,
        instruments=instruments,
        budget=ByteBudget(NODE_BUFFER_BYTES_MAX),
        supervisor=supervisor,
        failed=failed,
        doors=doors,
        certificates=certificates,
        authorities=authorities,
        bearers=authorities.bearers(cluster.image, ports.clock),
        passwords=passwords,
        between=between,
    )


def _registry(config: Config, ports: Ports, place: Place, topics: Topics) -> Registry:
    registry = Registry(
        config.node_id,
        place.cluster,
        topics.settings,
        Sessions(
            session_timeout_ms=int(config["node.session.timeout.ms"]),
            connection_grace_ms=CONNECTION_GRACE_MS,
            take_over_grace_ms=TAKE_OVER_GRACE_MS,
        ),
        ports.clock,
        is_alone=config.is_alone,
    )
    if place.seat is not None:
        place.seat.on_seated(registry.on_seated)
    return registry


def _nobody() -> None:
    """As below, and it has nothing to forget."""


def _nobody_else(_controller: NodeId) -> None:
    """A node that cannot decide waits for one that can."""
