"""Every API that the internal listener answers, in which versions, and who handles it. No listing here, no API.

`Fetch` is the one for replicas; a client's is not served here. Before a connection has proved the cluster's secret, `introduction`
stands in front of all this.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from ropewalk.broker.reading.fetch_sessions import FetchSessions
from ropewalk.kafka.handlers import api_versions
from ropewalk.kafka.peer.handlers import (
    allocate_producer_ids,
    alter_partition,
    cluster_health,
    fetch_metadata,
    find_controller,
    forward,
    hurry_fetch,
    register_node,
)
from ropewalk.kafka.peer.handlers.allocate_producer_ids import Allocations
from ropewalk.kafka.peer.handlers.alter_partition import Alterations
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
from ropewalk.wire.peer.cluster_health import API as CLUSTER_HEALTH
from ropewalk.wire.peer.fetch_metadata import API as FETCH_METADATA
from ropewalk.wire.peer.find_controller import API as FIND_CONTROLLER
from ropewalk.wire.peer.forward import API as FORWARD
from ropewalk.wire.peer.hello import API as HELLO
from ropewalk.wire.peer.hurry_fetch import API as HURRY_FETCH
from ropewalk.wire.peer.node_heartbeat import API as NODE_HEARTBEAT
from ropewalk.wire.peer.prove import API as PROVE
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
)


class Controller(Registrations, Sessions, Alterations, Allocations, Protocol):
    """What the active controller answers to nodes; on others it raises `NotController`."""


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
    has_parted: Callable[[], bool],
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
        HURRY_FETCH.key: partial(hurry_fetch.handle, sessions=replica_sessions),
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
