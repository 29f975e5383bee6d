"""The door for clients: the table of what is served, and the addresses it listens on."""

from collections.abc import Sequence
from functools import partial

from msgspec import structs

from ropewalk.broker.administration.acl_changes import AclChanges
from ropewalk.broker.administration.leadership import Leadership
from ropewalk.broker.administration.levels import Levels
from ropewalk.broker.administration.log_directories import LogDirectories
from ropewalk.broker.administration.quota_changes import QuotaChanges
from ropewalk.broker.administration.quotas import ClientQuotas
from ropewalk.broker.administration.tokens import Tokens
from ropewalk.broker.administration.users import UserChanges
from ropewalk.broker.dispatch.furthest import FurthestCopy
from ropewalk.broker.reading.fetch_sessions import FetchSessions
from ropewalk.kafka.apis import SERVED_APIS, serve
from ropewalk.kafka.connections import Connections
from ropewalk.kafka.figures import KafkaFigures
from ropewalk.kafka.forwarded import forwarding
from ropewalk.kafka.listener import KafkaListener, ListenAt
from ropewalk.kafka.metadata_encoding import EncodedMetadata
from ropewalk.kafka.proxy.backends import Backends
from ropewalk.kafka.proxy.naming import Naming
from ropewalk.kafka.proxy.serve import passing_on
from ropewalk.kafka.restated import without_restated
from ropewalk.kafka.served import ServedApi
from ropewalk.kafka.terms import ListenerTerms
from ropewalk.metadata.image import Broker
from ropewalk.metadata.records import Endpoint
from ropewalk.node.authorities import takes_tokens
from ropewalk.node.build import Parts
from ropewalk.node.certificates import files_of, identify, names_of
from ropewalk.node.doors import KAFKA, Door, told
from ropewalk.node.kafka_listeners import ListenerPlan
from ropewalk.wire.messages.metadata import API as METADATA


async def kafka_door(parts: Parts, here: dict[int, ServedApi]) -> Door | None:
    """`here` is what this node can answer itself. None where the configuration wants no door. Opening it raises `CannotListenAt`."""
    listeners = parts.config.kafka_listeners
    if not listeners:
        return None
    served = _with_others(parts, here)
    connections = _connections(parts)
    parts.authentication.open(served, frame_bytes_max=connections.frame_bytes_max)
    parts.instruments.add_source(parts.authentication)
    parts.instruments.add_source(KafkaFigures(connections, served, parts.budget))
    places = [ListenAt(each.host, each.port, await _terms(parts, each)) for each in listeners]

    async def listen() -> KafkaListener:
        entrance = await KafkaListener.start_all(
            parts.ports.network,
            places,
            connections=connections,
            served=served,
            budget=parts.budget,
            proxies=parts.config.proxies,
        )
        parts.topics.view.run_as(_running(parts, listeners, entrance.addresses))
        return entrance

    return Door(KAFKA, listen, [partial(told, each.advertised, each.registered_as) for each in listeners])


async def _terms(parts: Parts, listener: ListenerPlan) -> ListenerTerms:
    config, protocol = parts.config, listener.protocol
    admit = None
    if protocol.has_sasl:
        takes_any = takes_tokens(config, listener)
        bearers = (
            parts.authorities.bearers(parts.cluster.image, parts.ports.clock, listener) if takes_any else None
        )
        admit = parts.authentication.admission(is_encrypted=protocol.is_encrypted, bearers=bearers)
    if not protocol.is_encrypted:
        return ListenerTerms(listener=listener.registered_as, protocol=protocol, admit=admit)
    names = names_of(config, listener.name)
    return ListenerTerms(
        listener=listener.registered_as,
        protocol=protocol,
        tls=await parts.certificates.contexts(files_of(config, listener.name)),
        identify=None if names is None else identify(names, parts.ports.clock),
        admit=admit,
    )


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
            partial(_own_endpoint, parts),
            parts.cluster.image,
        ),
        image=parts.cluster.image,
    )


def _own_endpoint(parts: Parts, listener: str) -> Endpoint:
    return next(endpoint for endpoint in parts.doors.endpoints if endpoint.listener == listener)


def _reached_here(parts: Parts, _: Broker, listener: str) -> Endpoint:
    """A node that passes requests on stands for every broker, also for those that clients cannot reach."""
    return _own_endpoint(parts, listener)


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
        user_changes=UserChanges(parts.cluster, parts.ports.rng),
        tokens=Tokens(parts.cluster, parts.ports.clock, parts.ports.rng),
        acl_changes=AclChanges(parts.cluster),
        access=parts.access,
        groups=parts.groups,
        transactions=parts.transactions,
        entry=parts.entry,
        marker_writing=parts.marker_writing,
        fetch_sessions=fetch_sessions,
        authentication=parts.authentication,
        budget=parts.budget,
        pool=parts.ports.pool,
        clock=parts.ports.clock,
        node_id=parts.config.node_id,
        account=parts.cluster_health.of_this_node,
        heard=parts.registry.followings.heard,
        reach=partial(_reached_here, parts) if parts.config["kafka.route"] == "proxy" else Broker.endpoint,
    )


def _running(
    parts: Parts, listeners: Sequence[ListenerPlan], addresses: Sequence[tuple[str, int]]
) -> dict[str, str]:
    """Kafka's settings that say who this node is, which it is configured for under names of its own."""
    config, path = parts.config, parts.place.directory.path
    heard = [f"{each.name}://{host}:{port}" for each, (host, port) in zip(listeners, addresses, strict=True)]
    endpoints = [
        told(each.advertised, each.registered_as, address)
        for each, address in zip(listeners, addresses, strict=True)
    ]
    return {
        "node.id": str(config.node_id),
        "broker.id": str(config.node_id),
        "process.roles": ",".join(role for role in ("broker", "controller") if role in config.roles),
        "listeners": ",".join(heard),
        "advertised.listeners": ",".join(
            f"{each.name}://{endpoint.host}:{endpoint.port}"
            for each, endpoint in zip(listeners, endpoints, strict=True)
        ),
        "listener.security.protocol.map": ",".join(f"{each.name}:{each.protocol}" for each in listeners),
        "log.dir": path,
        "log.dirs": path,
    }
