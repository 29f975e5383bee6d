"""Every API that the internal listener answers, in which versions, who may ask it, and who handles it. No listing here, no API.

`Fetch` is the one for replicas; a client's is not served here. Before a connection has proved the cluster's secret, `introduction`
stands in front of all this.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import Any, Final, Protocol

from ropewalk.base.ports import Pool
from ropewalk.broker.queues.arrivals import Arrivals
from ropewalk.broker.queues.credits import Credits, Find
from ropewalk.broker.reading.fetch_sessions import FetchSessions
from ropewalk.kafka.handlers import api_versions
from ropewalk.kafka.peer.handlers import (
    allocate_producer_ids,
    alter_partition,
    change_queue,
    cluster_health,
    fetch_metadata,
    find_controller,
    forward,
    hurry_fetch,
    queue_credits,
    queue_deliveries,
    queue_look,
    queue_reset,
    queue_send,
    queue_settle,
    queue_ship,
    queue_task,
    register_node,
)
from ropewalk.kafka.peer.handlers.allocate_producer_ids import Allocations
from ropewalk.kafka.peer.handlers.alter_partition import Alterations
from ropewalk.kafka.peer.handlers.change_queue import QueueDecisions
from ropewalk.kafka.peer.handlers.cluster_health import Account
from ropewalk.kafka.peer.handlers.fetch_metadata import MetadataFeed
from ropewalk.kafka.peer.handlers.forward import Deciding
from ropewalk.kafka.peer.handlers.node_heartbeat import Heartbeats, Sessions
from ropewalk.kafka.peer.handlers.register_node import Registrations
from ropewalk.kafka.proxy.routed import ROUTED
from ropewalk.kafka.served import Handle, ServedApi
from ropewalk.runtime.errands import Errands
from ropewalk.wire.api import Api
from ropewalk.wire.messages.add_partitions_to_txn import API as ADD_PARTITIONS_TO_TXN
from ropewalk.wire.messages.api_versions import API as API_VERSIONS
from ropewalk.wire.messages.api_versions import ApiVersion
from ropewalk.wire.messages.fetch import API as FETCH
from ropewalk.wire.messages.list_offsets import API as LIST_OFFSETS
from ropewalk.wire.messages.offset_for_leader_epoch import API as OFFSET_FOR_LEADER_EPOCH
from ropewalk.wire.messages.write_txn_markers import API as WRITE_TXN_MARKERS
from ropewalk.wire.peer.allocate_producer_ids import API as ALLOCATE_PRODUCER_IDS
from ropewalk.wire.peer.alter_partition import API as ALTER_PARTITION
from ropewalk.wire.peer.change_queue import API as CHANGE_QUEUE
from ropewalk.wire.peer.cluster_health import API as CLUSTER_HEALTH
from ropewalk.wire.peer.fetch_metadata import API as FETCH_METADATA
from ropewalk.wire.peer.find_controller import API as FIND_CONTROLLER
from ropewalk.wire.peer.forward import API as FORWARD
from ropewalk.wire.peer.hello import API as HELLO
from ropewalk.wire.peer.hurry_fetch import API as HURRY_FETCH
from ropewalk.wire.peer.node_heartbeat import API as NODE_HEARTBEAT
from ropewalk.wire.peer.prove import API as PROVE
from ropewalk.wire.peer.queue_credits import API as QUEUE_CREDITS
from ropewalk.wire.peer.queue_deliveries import API as QUEUE_DELIVERIES
from ropewalk.wire.peer.queue_look import API as QUEUE_LOOK
from ropewalk.wire.peer.queue_reset import API as QUEUE_RESET
from ropewalk.wire.peer.queue_send import API as QUEUE_SEND
from ropewalk.wire.peer.queue_settle import API as QUEUE_SETTLE
from ropewalk.wire.peer.queue_ship import API as QUEUE_SHIP
from ropewalk.wire.peer.queue_task import API as QUEUE_TASK
from ropewalk.wire.peer.register_node import API as REGISTER_NODE

PEER_APIS: Final[tuple[Api[Any, Any], ...]] = (
    API_VERSIONS,
    FETCH,
    LIST_OFFSETS,
    OFFSET_FOR_LEADER_EPOCH,
    ADD_PARTITIONS_TO_TXN,
    WRITE_TXN_MARKERS,
    HELLO,
    PROVE,
    FIND_CONTROLLER,
    REGISTER_NODE,
    NODE_HEARTBEAT,
    ALTER_PARTITION,
    FETCH_METADATA,
    ALLOCATE_PRODUCER_IDS,
    FORWARD,
    HURRY_FETCH,
    CLUSTER_HEALTH,
    QUEUE_CREDITS,
    QUEUE_DELIVERIES,
    QUEUE_LOOK,
    QUEUE_RESET,
    QUEUE_SEND,
    QUEUE_SETTLE,
    QUEUE_SHIP,
    QUEUE_TASK,
    CHANGE_QUEUE,
)


class Askers(Enum):
    """Which nodes are served an API, by their roles."""

    EVERY_NODE = "every node"
    BROKERS = "brokers"
    """Nodes that hold partitions."""

    def include(self, roles: frozenset[str]) -> bool:
        return self is Askers.EVERY_NODE or "broker" in roles


ASKERS: Final[Mapping[int, Askers]] = {
    # To find a place in the cluster, and to keep it.
    API_VERSIONS.key: Askers.EVERY_NODE,
    HELLO.key: Askers.EVERY_NODE,
    PROVE.key: Askers.EVERY_NODE,
    FIND_CONTROLLER.key: Askers.EVERY_NODE,
    REGISTER_NODE.key: Askers.EVERY_NODE,
    NODE_HEARTBEAT.key: Askers.EVERY_NODE,
    FETCH_METADATA.key: Askers.EVERY_NODE,
    CLUSTER_HEALTH.key: Askers.EVERY_NODE,
    # What any node does for its clients: it passes on what they ask, and hands out producer ids.
    FORWARD.key: Askers.EVERY_NODE,
    CHANGE_QUEUE.key: Askers.EVERY_NODE,
    ALLOCATE_PRODUCER_IDS.key: Askers.EVERY_NODE,
    LIST_OFFSETS.key: Askers.EVERY_NODE,
    QUEUE_CREDITS.key: Askers.EVERY_NODE,
    QUEUE_DELIVERIES.key: Askers.EVERY_NODE,
    QUEUE_LOOK.key: Askers.EVERY_NODE,
    QUEUE_RESET.key: Askers.EVERY_NODE,
    QUEUE_SEND.key: Askers.EVERY_NODE,
    QUEUE_SETTLE.key: Askers.EVERY_NODE,
    QUEUE_TASK.key: Askers.EVERY_NODE,
    # What those who hold partitions ask each other, and of the controller.
    FETCH.key: Askers.BROKERS,
    OFFSET_FOR_LEADER_EPOCH.key: Askers.BROKERS,
    HURRY_FETCH.key: Askers.BROKERS,
    ALTER_PARTITION.key: Askers.BROKERS,
    ADD_PARTITIONS_TO_TXN.key: Askers.BROKERS,
    WRITE_TXN_MARKERS.key: Askers.BROKERS,
    QUEUE_SHIP.key: Askers.BROKERS,
}
"""Of all that is served. What is not named here nobody may ask."""


class Controller(Registrations, Sessions, Alterations, Allocations, Protocol):
    """What the active controller answers to nodes; on others it raises `NotController`."""


class QueueHandlers:
    """What front ends ask of the leaders of queues."""

    def __init__(self, find: Find, credits: Credits, arrivals: Arrivals, pool: Pool) -> None:
        self._arrivals = arrivals
        self._find = find
        self._credits = credits
        self._pool = pool

    def handlers(self) -> dict[int, Handle]:
        return {
            QUEUE_SEND.key: partial(queue_send.handle, find=self._find),
            QUEUE_SETTLE.key: partial(queue_settle.handle, find=self._find),
            QUEUE_SHIP.key: partial(queue_ship.handle, arrivals=self._arrivals),
            QUEUE_TASK.key: partial(queue_task.handle, find=self._find),
            QUEUE_LOOK.key: partial(queue_look.handle, find=self._find, pool=self._pool),
            QUEUE_RESET.key: partial(queue_reset.handle, find=self._find, pool=self._pool),
            QUEUE_CREDITS.key: partial(queue_credits.handle, credits=self._credits),
            QUEUE_DELIVERIES.key: partial(queue_deliveries.handle, credits=self._credits),
        }


def serve_peers(
    *,
    cluster: Deciding,
    controller: Controller,
    feed: MetadataFeed,
    errands: Errands,
    clients: dict[int, ServedApi],
    forwarded: frozenset[int],
    fetch: Handle,
    replica_sessions: FetchSessions,
    add_partitions: Handle,
    write_markers: Handle,
    hears_controller: Callable[[], bool],
    health: Account,
    queues: QueueDecisions,
    has_parted: Callable[[], bool],
    queue_handlers: QueueHandlers,
) -> dict[int, ServedApi]:
    """`clients` is what the client listener serves without forwarding; `forwarded` are the keys that may come from other nodes.
    `fetch` answers replicas, whose sessions are `replica_sessions`; `add_partitions` leaders and `write_markers` coordinators."""
    handlers: dict[int, Handle] = {
        API_VERSIONS.key: partial(api_versions.handle, advertised=advertised(), image=cluster.image),
        FETCH.key: fetch,
        LIST_OFFSETS.key: clients[LIST_OFFSETS.key].handle,
        OFFSET_FOR_LEADER_EPOCH.key: clients[OFFSET_FOR_LEADER_EPOCH.key].handle,
        ADD_PARTITIONS_TO_TXN.key: add_partitions,
        WRITE_TXN_MARKERS.key: write_markers,
        FIND_CONTROLLER.key: partial(
            find_controller.handle,
            image=cluster.image,
            hears_controller=hears_controller,
            has_parted=has_parted,
        ),
        REGISTER_NODE.key: partial(register_node.handle, registrations=controller),
        NODE_HEARTBEAT.key: Heartbeats(controller).handle,
        ALTER_PARTITION.key: partial(alter_partition.handle, alterations=controller),
        FETCH_METADATA.key: partial(fetch_metadata.handle, feed=feed, errands=errands),
        ALLOCATE_PRODUCER_IDS.key: partial(allocate_producer_ids.handle, allocations=controller),
        CLUSTER_HEALTH.key: partial(cluster_health.handle, health=health, errands=errands),
        CHANGE_QUEUE.key: partial(change_queue.handle, queues=queues),
        HURRY_FETCH.key: partial(hurry_fetch.handle, sessions=replica_sessions),
        **queue_handlers.handlers(),
        FORWARD.key: partial(
            forward.handle,
            cluster=cluster,
            forwarded={key: served for key, served in clients.items() if key in forwarded},
            routed={key: served for key, served in clients.items() if key in ROUTED},
        ),
    }
    return {
        api.key: ServedApi(api, api.version_min, api.version_max, handlers[api.key])
        for api in PEER_APIS
        if api.key in handlers  # Hello and Prove belong to a connection's introduction
    }


def advertised() -> tuple[ApiVersion, ...]:
    return tuple(
        ApiVersion(api.key, api.version_min, api.version_max)
        for api in sorted(PEER_APIS, key=lambda api: api.key)
    )
