"""Whether what was read is still what the log holds: the check under another leader (KIP-320).

What a reader could get wrong
    The leader is asked where the epoch of the last record that was read ended. Ended it before that record, the log was cut there, and
    what follows is other records under the same offsets.
    A leader that knows no epoch so old has either trimmed all of it, or never had it. Where its log starts tells which.
    Whoever knows a newer epoch than the metadata asks nobody yet: the node that would answer has been deposed.
"""

from msgspec import Struct

from ropewalk.base.errors import ProtocolError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.cluster import PartitionView
from ropewalk.client.errors import ApiNotOffered, RemoteError
from ropewalk.client.list_offsets import Isolation, OffsetQuery, list_known
from ropewalk.client.session import Session, only_partition
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import offset_for_leader_epoch as wire


class Agreement(Struct, frozen=True, gc=False):
    """Up to where the leader's log has what was read; from `end_offset` on it has something else, or nothing."""

    end_offset: int
    leader_epoch: int


async def find_agreement(
    session: Session,
    partition: TopicPartition,
    view: PartitionView,
    *,
    offset: int,
    leader_epoch: int,
    deadline_ms: float,
) -> Agreement:
    """Of the leader in `view`, about what was read below `offset`, of which the last was of `leader_epoch`."""
    if leader_epoch > view.leader_epoch:
        text = f"records of epoch {leader_epoch} were read, the metadata knows epoch {view.leader_epoch}"
        raise RemoteError(ErrorCode.UNKNOWN_LEADER_EPOCH, text, about=str(partition))
    connection = await session.cluster.connection(view.leader, deadline_ms=deadline_ms)
    asked = wire.OffsetForLeaderPartition(partition.partition, view.leader_epoch, leader_epoch)
    request = wire.OffsetForLeaderEpochRequest(
        replica_id=-1, topics=(wire.OffsetForLeaderTopic(partition.topic, (asked,)),)
    )
    try:
        response = await connection.call(wire.API, request, deadline_ms=deadline_ms)
    except ApiNotOffered:
        return Agreement(offset, leader_epoch)  # a broker that cannot be asked is believed
    answer = only_partition(response.topics, wire.API.name)
    if answer.error_code != ErrorCode.NONE:
        raise RemoteError(answer.error_code, about=str(partition))
    if answer.index != partition.partition:
        raise ProtocolError(f"{wire.API.name} was answered for another partition than {partition}")
    if answer.end_offset >= 0:
        return Agreement(answer.end_offset, answer.leader_epoch)
    starts = await list_known(
        session,
        {partition: OffsetQuery.EARLIEST},
        isolation=Isolation.READ_UNCOMMITTED,
        deadline_ms=deadline_ms,
    )
    if partition not in starts:
        raise RemoteError(ErrorCode.LEADER_NOT_AVAILABLE, about=str(partition))
    start = starts[partition].offset
    return Agreement(offset if offset <= start else start, -1)
