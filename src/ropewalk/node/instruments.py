"""What watches a node: figures, health, telemetry, and the HTTP door through which they are read.

Nothing that serves clients depends on any of it.
"""

import asyncio
from collections.abc import Callable, Sequence

from ropewalk.base.metrics import Source
from ropewalk.base.ports import Ports
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.membership import Membership
from ropewalk.broker.coordinators.groups import Groups
from ropewalk.broker.coordinators.markers import Finisher
from ropewalk.broker.coordinators.transactions import Transactions
from ropewalk.broker.partitions.home import Home
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.topics.topics import Topics
from ropewalk.broker.upkeep.housekeeping import Housekeeping
from ropewalk.broker.upkeep.vitals import Vitals
from ropewalk.broker.watching.cluster_health import ClusterHealth
from ropewalk.broker.watching.group_figures import GroupFigures
from ropewalk.broker.watching.health import Health
from ropewalk.broker.watching.node_figures import NodeFigures
from ropewalk.broker.watching.partition_figures import PartitionFigures
from ropewalk.broker.watching.telemetry import Telemetry
from ropewalk.broker.watching.telemetry_samples import Sampler
from ropewalk.broker.watching.transaction_figures import TransactionFigures
from ropewalk.http.routes import Routes
from ropewalk.http1.connections import HttpConnections
from ropewalk.http1.listener import HttpListener
from ropewalk.node.config import Config
from ropewalk.node.http_door import listen_http, sweep
from ropewalk.runtime.tasks import Supervisor


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
        membership: Membership | None,
        metadata_trouble: Callable[[], str | None],
        lack: Callable[[], str | None],
        cluster_health: ClusterHealth,
        home: Home,
        housekeeping: Housekeeping,
        failed: "asyncio.Future[BaseException]",
    ) -> None:
        """No membership for a node that is alone; `home` is the one whose disk is watched; `failed` is done when background work has failed."""
        image, clock, node_id = cluster.image, ports.clock, config.node_id
        vitals = Vitals(ports.process, ports.disk, home.directory.path, ports.pool, clock)
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
        )
        self._cluster_health = cluster_health
        self._config = config
        self._ports = ports
        self._vitals = vitals
        self._quick: list[Source] = [
            self.health,
            vitals,
            home.room,
            NodeFigures(image, partitions, home.commits, housekeeping.compactor, node_id),
        ]
        self._walks: list[Source] = [
            PartitionFigures(
                image,
                partitions,
                node_id,
                clock,
                lambda: topics.broker_settings.transaction_max_timeout_ms,
            ),
            GroupFigures(groups, partitions),
            TransactionFigures(transactions, finisher),
        ]
        self._telemetry: Telemetry | None = None
        if config.telemetry_interval_ms:
            sampler = Sampler(node_id, partitions, groups, self._quick)
            self._telemetry = Telemetry(
                sampler, topics, partitions, vitals, clock, interval_ms=config.telemetry_interval_ms
            )
            self._quick.append(self._telemetry)
        self._http: HttpListener | None = None

    @property
    def http_address(self) -> tuple[str, int] | None:
        return None if self._http is None else self._http.address

    def sources(self) -> Sequence[Source]:
        """Everybody who counts."""
        return (*self._quick, *self._walks)

    def add_source(self, source: Source) -> None:
        """Somebody who counts, and whose figures take no walk over partitions or groups."""
        self._quick.append(source)

    async def open_door(self) -> None:
        """Raises `CannotListen`. A configuration may want no door; then there is none."""
        connections = HttpConnections(self._ports.clock)
        routes = Routes(self.sources, self.health, self._cluster_health, self._vitals)
        self._http = await listen_http(self._config, self._ports.network, connections, routes)
        if self._http is not None:
            self._quick.append(connections)

    def start(self, supervisor: Supervisor) -> None:
        supervisor.start("watch on the node's health", self.health.run())
        if self._http is not None:
            supervisor.start("http connections", sweep(self._http))
        if self._telemetry is not None:
            supervisor.start("telemetry", self._telemetry.run())
        if self._http is not None or self._telemetry is not None:
            supervisor.start("watch on the loop", self._vitals.watch_loop())

    def pause(self) -> None:
        """As a node that hangs."""
        if self._http is not None:
            self._http.pause()

    def resume(self) -> None:
        if self._http is not None:
            self._http.resume()

    def close_door(self) -> None:
        """Once what has been answered is sent."""
        if self._http is not None:
            self._http.stop()

    def abort_door(self) -> None:
        if self._http is not None:
            self._http.abort()
