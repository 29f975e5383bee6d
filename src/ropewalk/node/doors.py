"""The listeners through which clients and other nodes reach a node."""

import asyncio
from functools import partial
from typing import Final

from msgspec import structs

from ropewalk.base.budget import ByteBudget
from ropewalk.base.limits import PEER_BUFFER_BYTES_MAX, PEER_ENVELOPE_BYTES, REPLICA_SESSIONS_MAX
from ropewalk.broker.administration.balancing import Balancing
from ropewalk.broker.administration.leadership import Leadership
from ropewalk.broker.administration.log_directories import LogDirectories
from ropewalk.broker.administration.quota_changes import QuotaChanges
from ropewalk.broker.administration.quotas import ClientQuotas
from ropewalk.broker.dispatch.furthest import FurthestCopy
from ropewalk.broker.peers.peers import PEER_LISTENER
from ropewalk.broker.reading.fetch_sessions import FetchSessions
from ropewalk.broker.reading.leader_throttle import LeaderThrottle
from ropewalk.kafka.apis import SERVED_APIS, serve
from ropewalk.kafka.connections import Connections
from ropewalk.kafka.figures import KafkaFigures
from ropewalk.kafka.forwarded import FORWARDED, forwarding
from ropewalk.kafka.handlers import add_partitions_to_txn, write_txn_markers
from ropewalk.kafka.listener import KafkaListener
from ropewalk.kafka.metadata_encoding import EncodedMetadata
from ropewalk.kafka.peer.apis import serve_peers
from ropewalk.kafka.peer.figures import PeerFigures
from ropewalk.kafka.peer.handlers import fetch as peer_fetch
from ropewalk.kafka.peer.introduction import Door
from ropewalk.kafka.peer.listener import listen_to_peers, peer_connections
from ropewalk.kafka.proxy.backends import Backends
from ropewalk.kafka.proxy.naming import Naming
from ropewalk.kafka.proxy.serve import passing_on
from ropewalk.kafka.restated import without_restated
from ropewalk.kafka.served import Handle, ServedApi
from ropewalk.metadata.records import HTTP_LISTENER, KAFKA_LISTENER, Endpoint
from ropewalk.node.config import Config, parse_address
from ropewalk.node.parts import Parts
from ropewalk.security.cluster_secret import ClusterSecret
from ropewalk.wire.messages.metadata import API as METADATA

SWEEP_S: Final = 5.0


class KafkaAddressRefused(OSError):
    """The address for clients cannot be had. Any other `OSError` of a node that starts is its disk's."""


class PeerAddressRefused(OSError):
    """The address for other nodes cannot be had; the one for clients can."""

    def __str__(self) -> str:
        return str(self.strerror)


class Doors:
    """All of a node's listeners, the HTTP door apart."""

    def __init__(self, kafka: KafkaListener, peer: KafkaListener | None) -> None:
        self.kafka = kafka
        self.peer = peer
        self._all = [kafka] if peer is None else [kafka, peer]

    def stop(self) -> None:
        for listener in self._all:
            listener.stop()

    def close(self) -> None:
        for listener in self._all:
            listener.close()

    def abort(self) -> None:
        for listener in self._all:
            listener.abort()

    def pause(self) -> None:
        for listener in self._all:
            listener.pause()

    def resume(self) -> None:
        for listener in self._all:
            listener.resume()


async def open_doors(parts: Parts) -> Doors:
    """Raises `KafkaAddressRefused` or `PeerAddressRefused` where an address cannot be had."""
    connections = _connections(parts)
    here = _serve(parts)
    served = here
    if parts.forwarding is not None:
        served = forwarding(
            here,
            parts.forwarding,
            partial(without_restated, view=parts.topics.view, node_id=parts.config.node_id),
        )
    if parts.config["kafka.route"] == "proxy":
        served = _pass_on(parts, served)
    metadata = served[METADATA.key]
    served = served | {
        METADATA.key: structs.replace(metadata, handle=EncodedMetadata(metadata.handle).handle)
    }
    budget = parts.budget
    host, port = parse_address(parts.config["kafka.listen"], "kafka.listen")
    parts.instruments.add_source(KafkaFigures(connections, served, budget))
    try:
        kafka = await KafkaListener.start(
            parts.ports.network, host, port, connections=connections, served=served, budget=budget
        )
    except OSError as error:
        raise KafkaAddressRefused(error.errno, error.strerror or str(error)) from error
    endpoint = _endpoint(parts.config, "kafka.advertise", KAFKA_LISTENER, kafka.address)
    parts.endpoints.append(endpoint)
    parts.topics.view.run_as(_running(parts, kafka.address, endpoint))
    if parts.instruments.http_address is not None:
        parts.endpoints.append(_reached(HTTP_LISTENER, parts.instruments.http_address))
    parts.supervisor.start("connections", _sweep(connections, budget))
    try:
        return Doors(kafka, await _listen_to_peers(parts, here))
    except OSError:
        kafka.stop()
        raise


def _pass_on(parts: Parts, served: dict[int, ServedApi]) -> dict[int, ServedApi]:
    links = parts.place.links
    assert links is not None, "a node that is alone has nobody to pass requests on to"
    return passing_on(
        served,
        backends=Backends(links, parts.errands, parts.ports.clock),
        naming=Naming(
            parts.config.node_id,
            lambda: next(endpoint for endpoint in parts.endpoints if endpoint.listener == KAFKA_LISTENER),
        ),
        image=parts.cluster.image,
    )


