"""Whether the other nodes miss the controller too.

A node that is cut off from all others misses it as much as one that sees it die, and it may still reach the metadata. If it took the
seat, nobody could hear it decide, and the cluster would stand still. So before a node takes the seat from somebody who
may be alive, more than half of the nodes in service, itself and the holder counted, must not hear of the holder.

What a reader could get wrong
    This keeps the cluster going; what is safe does not depend on it. With two nodes, or with most nodes gone, there is no such
    majority: then the seat is vacant when its holder has been silent towards the metadata log for long.
"""

import asyncio

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import SECOND_OPINION_MS_MAX
from ropewalk.broker.peers.calls.find_controller import find_controller
from ropewalk.broker.peers.peers import PeerLinks
from ropewalk.metadata.image import Image
from ropewalk.metadata.log import Holder


class SecondOpinion:
    def __init__(self, node_id: NodeId, image: Image, links: PeerLinks) -> None:
        self._node_id = node_id
        self._image = image
        self._links = links

    async def agrees(self, holder: Holder) -> bool:
        in_service = {node_id for node_id, broker in self._image.brokers.items() if broker.is_active}
        everybody = in_service | {self._node_id, holder.node_id}
        others = sorted(everybody - {self._node_id, holder.node_id})
        opinions = await asyncio.gather(*(self._misses(other, holder) for other in others))
        return 2 * (1 + sum(opinions)) > len(everybody)

    async def _misses(self, node_id: NodeId, holder: Holder) -> bool:
        """Whether that node does not hear of the holder, nor of a later one. One that cannot be asked has no opinion."""
        deadline_ms = self._links.clock.monotonic_ms() + SECOND_OPINION_MS_MAX
        try:
            named = await find_controller().at(self._links, node_id, deadline_ms=deadline_ms)
        except RopewalkError:
            return False
        return not named.is_heard and named.epoch <= holder.epoch
