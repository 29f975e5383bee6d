"""How far each replica of a partition is, told by the nodes that hold it, whether or not anybody leads."""

from collections.abc import Sequence

from msgspec import Struct

from ropewalk.base.errors import ProtocolError, RopewalkError
from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.together import together
from ropewalk.client.connections.session import Session
from ropewalk.client.errors import RemoteError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import list_offsets


class Copy(Struct, frozen=True, gc=False):
    """What one node holds of a partition, committed or not."""

    start_offset: int
    end_offset: int
    last_epoch: int
    """Of the leader that wrote its last records; -1 where there are none. The higher one knows better, whatever the ends are."""


async def copies(
    client: Client, partition: TopicPartition, nodes: Sequence[NodeId], *, deadline_ms: float | None = None
) -> dict[NodeId, Copy | str]:
    """For each node its copy, or why that is not known."""
    session = client.session
    until_ms = session.deadline_ms() if deadline_ms is None else deadline_ms
    await session.cluster.metadata((), deadline_ms=until_ms)  # for the nodes' addresses
    found = await together([_copy_at(session, node, partition, until_ms) for node in nodes])
    return dict(zip(nodes, found, strict=True))


async def _copy_at(session: Session, node: NodeId, partition: TopicPartition, until_ms: float) -> Copy | str:
    try:
        start, _ = await _ask(session, node, partition, list_offsets.EARLIEST, until_ms)
        end, last_epoch = await _ask(session, node, partition, list_offsets.LATEST, until_ms)
    except RopewalkError as error:
        return str(error)
    return Copy(start, end, last_epoch)


async def _ask(
    session: Session, node: NodeId, partition: TopicPartition, query: int, until_ms: float
) -> tuple[int, int]:
    connection = await session.cluster.connection(node, deadline_ms=until_ms)
    asked = list_offsets.ListOffsetsPartition(index=partition.partition, timestamp=query)
    request = list_offsets.ListOffsetsRequest(
        replica_id=list_offsets.ANY_COPY, topics=(list_offsets.ListOffsetsTopic(partition.topic, (asked,)),)
    )
    response = await connection.call(list_offsets.API, request, deadline_ms=until_ms)
    for topic in response.topics:
        for answer in topic.partitions:
            if answer.error_code != ErrorCode.NONE:
                raise RemoteError(answer.error_code, about=f"{partition} on node {node}")
            return answer.offset, answer.leader_epoch
    raise ProtocolError(f"node {node} answered ListOffsets without a word about {partition}")
