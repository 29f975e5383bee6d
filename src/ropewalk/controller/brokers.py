"""Creating a cluster, and letting brokers into it.

A broker registers each time it starts. The epoch it is given is the offset of its own record, so it grows from start
to start and nothing that a former process of the same broker has under way can be taken for the present one's.

Behaviour worth knowing
    In a cluster a broker is fenced until it has followed the metadata up to its registration. A node that is alone is in
    service at once.
    What it holds counts as before if it comes back with the same directory and whole. What was acknowledged from the page cache
    (`flush=os`) is doubtful after a stop out of order, whatever the setting is by now, and in memory after any stop; damaged replicas, and all of another directory, have lost records:
    they leave the ISR and the eligible. A directory that is a former state of the one that registered last, a copy that was put back, is refused:
    its node then makes another one of it (`broker/cluster/membership.py`). A partition with a single replica is led by it whatever has happened.
"""

from collections.abc import Sequence

from msgspec import Struct

from ropewalk.base.errors import (
    CorruptMetadata,
    DirectoryPutBack,
    DuplicateBroker,
    InvalidRequest,
    OtherCluster,
    StaleBrokerEpoch,
    UnknownBroker,
)
from ropewalk.base.ids import NodeId, TopicId, format_id
from ropewalk.base.levels import OURS, Software
from ropewalk.base.limits import CLOCK_SKEW_MS_MAX
from ropewalk.base.ports import Rng
from ropewalk.controller.elections import Elections, Standing, all_partitions
from ropewalk.controller.levels import check_software
from ropewalk.metadata.image import Broker, Image, Partition, Topic
from ropewalk.metadata.records import (
    ALL_ROLES,
    BrokerRegistered,
    BrokerState,
    ClusterCreated,
    Endpoint,
    MetadataRecord,
)
from ropewalk.metadata.settings.applied import AppliedSettings


class Registration(Struct, frozen=True, kw_only=True):
    """What a broker says of itself when it starts."""

    node_id: NodeId
    directory: bytes
    endpoints: Sequence[Endpoint]
    rack: str | None = None
    roles: Sequence[str] = ALL_ROLES
    cluster_id: str | None = None
    """None: its directory has not been in any yet."""
    clock_ms: int
    is_clean: bool = True
    """It stopped in order the last time."""
    damaged: frozenset[tuple[TopicId, int]] = frozenset()
    """Partitions of which its recovery found less than was durable."""
    unsynced: frozenset[tuple[TopicId, int]] | None = None
    """Partitions of which its former process acknowledged records that may not have been on disk. None: it left no word of it, and
    the topic's present setting has to do."""
    life: int = 0
    """How many processes have used its directory, this one included, by what the directory says; 0: nobody counted. It is counted
    before the first registration, so whatever was written in an earlier life is in every directory that counts a later one."""
    process: bytes = b""
    """Drawn at the start, so that one that asks again is told from the next."""
    software: Software = OURS


class Registered(Struct, frozen=True):
    """What a broker hears when it is let in."""

    broker_epoch: int
    cluster_id: str


def decide_create_cluster(
    image: Image, rng: Rng, cluster_id: str | None = None, *, partitions_held_count: int = 0
) -> list[MetadataRecord]:
    """Nothing if there is one. `cluster_id` is what the data directory says, if it says anything.

    A node that holds partitions has been part of a cluster: if the metadata knows of none, the metadata is lost.
    """
    if image.cluster_id is not None:
        if cluster_id not in (None, image.cluster_id):
            raise InvalidRequest(
                f"the data directory belongs to cluster {cluster_id}, the metadata to {image.cluster_id}"
            )
        return []
    if partitions_held_count > 0:
        raise CorruptMetadata(
            f"the data directory holds {partitions_held_count} partitions, but its metadata is empty; "
            "stop every node of the cluster and restore the metadata directory from a backup"
        )
    return [ClusterCreated(cluster_id or format_id(rng.randbytes(16)))]


