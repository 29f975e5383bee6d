"""Keeping a broker from leading while somebody works on it, and whether it can be stopped.

Behaviour worth knowing
    A broker in maintenance keeps its copies, stays in sync and is waited for. It leads only what nobody else can lead.
    When it is over, the broker leads again what it is the preferred leader of, as far as it is in sync.
"""

from ropewalk.base.errors import NotInForce, UnknownBroker
from ropewalk.base.ids import NodeId
from ropewalk.base.levels import MAINTENANCE_LEVEL
from ropewalk.controller.elections import Elections, InTurns, Standing, all_partitions
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import BrokerMaintenance
from ropewalk.metadata.settings.applied import AppliedSettings


def maintenance_in_turns(
    image: Image, node_id: NodeId, *, is_on: bool, settings: AppliedSettings, now_ms: int
) -> InTurns:
    """Nothing where it is so already, except that leaders go where they belong."""
    broker = image.brokers.get(node_id)
    if broker is None:
        raise UnknownBroker(f"broker {node_id} is not registered")
    if image.level < MAINTENANCE_LEVEL:
        raise NotInForce(
            f"maintenance came with level {MAINTENANCE_LEVEL}, and level {image.level} is in force; "
            "`ropewalk cluster upgrade status` says what holds it back"
        )
    elections = Elections(Standing(image, resting={node_id: is_on}), settings, now_ms)
    for topic, partition in all_partitions(image):
        yield
        if is_on and partition.leader == node_id:
            elections.settle(topic, partition, partition)
        elif not is_on and partition.replicas[0] == node_id != partition.leader and node_id in partition.isr:
            elections.settle(topic, partition, partition, leader=node_id)
    changed = [BrokerMaintenance(node_id, is_on)] if broker.in_maintenance != is_on else []
    return [*changed, *elections.records]
