"""Whether what was read is still what the log holds: the check under another leader (KIP-320).

What a reader could get wrong
    The leader is asked where the epoch of the last record that was read ended. Ended it before that record, the log was cut there, and
    what follows is other records under the same offsets. Does it not know that epoch, only an earlier one, it has nothing of what was
    read in the epochs since, however long its log is: the two part where the first of those began.
    That earlier epoch may be one of which nothing was read: of it the leader has what was never seen here. It is asked again, about the
    latest epoch before, until both know the one that it speaks of.
    A leader that knows no epoch so old has either trimmed all of it, or never had it. Where its log starts tells which.
    Whoever knows a newer epoch than the metadata asks nobody yet: the node that would answer has been deposed.
"""

from collections.abc import Sequence

from msgspec import Struct

from ropewalk.base.errors import ProtocolError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls.list_offsets import Isolation, OffsetQuery, list_known
from ropewalk.client.connections.cluster import PartitionView
from ropewalk.client.connections.session import Session, only_partition
from ropewalk.client.errors import ApiNotOffered, RemoteError
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
    epochs: Sequence[tuple[int, int]],
    deadline_ms: float,
) -> Agreement:
    """Of the leader in `view`, about what was read below `offset`: in these epochs, each with the first offset known to be of it."""
    leader_epoch = epochs[-1][0]
    if leader_epoch > view.leader_epoch:
        text = f"records of epoch {leader_epoch} were read, the metadata knows epoch {view.leader_epoch}"
        raise RemoteError(ErrorCode.UNKNOWN_LEADER_EPOCH, text, about=str(partition))
    try:
        answer = await _ask_for_end(session, partition, view, leader_epoch, deadline_ms=deadline_ms)
        while answer.end_offset >= 0 and answer.leader_epoch < leader_epoch:
            earlier = [epoch for epoch, _ in epochs if epoch <= answer.leader_epoch]
            if not earlier or earlier[-1] == answer.leader_epoch:
                break
            leader_epoch = earlier[-1]
            answer = await _ask_for_end(session, partition, view, leader_epoch, deadline_ms=deadline_ms)
    except ApiNotOffered:
        return Agreement(offset, leader_epoch)  # a broker that cannot be asked is believed
    if answer.end_offset >= 0:
        strange = [first_offset for epoch, first_offset in epochs if epoch > answer.leader_epoch]
        return Agreement(min([answer.end_offset, *strange]), answer.leader_epoch)
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


async def _ask_for_end(
    session: Session, partition: TopicPartition, view: PartitionView, leader_epoch: int, *, deadline_ms: float
) -> wire.EpochEndOffset:
    """Where the latest epoch ended that the leader knows, of those up to this one."""
    connection = await session.cluster.connection(view.leader, deadline_ms=deadline_ms)
    asked = wire.OffsetForLeaderPartition(partition.partition, view.leader_epoch, leader_epoch)
    request = wire.OffsetForLeaderEpochRequest(
        replica_id=-1, topics=(wire.OffsetForLeaderTopic(partition.topic, (asked,)),)
    )
    response = await connection.call(wire.API, request, deadline_ms=deadline_ms)
    answer = only_partition(response.topics, wire.API.name)
    if answer.error_code != ErrorCode.NONE:
        raise RemoteError(answer.error_code, about=str(partition))
    if answer.index != partition.partition:
        raise ProtocolError(f"{wire.API.name} was answered for another partition than {partition}")
    return answer
