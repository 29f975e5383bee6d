"""The controller's services on a node that never decides: whoever asks is told to ask another."""

from collections.abc import Sequence
from typing import NoReturn

from ropewalk.base.errors import NotController
from ropewalk.base.ids import NodeId
from ropewalk.controller.alter_partition import AlteredPartition, PartitionAlteration
from ropewalk.controller.brokers import Registration
from ropewalk.controller.membership import Heartbeat
from ropewalk.controller.producer_ids import ProducerIdBlock
from ropewalk.kafka.peer.handlers.fetch_metadata import MetadataPage
from ropewalk.kafka.peer.handlers.node_heartbeat import Pulse
from ropewalk.kafka.peer.handlers.register_node import Registered
from ropewalk.metadata.image import Image
from ropewalk.wire.peer.node_heartbeat import NodeLoad


class ControllerElsewhere:
    def __init__(self, image: Image) -> None:
        self._image = image

    async def register(self, registration: Registration) -> Registered:
        self._refuse(registration)

    async def heartbeat(self, heartbeat: Heartbeat, load: NodeLoad | None) -> Pulse:
        self._refuse(heartbeat, load)

    def on_disconnected(self, node_id: NodeId) -> None:
        """Its heartbeats were refused here."""

    async def alter_partitions(
        self, node_id: NodeId, broker_epoch: int, alterations: Sequence[PartitionAlteration]
    ) -> Sequence[AlteredPartition]:
        self._refuse(node_id, broker_epoch, alterations)

    async def allocate_producer_ids(self, node_id: NodeId, broker_epoch: int) -> ProducerIdBlock:
        self._refuse(node_id, broker_epoch)

    async def fetch(self, start_offset: int, wait_ms: int) -> MetadataPage:
        self._refuse(start_offset, wait_ms)

    def _refuse(self, *_asked: object) -> NoReturn:
        raise NotController(f"node {self._image.controller_id} is the controller")
