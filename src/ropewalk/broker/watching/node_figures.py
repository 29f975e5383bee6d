"""Figures of the node as a whole that take no walk over its partitions."""

from collections.abc import Iterator

from ropewalk import __version__
from ropewalk.base import metrics
from ropewalk.base.ids import NodeId
from ropewalk.base.levels import OURS
from ropewalk.base.metrics import Sheet
from ropewalk.broker.partitions.group_commit import GroupCommit
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.upkeep.compactor import Compactor
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import BrokerState


class NodeFigures:
    def __init__(
        self,
        image: Image,
        partitions: Partitions,
        commits: GroupCommit,
        compactor: Compactor,
        node_id: NodeId,
    ) -> None:
        self._image = image
        self._partitions = partitions
        self._commits = commits
        self._compactor = compactor
        self._node_id = node_id

    def collect(self, sheet: Sheet) -> Iterator[None]:
        sheet.add(metrics.BUILD, 1, __version__, self._image.cluster_id or "", str(self._node_id))
        sheet.add(metrics.LEVEL, self._image.level)
        sheet.add(metrics.LEVEL_MAX, OURS.level_max)
        in_service = [
            broker for broker in self._image.brokers.values() if broker.state is not BrokerState.FENCED
        ]
        sheet.add(metrics.BROKERS, len(in_service))
        for broker in self._image.brokers.values():
            if (endpoint := broker.client_endpoint) is not None:
                sheet.add(metrics.BROKER_INFO, 1, str(broker.node_id), f"{endpoint.host}:{endpoint.port}")
        sheet.add(metrics.PARTITIONS_UNOPENED, self._partitions.unopened_count)
        sheet.add_durations(metrics.SYNC_TIME, self._commits.durations)
        sheet.add(metrics.COMPACTION_PASSES, self._compactor.pass_count)
        sheet.add(metrics.COMPACTION_REMOVED, self._compactor.removed_count)
        sheet.add(metrics.COMPACTION_WORK, self._compactor.spent_bytes)
        yield