def decide_register_broker(
    image: Image,
    registration: Registration,
    *,
    settings: AppliedSettings,
    now_ms: int,
    is_live: bool = False,
    is_lone: bool = False,
    others: Sequence[Software] = (),
) -> list[MetadataRecord]:
    """At every start, even if nothing has changed: a new process has a new epoch.

    `is_live`: a node of this id has a session at this moment. `others`: what the other nodes are that are there.
    """
    _check(image, registration, now_ms, is_live)
    check_software(image, registration.node_id, registration.software, others)
    node_id = registration.node_id
    state = BrokerState.ACTIVE if is_lone else BrokerState.FENCED
    elections = Elections(Standing(image, {node_id: state}), settings, now_ms)
    known = image.brokers.get(node_id)
    is_replaced = known is not None and known.directory != registration.directory
    for topic, partition in all_partitions(image):
        if node_id in (*partition.isr, *partition.eligible, partition.leader, partition.last_leader):
            doubtful, gone = _trust(topic, partition, registration, settings, is_replaced)
            elections.settle(
                topic,
                partition,
                partition,
                doubtful=(node_id,) if doubtful else (),
                gone=(node_id,) if gone else (),
            )
    registered = BrokerRegistered(
        node_id=node_id,
        broker_epoch=image.end_offset + len(elections.records),
        directory=registration.directory,
        endpoints=tuple(registration.endpoints),
        rack=registration.rack,
        roles=tuple(registration.roles),
        state=state,
        life=registration.life,
        process=registration.process,
        version=registration.software.version,
        level_min=registration.software.level_min,
        level_max=registration.software.level_max,
    )
    return [*elections.records, registered]


def registered_broker(image: Image, node_id: NodeId, broker_epoch: int) -> Broker:
    """The broker, if it is the process that registered last."""
    broker = image.brokers.get(node_id)
    if broker is None:
        raise UnknownBroker(f"broker {node_id} is not registered")
    if broker.epoch != broker_epoch:
        raise StaleBrokerEpoch(
            f"broker {node_id} has registered with epoch {broker.epoch}, this is of epoch {broker_epoch}"
        )
    return broker


def _check(image: Image, registration: Registration, now_ms: int, is_live: bool) -> None:
    node_id = registration.node_id
    if node_id < 0:
        raise InvalidRequest(f"node id is {node_id}, must be at least 0")
    if registration.cluster_id not in (None, image.cluster_id):
        raise OtherCluster(
            f"the data directory of node {node_id} belongs to cluster {registration.cluster_id}, "
            f"this is cluster {image.cluster_id}"
        )
    skew_ms = registration.clock_ms - now_ms
    if abs(skew_ms) > CLOCK_SKEW_MS_MAX:
        raise InvalidRequest(
            f"the clock of node {node_id} is {abs(skew_ms) // 1000} s {'ahead' if skew_ms > 0 else 'behind'}, "
            f"at most {CLOCK_SKEW_MS_MAX // 1000} s are allowed; set it right"
        )
    for other in image.brokers.values():
        if other.node_id != node_id and other.directory == registration.directory:
            raise InvalidRequest(
                f"the data directory of broker {node_id} is that of broker {other.node_id}; was it copied?"
            )
    known = image.brokers.get(node_id)
    if is_live and known is not None and known.directory != registration.directory:
        raise DuplicateBroker(
            f"a node with id {node_id} and another data directory is alive; every node needs an id of its own"
        )
    if known is not None and _is_put_back(known, registration):
        raise DirectoryPutBack(
            f"the data directory of broker {node_id} has been used by {registration.life - 1} processes, "
            f"the one that registered last was number {known.life}: this is a copy from before"
        )


def _is_put_back(known: Broker, registration: Registration) -> bool:
    """Whether another process has used that directory, and the directory does not know of it.

    A process that is gone may still be heard: it is refused as well, and nothing comes of that.
    """
    return (
        known.directory == registration.directory
        and 0 < registration.life <= known.life
        and registration.process != known.process
    )


def _trust(
    topic: Topic,
    partition: Partition,
    registration: Registration,
    settings: AppliedSettings,
    is_replaced: bool,
) -> tuple[bool, bool]:
    """Whether what the broker holds of the partition is doubtful, and whether it is gone."""
    holders = {*partition.isr, *partition.eligible}
    is_single = partition.replication_factor == 1 and holders <= {registration.node_id}
    applied = settings.of_topic(topic)
    if applied.storage == "memory":
        return not is_single, False
    if is_single:
        return is_replaced, False
    is_damaged = (topic.topic_id, partition.index) in registration.damaged
    is_lost = is_replaced or is_damaged
    is_unsynced = (
        applied.flush == "os"
        if registration.unsynced is None
        else (topic.topic_id, partition.index) in registration.unsynced
    )
    return is_lost or (is_unsynced and not registration.is_clean), is_lost
