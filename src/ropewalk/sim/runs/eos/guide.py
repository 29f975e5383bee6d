"""A client's way to those who look after its group or its transactions, and the place where it writes down what happened."""

from enum import IntEnum
from typing import Final

from ropewalk.base.sharding import shard_of
from ropewalk.metadata.image import Image
from ropewalk.metadata.internal_topics import OFFSETS_TOPIC
from ropewalk.sim.clients.link import Link, LinkLost
from ropewalk.sim.clients.workload import Workload
from ropewalk.sim.judges.eos.history import EosJournal
from ropewalk.sim.runs.cluster.guide import Guide
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import find_coordinator

_MANY_SINCE: Final = 4


class Coordinated(IntEnum):
    GROUP = 0
    TRANSACTION = 1


class EosGuide(Guide):
    def __init__(self, workload: Workload, name: str, node_names: list[str], journal: EosJournal) -> None:
        super().__init__(workload, name, node_names)
        self.journal = journal
        self._coordinators: dict[tuple[Coordinated, str], int] = {}

    async def connect_to_coordinator(self, kind: Coordinated, key: str) -> Link:
        """Raises `LinkLost` where there is none, or it cannot be reached; whoever finds it is another says so."""
        node_id = self._coordinators.get((kind, key))
        if node_id is None:
            node_id = await self._find(kind, key)
            self._coordinators[kind, key] = node_id
        try:
            return await self.connect_to(node_id)
        except LinkLost:
            self.doubt_coordinator(kind, key)
            raise

    def doubt_coordinator(self, kind: Coordinated, key: str) -> None:
        self._coordinators.pop((kind, key), None)

    async def _find(self, kind: Coordinated, key: str) -> int:
        link = await self.connect_to(None)
        version = max(1, self.draw_version(link, find_coordinator.API))
        request = find_coordinator.FindCoordinatorRequest(
            key=key, key_type=kind.value, coordinator_keys=(key,)
        )
        self.workload.operation_count += 1
        response = await link.send(find_coordinator.API, version, request)
        found = response if version < _MANY_SINCE else response.coordinators[0]
        if found.error_code != ErrorCode.NONE:
            raise LinkLost(f"no coordinator of {key}: {found.error_message}")
        return int(found.node_id)


class MemberGuide(EosGuide):
    """For members of a group: whoever they call looks after it."""

    def __init__(
        self,
        workload: Workload,
        name: str,
        node_names: list[str],
        journal: EosJournal,
        group: str,
        image: Image,
    ) -> None:
        """`image` is the cluster as it is, whoever may know of it."""
        super().__init__(workload, name, node_names, journal)
        self._group = group
        self._image = image

    def asks_former(self, group: str) -> bool:
        topic = self._image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return False
        shard = topic.partitions[shard_of(group, len(topic.partitions))]
        return shard.leader != self._coordinators.get((Coordinated.GROUP, group))

    async def connect(self) -> Link | None:
        while not self.workload.is_over:
            try:
                self.doubt_coordinator(Coordinated.GROUP, self._group)
                return await self.connect_to_coordinator(Coordinated.GROUP, self._group)
            except LinkLost:
                await self.pause(0.3)
        return None
