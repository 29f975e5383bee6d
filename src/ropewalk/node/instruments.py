"""What watches a node: figures, health and telemetry. Doors are elsewhere.

Nothing that serves clients depends on any of it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from pathlib import Path

from ropewalk.base.metrics import Source
from ropewalk.base.ports import Ports
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.membership import Membership
from ropewalk.broker.coordinators.groups import Groups
from ropewalk.broker.coordinators.markers import Finisher
from ropewalk.broker.coordinators.transactions import Transactions
from ropewalk.broker.dispatch.to_queues import ToQueues
from ropewalk.broker.partitions.home import Home
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.queues.queues import Queues
from ropewalk.broker.topics.topics import Topics
from ropewalk.broker.upkeep.housekeeping import Housekeeping
from ropewalk.broker.upkeep.vitals import Vitals
from ropewalk.broker.watching.alerting import Alerting
from ropewalk.broker.watching.audit_copies import AuditCopies
from ropewalk.broker.watching.group_figures import GroupFigures
from ropewalk.broker.watching.health import Health
from ropewalk.broker.watching.lag_ages import LagAges
from ropewalk.broker.watching.node_figures import NodeFigures
from ropewalk.broker.watching.partition_figures import PartitionFigures
from ropewalk.broker.watching.queue_figures import QueueFigures
from ropewalk.broker.watching.telemetry import Telemetry
from ropewalk.broker.watching.telemetry_samples import Sampler
from ropewalk.broker.watching.transaction_figures import TransactionFigures
from ropewalk.node.authorities import Authorities
from ropewalk.node.certificates import Certificates
from ropewalk.node.config import Config
from ropewalk.node.settings import WEBHOOK_SECRET


class Instruments:
    def __init__(
        self,
        config: Config,
        ports: Ports,
        *,
        cluster: Cluster,
        topics: Topics,
        partitions: Partitions,
        groups: Groups,
        transactions: Transactions,
        finisher: Finisher,
        queues: Queues,
        to_queues: ToQueues,
        membership: Membership | None,
        metadata_trouble: Callable[[], str | None],
        lack: Callable[[], str | None],
        vitals: Vitals,
        home: Home,
        housekeeping: Housekeeping,
        certificates: Certificates,
        authorities: Authorities,
        failed: "asyncio.Future[BaseException]",
    ) -> None:
        """No membership for a node that is alone; `home` is the one whose disk is watched; `failed` is done when background work has failed."""
        image, clock, node_id = cluster.image, ports.clock, config.node_id
        self.health = Health(
            partitions,
            groups,
            transactions,
            vitals,
            home.room,
            lambda: repr(failed.result()) if failed.done() else None,
            lambda: topics.broker_settings.transaction_max_timeout_ms,
            membership,
            metadata_trouble,
            lack,
            certificates.trouble,
            authorities.trouble,
        )
        self.vitals = vitals
        self._quick: list[Source] = [
            self.health,
            vitals,
            home.room,
            NodeFigures(image, partitions, home.commits, housekeeping.compactor, node_id),
        ]
        if certificates.are_any:
            self._quick.append(certificates)
        self._lag_ages = LagAges(groups, partitions, ports.pool, clock)
        self._walks: list[Source] = [
            PartitionFigures(
                image,
                partitions,
                node_id,
                clock,
                lambda: topics.broker_settings.transaction_max_timeout_ms,
            ),
            GroupFigures(groups, partitions),
            self._lag_ages,
            TransactionFigures(transactions, finisher),
            QueueFigures(queues, to_queues, clock),
        ]
        self.alerting = self._alerting(config, ports, cluster, topics)
        self._quick.append(self.alerting)
        self._telemetry: Telemetry | None = None
        if config.telemetry_interval_ms:
            sampler = Sampler(node_id, partitions, groups, self._quick)
            self._telemetry = Telemetry(
                sampler, topics, partitions, vitals, clock, interval_ms=config.telemetry_interval_ms
            )
            self._quick.append(self._telemetry)

        self._audit: AuditCopies | None = None
        if config.copies_audit:
            self._audit = AuditCopies(node_id, cluster, topics, partitions, clock, ports.pool)
            self._quick.append(self._audit)

    def _alerting(self, config: Config, ports: Ports, cluster: Cluster, topics: Topics) -> Alerting:
        return Alerting(
            config.node_id,
            cluster,
            lambda: topics.broker_settings,
            self.vitals,
            quick=lambda: self._quick,
            walks=lambda: self._walks,
            network=ports.network,
            pool=ports.pool,
            clock=ports.clock,
            rng=ports.rng,
            read_secrets=partial(_read_secrets, config[WEBHOOK_SECRET]),
        )

    def sources(self) -> Sequence[Source]:
        """Everybody who counts."""
        return (*self._quick, *self._walks)

    def add_source(self, source: Source) -> None:
        """Somebody who counts, and whose figures take no walk over partitions or groups."""
        self._quick.append(source)

    def works(self, *, is_asked: bool) -> Iterator[tuple[str, Callable[[], Coroutine[object, object, None]]]]:
        """What must run, by name. `is_asked` where there is a door through which figures can be read."""
        yield "watch on the node's health", self.health.run
        if self._telemetry is not None:
            yield "telemetry", self._telemetry.run
        if self._audit is not None:
            yield "copies of audit events", self._audit.run
        if is_asked or self._telemetry is not None:
            yield "watch on the loop", self.vitals.watch_loop
        if is_asked:
            yield "ages of what groups read next", self._lag_ages.run
            yield "watch for alerts", self.alerting.run
            yield "news of alerts", self.alerting.run_telling


def _read_secrets(path: str) -> str:
    """Blocks."""
    if not path:
        raise ValueError(f"{WEBHOOK_SECRET} names no file with a secret to sign with")
    return Path(path).expanduser().read_text()
