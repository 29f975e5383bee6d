"""Taking brokers into service and out of it.

Behaviour worth knowing
    Fencing is always safe: whoever is fenced leads nothing and is in no ISR, and what it goes on doing counts for nothing.
    A broker that wants to stop gives up what others can lead. What only it can lead it leads until it is gone.
    A broker is taken away only when it holds nothing.
"""

from collections.abc import Callable
from functools import partial

from msgspec import Struct, structs

from ropewalk.base.errors import InvalidRequest, UnknownBroker
from ropewalk.base.ids import NodeId
from ropewalk.controller.brokers import registered_broker
from ropewalk.controller.elections import Standing, all_partitions, records_of, settle
from ropewalk.metadata.image import Broker, Image, Partition, Topic
from ropewalk.metadata.records import BrokerRemoved, BrokerState, BrokerStateChanged, MetadataRecord
from ropewalk.metadata.settings.applied import AppliedSettings


class Heartbeat(Struct, frozen=True, kw_only=True):
    node_id: NodeId
    broker_epoch: int
    metadata_offset: int
    """How far the broker has followed."""
    wants_to_stop: bool = False


def decide_heartbeat(
    image: Image, heartbeat: Heartbeat, *, settings: AppliedSettings, now_ms: int
) -> list[MetadataRecord]:
    """What follows from a broker's being alive: mostly nothing. `may_stop` tells it the rest."""
    broker = registered_broker(image, heartbeat.node_id, heartbeat.broker_epoch)
    is_fenced = broker.state is BrokerState.FENCED
    if heartbeat.wants_to_stop:
        return (
            [] if is_fenced else decide_stop_broker(image, broker.node_id, settings=settings, now_ms=now_ms)
        )
    if is_fenced and heartbeat.metadata_offset > broker.epoch:
        return decide_unfence_broker(image, broker.node_id, broker.epoch, settings=settings, now_ms=now_ms)
    return []


def decide_unfence_broker(
    image: Image, node_id: NodeId, broker_epoch: int, *, settings: AppliedSettings, now_ms: int
) -> list[MetadataRecord]:
    """Into service; it leads what waited for it."""
    broker = registered_broker(image, node_id, broker_epoch)
    if broker.is_active:
        return []
    standing = Standing(image, {node_id: BrokerState.ACTIVE})
    elected = _settled(
        image,
        standing,
        settings,
        now_ms,
        lambda _, partition: (
            partition if partition.leader is None and node_id in partition.replicas else None
        ),
    )
    return [_state(broker, BrokerState.ACTIVE), *elected]


def decide_fence_broker(
    image: Image, node_id: NodeId, broker_epoch: int, *, settings: AppliedSettings, now_ms: int
) -> list[MetadataRecord]:
    """Out of service: others lead what it led, and it is in no ISR any more. Nothing if it has started again meanwhile."""
    broker = image.brokers.get(node_id)
    if broker is None or broker.epoch != broker_epoch or broker.state is BrokerState.FENCED:
        return []
    standing = Standing(image, {node_id: BrokerState.FENCED})
    changed = _settled(
        image,
        standing,
        settings,
        now_ms,
        lambda _, partition: partition if node_id in partition.isr or node_id == partition.leader else None,
    )
    return [*changed, _state(broker, BrokerState.FENCED)]


def decide_stop_broker(
    image: Image, node_id: NodeId, *, settings: AppliedSettings, now_ms: int
) -> list[MetadataRecord]:
    """Before it stops in order: others lead what they can, and it leaves every ISR that can do without it."""
    broker = image.brokers.get(node_id)
    if broker is None:
        raise UnknownBroker(f"broker {node_id} is not registered")
    if broker.state is BrokerState.FENCED:
        raise InvalidRequest(f"broker {node_id} is fenced: there is nothing it could give up")

    def without_it(topic: Topic, partition: Partition) -> Partition | None:
        if node_id not in partition.isr:
            return None
        others = tuple(member for member in partition.isr if member != node_id)
        is_enough = len(others) >= settings.minimum_in_sync(topic, partition)
        can_lead = any(standing.may_lead(member) for member in others)
        return structs.replace(partition, isr=others) if is_enough and can_lead else partition

    standing = Standing(image, {node_id: BrokerState.STOPPING})
    changed = _settled(image, standing, settings, now_ms, without_it)
    return (
        changed if broker.state is BrokerState.STOPPING else [_state(broker, BrokerState.STOPPING), *changed]
    )


def may_stop(image: Image, node_id: NodeId) -> bool:
    """Whether nobody would miss the broker who need not: it leads nothing that another could come to lead.

    A node that waits for this should have a limit to its patience, since those others may be long in catching up.
    """
    broker = image.brokers.get(node_id)
    if broker is not None and broker.is_active:
        return False
    standing = Standing(image)
    return not any(
        partition.leader == node_id and any(standing.may_lead(other) for other in partition.replicas)
        for _, partition in all_partitions(image)
    )


def decide_remove_broker(image: Image, node_id: NodeId) -> list[MetadataRecord]:
    broker = image.brokers.get(node_id)
    if broker is None:
        raise UnknownBroker(f"broker {node_id} is not registered")
    held_count = sum(node_id in partition.holders for _, partition in all_partitions(image))
    if held_count:
        raise InvalidRequest(f"broker {node_id} holds {held_count} replicas; move them elsewhere first")
    if broker.is_active:
        raise InvalidRequest(f"broker {node_id} is in service; stop it first")
    return [BrokerRemoved(node_id)]


def _settled(
    image: Image,
    standing: Standing,
    settings: AppliedSettings,
    now_ms: int,
    wanted_of: Callable[[Topic, Partition], Partition | None],
) -> list[MetadataRecord]:
    """The changes of all partitions that `wanted_of` has a wish for."""
    records: list[MetadataRecord] = []
    for topic, partition in all_partitions(image):
        wanted = wanted_of(topic, partition)
        if wanted is None:
            continue
        settled = settle(
            partition,
            wanted,
            standing=standing,
            minimum=partial(settings.minimum_in_sync, topic),
        )
        records.extend(records_of(topic, partition, settled, now_ms))
    return records


def _state(broker: Broker, state: BrokerState) -> BrokerStateChanged:
    return BrokerStateChanged(broker.node_id, broker.epoch, state)
