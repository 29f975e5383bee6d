"""The door for other nodes: the table of what they are served, and where it listens."""

from functools import partial

from ropewalk.base.budget import ByteBudget
from ropewalk.base.limits import PEER_BUFFER_BYTES_MAX, PEER_ENVELOPE_BYTES, REPLICA_SESSIONS_MAX
from ropewalk.broker.reading.fetch_sessions import FetchSessions
from ropewalk.broker.reading.leader_throttle import LeaderThrottle
from ropewalk.kafka.forwarded import FORWARDED
from ropewalk.kafka.handlers import add_partitions_to_txn, write_txn_markers
from ropewalk.kafka.listener import KafkaListener
from ropewalk.kafka.peer.apis import QueueHandlers, serve_peers
from ropewalk.kafka.peer.figures import PeerFigures
from ropewalk.kafka.peer.handlers import fetch as peer_fetch
from ropewalk.kafka.peer.introduction import Admission
from ropewalk.kafka.peer.listener import listen_to_peers, peer_connections
from ropewalk.kafka.served import Handle, ServedApi
from ropewalk.metadata.records import PEER_LISTENER
from ropewalk.node.build import Parts
from ropewalk.node.doors import PEER, Door, advertised


class PeerAddressRefused(OSError):
    """The address for other nodes cannot be had; the one for clients can."""

    def __str__(self) -> str:
        return str(self.strerror)


def peer_door(parts: Parts, served: dict[int, ServedApi]) -> Door:
    """`served` is what clients are answered here. Opening the door raises `PeerAddressRefused`."""
    assert parts.between is not None, "a node that is alone has no such door"
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
        queues=parts.queue_changes,
        has_parted=lambda: parts.facts.parted is not None,
        queue_handlers=QueueHandlers(
            parts.queues.by_id, parts.credits, parts.queues.arrivals, parts.ports.pool
        ),
    )
    admission = Admission(
        node_id=parts.config.node_id,
        cluster_id=lambda: parts.cluster.image.cluster_id,
        secret=parts.between.secret,
        served=for_peers,
        frame_bytes_max=request_bytes_max + PEER_ENVELOPE_BYTES,
        rng=parts.ports.rng,
        clock=parts.ports.clock,
        channels=parts.between.channels,
    )
    connections = peer_connections(
        parts.ports.clock, request_bytes_max=request_bytes_max, idle_ms_max=settings.connections_max_idle_ms
    )
    parts.instruments.add_source(PeerFigures(connections, admission, for_peers))

    parts.supervisor.start("connections of other nodes", admission.run())

    async def listen() -> KafkaListener:
        assert parts.config.peer_listen is not None, "a node that is alone has no such door"
        host, port = parts.config.peer_listen
        try:
            return await listen_to_peers(
                parts.ports.network, host, port, connections=connections, admission=admission, budget=budget
            )
        except OSError as error:
            raise PeerAddressRefused(
                error.errno,
                f"cannot listen on {parts.config['peer.listen']} for other nodes: {error.strerror}",
            ) from error

    return Door(PEER, listen, (partial(advertised, parts.config, "peer.advertise", PEER_LISTENER),))


def _serve_replicas(parts: Parts, sessions: FetchSessions, budget: ByteBudget) -> Handle:
    topics = parts.topics
    throttle = LeaderThrottle(
        lambda: topics.broker_settings.leader_replication_throttled_rate, parts.ports.clock
    )
    return partial(
        peer_fetch.handle,
        hosted=parts.partitions,
        sessions=sessions,
        pool=parts.ports.pool,
        budget=budget,
        clock=parts.ports.clock,
        bytes_max=parts.topics.broker_settings.fetch_max_bytes,
        throttle=throttle,
    )
