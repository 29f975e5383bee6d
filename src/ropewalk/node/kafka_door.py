"""The door for clients: the table of what is served, and where it listens."""

from functools import partial

from msgspec import structs

from ropewalk.broker.administration.leadership import Leadership
from ropewalk.broker.administration.levels import Levels
from ropewalk.broker.administration.log_directories import LogDirectories
from ropewalk.broker.administration.quota_changes import QuotaChanges
from ropewalk.broker.administration.quotas import ClientQuotas
from ropewalk.broker.dispatch.furthest import FurthestCopy
from ropewalk.broker.reading.fetch_sessions import FetchSessions
from ropewalk.kafka.apis import SERVED_APIS, serve
from ropewalk.kafka.connections import Connections
from ropewalk.kafka.figures import KafkaFigures
from ropewalk.kafka.forwarded import forwarding
from ropewalk.kafka.listener import KafkaListener
from ropewalk.kafka.metadata_encoding import EncodedMetadata
from ropewalk.kafka.proxy.backends import Backends
from ropewalk.kafka.proxy.naming import Naming
from ropewalk.kafka.proxy.serve import passing_on
from ropewalk.kafka.restated import without_restated
from ropewalk.kafka.served import ServedApi
from ropewalk.metadata.records import KAFKA_LISTENER, Endpoint
from ropewalk.node.build import Parts
from ropewalk.node.config import parse_address
from ropewalk.node.doors import KAFKA, Door, advertised
from ropewalk.wire.messages.metadata import API as METADATA


class KafkaAddressRefused(OSError):
    """The address for clients cannot be had. Any other `OSError` of a node that starts is its disk's."""


def kafka_door(parts: Parts, here: dict[int, ServedApi]) -> Door:
    """`here` is what this node can answer itself. Opening the door raises `KafkaAddressRefused`."""
    served = _with_others(parts, here)
    connections = _connections(parts)
    parts.instruments.add_source(KafkaFigures(connections, served, parts.budget))
    endpoint = partial(advertised, parts.config, "kafka.advertise", KAFKA_LISTENER)

    async def listen() -> KafkaListener:
        host, port = parse_address(parts.config["kafka.listen"], "kafka.listen")
        try:
            listener = await KafkaListener.start(
                parts.ports.network, host, port, connections=connections, served=served, budget=parts.budget
            )
        except OSError as error:
            raise KafkaAddressRefused(error.errno, error.strerror or str(error)) from error
        parts.topics.view.run_as(_running(parts, listener.address, endpoint(listener.address)))
        return listener

    return Door(KAFKA, listen, endpoint)


def _with_others(parts: Parts, here: dict[int, ServedApi]) -> dict[int, ServedApi]:
    """With what other nodes answer: changes that another decides, and all of it for a node without partitions."""
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
    return served | {METADATA.key: structs.replace(metadata, handle=EncodedMetadata(metadata.handle).handle)}


def _pass_on(parts: Parts, served: dict[int, ServedApi]) -> dict[int, ServedApi]:
    links = parts.place.links
    assert links is not None, "a node that is alone has nobody to pass requests on to"
    return passing_on(
        served,
        backends=Backends(links, parts.errands, parts.ports.clock),
        naming=Naming(
            parts.config.node_id,
            lambda: next(
                endpoint for endpoint in parts.doors.endpoints if endpoint.listener == KAFKA_LISTENER
            ),
        ),
        image=parts.cluster.image,
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


def serve_here(parts: Parts) -> dict[int, ServedApi]:
    """What this node answers itself, to clients and to nodes that forward their requests."""
    fetch_sessions = FetchSessions(
        parts.ports.rng, count_max=parts.topics.broker_settings.max_incremental_fetch_session_cache_slots
    )
    parts.instruments.add_source(fetch_sessions)
    return serve(
        hosted=parts.partitions,
        topics=parts.topics,
        trimming=parts.partitions,
        producer_ids=parts.producer_ids,
        directories=LogDirectories(parts.partitions, parts.disk, parts.memory, parts.ports.pool),
        leadership=Leadership(
            parts.cluster,
            parts.topics.settings,
            parts.ports.clock,
            furthest=FurthestCopy(parts.cluster.image, parts.partitions, parts.dispatch),
            errands=parts.errands,
        ),
        levels=Levels(parts.cluster),
        balancing=parts.balancing,
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
