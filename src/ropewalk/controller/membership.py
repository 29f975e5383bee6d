"""Taking brokers into service and out of it.

Behaviour worth knowing
    Fencing is always safe: whoever is fenced leads nothing and is in no ISR, and what it goes on doing counts for nothing.
    A broker that wants to stop gives up what others can lead. What only it can lead it leads until it is gone.
    A broker is taken away only when it holds nothing.
"""

from msgspec import Struct, structs

from ropewalk.base.errors import HistoryParted, InvalidRequest, UnknownBroker
from ropewalk.base.ids import NodeId
from ropewalk.controller.brokers import registered_broker
from ropewalk.controller.elections import Elections, InTurns, Standing, all_partitions, whole
from ropewalk.controller.health import Complaint
from ropewalk.metadata.image import Broker, Image
from ropewalk.metadata.lineage import Position, complaint
from ropewalk.metadata.records import BrokerRemoved, BrokerState, BrokerStateChanged, MetadataRecord
from ropewalk.metadata.settings.applied import AppliedSettings


class Heartbeat(Struct, frozen=True, kw_only=True):
    node_id: NodeId
    broker_epoch: int
    metadata_offset: int
    """How far the broker has followed."""
    wants_to_stop: bool = False
    complaints: tuple[Complaint, ...] = ()
    """What the broker says is wrong with itself."""
    position: Position = Position(0)
    """How far the broker has applied the metadata, and of which history that is."""


class Pulse(Struct, frozen=True):
    """What a broker hears on its heartbeat."""

    is_fenced: bool
    may_stop: bool
    controller_id: NodeId
    metadata_end_offset: int
    """Where the metadata ends, as the controller has it; -1 where it does not say."""
    clock_ms: int
    """The controller's clock; -1 where it does not say."""
    hindrance: str | None = None
    """Why the controller cannot do at present what follows from the heartbeat."""


def check_history(image: Image, node_id: NodeId, position: Position) -> None:
    """Refuse a node that has followed another history than this image's, as far as the image reaches."""
    if position.end_offset <= image.end_offset and not image.holds(position):
        raise HistoryParted(complaint(position, f"node {node_id}"))


def is_news(image: Image, heartbeat: Heartbeat) -> bool:
    """Whether anything may follow from a broker's being alive: mostly nothing does."""
    broker = registered_broker(image, heartbeat.node_id, heartbeat.broker_epoch)
    if heartbeat.wants_to_stop:
        return broker.state is not BrokerState.FENCED
    return broker.state is BrokerState.FENCED and heartbeat.metadata_offset > broker.epoch


def decide_heartbeat(
    image: Image, heartbeat: Heartbeat, *, settings: AppliedSettings, now_ms: int
) -> list[MetadataRecord]:
    """What follows from it. `may_stop` tells the broker the rest."""
    return whole(heartbeat_in_turns(image, heartbeat, settings=settings, now_ms=now_ms))


def heartbeat_in_turns(
    image: Image, heartbeat: Heartbeat, *, settings: AppliedSettings, now_ms: int
) -> InTurns:
    if not is_news(image, heartbeat):
        return []
    node_id, broker_epoch = heartbeat.node_id, heartbeat.broker_epoch
    if heartbeat.wants_to_stop:
        return (yield from stop_in_turns(image, node_id, settings=settings, now_ms=now_ms))
    return (yield from unfence_in_turns(image, node_id, broker_epoch, settings=settings, now_ms=now_ms))


def decide_unfence_broker(
    image: Image, node_id: NodeId, broker_epoch: int, *, settings: AppliedSettings, now_ms: int
) -> list[MetadataRecord]:
    return whole(unfence_in_turns(image, node_id, broker_epoch, settings=settings, now_ms=now_ms))


def unfence_in_turns(
    image: Image, node_id: NodeId, broker_epoch: int, *, settings: AppliedSettings, now_ms: int
) -> InTurns:
    """Into service; it leads what waited for it."""
    broker = registered_broker(image, node_id, broker_epoch)
    if broker.is_active:
        return []
    elections = Elections(Standing(image, {node_id: BrokerState.ACTIVE}), settings, now_ms)
    for topic, partition in all_partitions(image):
        yield
        if partition.leader is None and node_id in partition.replicas:
            elections.settle(topic, partition, partition)
    return [_state(broker, BrokerState.ACTIVE), *elections.records]


def decide_fence_broker(
    image: Image, node_id: NodeId, broker_epoch: int, *, settings: AppliedSettings, now_ms: int
) -> list[MetadataRecord]:
    return whole(fence_in_turns(image, node_id, broker_epoch, settings=settings, now_ms=now_ms))


def fence_in_turns(
    image: Image, node_id: NodeId, broker_epoch: int, *, settings: AppliedSettings, now_ms: int
) -> InTurns:
    """Out of service: others lead what it led, and it is in no ISR any more. Nothing if it has started again meanwhile."""
    broker = image.brokers.get(node_id)
    if broker is None or broker.epoch != broker_epoch or broker.state is BrokerState.FENCED:
        return []
    elections = Elections(Standing(image, {node_id: BrokerState.FENCED}), settings, now_ms)
    for topic, partition in all_partitions(image):
        yield
        if node_id in partition.isr:
            elections.settle(topic, partition, partition)
    return [*elections.records, _state(broker, BrokerState.FENCED)]


def decide_stop_broker(
    image: Image, node_id: NodeId, *, settings: AppliedSettings, now_ms: int
) -> list[MetadataRecord]:
    return whole(stop_in_turns(image, node_id, settings=settings, now_ms=now_ms))


def stop_in_turns(image: Image, node_id: NodeId, *, settings: AppliedSettings, now_ms: int) -> InTurns:
    """Before it stops in order: others lead what they can, and it leaves every ISR that can do without it."""
    broker = image.brokers.get(node_id)
    if broker is None:
        raise UnknownBroker(f"broker {node_id} is not registered")
    if broker.state is BrokerState.FENCED:
        raise InvalidRequest(f"broker {node_id} is fenced: there is nothing it could give up")

    elections = Elections(Standing(image, {node_id: BrokerState.STOPPING}), settings, now_ms)
    for topic, partition in all_partitions(image):
        yield
        if node_id not in partition.isr:
            continue
        others = tuple(member for member in partition.isr if member != node_id)
        is_enough = len(others) >= elections.minimum(topic, partition)
        can_lead = any(map(elections.standing.may_lead, others))
        wanted = structs.replace(partition, isr=others) if is_enough and can_lead else partition
        elections.settle(topic, partition, wanted)
    if broker.state is BrokerState.STOPPING:
        return elections.records
    return [_state(broker, BrokerState.STOPPING), *elections.records]


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


def _state(broker: Broker, state: BrokerState) -> BrokerStateChanged:
    return BrokerStateChanged(broker.node_id, broker.epoch, state)
