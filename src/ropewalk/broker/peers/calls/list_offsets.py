"""ListOffsets, as one node asks another how far its copy of a partition goes, whoever leads."""

from typing import TypeAlias

from ropewalk.base.errors import ProtocolError
from ropewalk.base.ids import TopicPartition
from ropewalk.broker.peers.calls.call import Call, call
from ropewalk.client.errors import RemoteError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import list_offsets as wire

Extent: TypeAlias = tuple[int, int]
"""The epoch of the last records, and where they end."""


def extent_of(partition: TopicPartition) -> Call[Extent]:
    """Raises `RemoteError` where that node has no copy that it could speak of."""
    asked = wire.ListOffsetsPartition(index=partition.partition, timestamp=wire.LATEST)
    request = wire.ListOffsetsRequest(
        replica_id=wire.ANY_COPY, topics=(wire.ListOffsetsTopic(partition.topic, (asked,)),)
    )

    def understand(response: wire.ListOffsetsResponse) -> Extent:
        for answer in (each for topic in response.topics for each in topic.partitions):
            if answer.error_code != ErrorCode.NONE:
                raise RemoteError(answer.error_code, about=str(partition))
            return answer.leader_epoch, answer.offset
        raise ProtocolError(f"ListOffsets was answered without a word about {partition}")

    return call(wire.API, request, understand)
