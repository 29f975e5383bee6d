"""AlterPartition (key 10005): a leader asks for another set of replicas in sync; compare-and-set on the partition epoch.

Each member is named with the broker epoch that the leader heard from it, so that one which has started again meanwhile,
perhaps with an empty disk, is not let in by an old request (KIP-903).
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.peer.controller_answer import ControllerAnswer
from ropewalk.wire.types import Int16, Int32, Int64, Message, Uuid, tagged


class InSync(Message, frozen=True):
    node_id: Int32
    broker_epoch: Int64


class PartitionAlteration(Message, frozen=True):
    topic_id: Uuid
    index: Int32
    leader_epoch: Int32
    partition_epoch: Int32
    isr: tuple[InSync, ...]
    start_offset: Annotated[Int64, tagged(0)] = 0
    """Where the leader's log begins. A controller of a version before ignores it."""


class AlterPartitionRequest(Message, frozen=True):
    node_id: Int32
    broker_epoch: Int64
    partitions: tuple[PartitionAlteration, ...]


class PartitionAltered(Message, frozen=True):
    """With an error: nothing has changed. Otherwise the partition as it is now."""

    topic_id: Uuid
    index: Int32
    error_code: Int16
    leader: Int32 = -1
    leader_epoch: Int32 = -1
    partition_epoch: Int32 = -1
    isr: tuple[Int32, ...] = ()


class AlterPartitionResponse(ControllerAnswer, frozen=True):
    partitions: tuple[PartitionAltered, ...] = ()


API: Final = Api(
    key=10005,
    name="AlterPartition",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=AlterPartitionRequest,
    response=AlterPartitionResponse,
)
