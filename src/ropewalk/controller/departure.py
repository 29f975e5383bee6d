"""Taking a broker away for good: the wish is a fact, and whoever decides pursues it until it is done or taken back.

Behaviour worth knowing
    A broker that is leaving serves as before and is given nothing more to hold, through restarts of its own and whoever decides.
    What it holds is moved elsewhere a few partitions at a time. The wish is refused where something has nowhere to go.
    It is forgotten when it holds nothing and has been gone for a while. One that merely hangs would register again when it
    wakes, as a broker that nobody wants to leave; so the process is to be stopped, and an operator who has seen
    that it is gone need not wait.
    Taking the wish back gives up nothing: moves that have begun go on, and what has been moved stays where it is.
"""

from collections.abc import Sequence

from ropewalk.base.errors import UnknownBroker
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import DRAIN_MOVES_MAX, LEAVER_FORGOTTEN_MS
from ropewalk.controller.relocation import decide_drain_broker, held_count
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import BrokerLeaving, BrokerState, MetadataRecord
from ropewalk.metadata.settings.applied import AppliedSettings


def decide_leave(
    image: Image, node_id: NodeId, *, settings: AppliedSettings, now_ms: int
) -> list[MetadataRecord]:
    """The wish, unless it is known, and the next moves. Raises `InvalidReplicaAssignment` where something has nowhere to go."""
    moved = decide_drain_broker(image, node_id, settings=settings, now_ms=now_ms, moves_max=DRAIN_MOVES_MAX)
    known = image.brokers[node_id].is_leaving
    return moved if known else [BrokerLeaving(node_id, is_leaving=True), *moved]


def decide_stay(image: Image, node_id: NodeId) -> list[MetadataRecord]:
    """The wish is taken back; nothing if there was none."""
    broker = image.brokers.get(node_id)
    if broker is None:
        raise UnknownBroker(f"broker {node_id} is not registered")
    return [BrokerLeaving(node_id, is_leaving=False)] if broker.is_leaving else []


def leavers(image: Image) -> list[NodeId]:
    return [broker.node_id for broker in image.brokers.values() if broker.is_leaving]


class Departures:
    """Remembers since when those who leave have been gone; a controller that takes over begins to watch anew."""

    __slots__ = ("_since_ms",)

    def __init__(self) -> None:
        self._since_ms: dict[NodeId, int] = {}

    def on_round(self, image: Image, now_ms: int) -> Sequence[NodeId]:
        """Who can be forgotten. `now_ms` is measured time, not the time of day."""
        gone = [
            node_id
            for node_id in leavers(image)
            if image.brokers[node_id].state is BrokerState.FENCED and not held_count(image, node_id)
        ]
        self._since_ms = {node_id: self._since_ms.get(node_id, now_ms) for node_id in gone}
        return [node_id for node_id in gone if now_ms - self._since_ms[node_id] >= LEAVER_FORGOTTEN_MS]