async def _listen_to_peers(parts: Parts, served: dict[int, ServedApi]) -> KafkaListener | None:
    if parts.config.peer_listen is None:
        return None
    settings = parts.topics.broker_settings
    request_bytes_max = settings.socket_request_max_bytes
    budget = ByteBudget(PEER_BUFFER_BYTES_MAX)
    # Of their own: no number of consumers takes a replica's away.
    replica_sessions = FetchSessions(parts.ports.rng, count_max=REPLICA_SESSIONS_MAX)
    for_peers = serve_peers(
        cluster=parts.cluster,
        controller=parts.registry,
        feed=parts.place.feed,
        errands=parts.errands,
        clients=served,
        forwarded=FORWARDED,
        fetch=_serve_replicas(parts, replica_sessions, budget),
        replica_sessions=replica_sessions,
        add_partitions=partial(
            add_partitions_to_txn.handle_for_leaders,
            transactions=parts.transactions,
            image=parts.cluster.image,
        ),
        write_markers=partial(write_txn_markers.handle, writing=parts.marker_writing),
        hears_controller=lambda: parts.cluster.decides or parts.membership.trouble is None,
        health=parts.cluster_health,
        has_parted=lambda: parts.facts.parted is not None,
    )
    door = Door(
        node_id=parts.config.node_id,
        cluster_id=lambda: parts.cluster.image.cluster_id,
        secret=ClusterSecret(parts.config["cluster.secret"]),
        served=for_peers,
        frame_bytes_max=request_bytes_max + PEER_ENVELOPE_BYTES,
        rng=parts.ports.rng,
        clock=parts.ports.clock,
    )
    connections = peer_connections(
        parts.ports.clock, request_bytes_max=request_bytes_max, idle_ms_max=settings.connections_max_idle_ms
    )
    host, port = parts.config.peer_listen
    try:
        listener = await listen_to_peers(
            parts.ports.network, host, port, connections=connections, door=door, budget=budget
        )
    except OSError as error:
        raise PeerAddressRefused(
            error.errno, f"cannot listen on {parts.config['peer.listen']} for other nodes: {error.strerror}"
        ) from error
    parts.endpoints.append(_endpoint(parts.config, "peer.advertise", PEER_LISTENER, listener.address))
    parts.instruments.add_source(PeerFigures(connections, door, for_peers))
    parts.supervisor.start("connections of nodes", _sweep(connections, budget))
    return listener


def _serve_replicas(parts: Parts, sessions: FetchSessions, budget: ByteBudget) -> Handle:
    topics = parts.topics
    throttle = LeaderThrottle(
        lambda: topics.broker_settings.leader_replication_throttled_rate, parts.ports.clock
    )
    return partial(
        peer_fetch.handle,
        leaders=parts.partitions,
        sessions=sessions,
        pool=parts.ports.pool,
        budget=budget,
        clock=parts.ports.clock,
        bytes_max=parts.topics.broker_settings.fetch_max_bytes,
        throttle=throttle,
    )


def _connections(parts: Parts) -> Connections:
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


def _serve(parts: Parts) -> dict[int, ServedApi]:
    fetch_sessions = FetchSessions(
        parts.ports.rng, count_max=parts.topics.broker_settings.max_incremental_fetch_session_cache_slots
    )
    parts.instruments.add_source(fetch_sessions)
    return serve(
        leaders=parts.partitions,
        topics=parts.topics,
        trimming=parts.partitions,
        producer_ids=parts.producer_ids,
        directories=LogDirectories(parts.partitions, parts.disk, parts.memory, parts.ports.pool),
        leadership=Leadership(
            parts.cluster,
            parts.topics.settings,
            parts.ports.clock,
            furthest=FurthestCopy(
                parts.config.node_id, parts.cluster.image, parts.partitions, parts.place.links
            ),
            errands=parts.errands,
        ),
        balancing=Balancing(parts.cluster, parts.topics.settings, parts.upkeep, parts.ports.clock),
        quota_changes=QuotaChanges(parts.cluster),
        groups=parts.groups,
        transactions=parts.transactions,
        entry=parts.entry,
        marker_writing=parts.marker_writing,
        fetch_sessions=fetch_sessions,
        budget=parts.budget,
        pool=parts.ports.pool,
        clock=parts.ports.clock,
        node_id=parts.config.node_id,
        account=parts.cluster_health.of_this_node,
        heard=parts.registry.followings.heard,
    )


def _running(parts: Parts, address: tuple[str, int], endpoint: Endpoint) -> dict[str, str]:
    """Kafka's settings that say who this node is, which it is configured for under names of its own."""
    config, path = parts.config, parts.place.directory.path
    return {
        "node.id": str(config.node_id),
        "broker.id": str(config.node_id),
        "process.roles": ",".join(role for role in ("broker", "controller") if role in config.roles),
        "listeners": f"PLAINTEXT://{address[0]}:{address[1]}",
        "advertised.listeners": f"PLAINTEXT://{endpoint.host}:{endpoint.port}",
        "log.dir": path,
        "log.dirs": path,
    }


def _endpoint(config: Config, setting: str, listener: str, address: tuple[str, int]) -> Endpoint:
    """What others are told: the address configured for them, or the one listened on."""
    if config[setting]:
        host, port = parse_address(config[setting], setting)
        return Endpoint(listener, host, port or address[1])
    return _reached(listener, address)


def _reached(listener: str, address: tuple[str, int]) -> Endpoint:
    """Whoever listens everywhere is reached at least from here."""
    host, port = address
    return Endpoint(listener, "127.0.0.1" if host in ("0.0.0.0", "::") else host, port)


async def _sweep(connections: Connections, budget: ByteBudget) -> None:
    while True:
        await asyncio.sleep(SWEEP_S)
        connections.sweep()
        connections.relieve(budget)
