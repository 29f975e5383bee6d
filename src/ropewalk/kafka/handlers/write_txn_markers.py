"""WriteTxnMarkers: end transactions in partitions that this node leads.

Behaviour worth knowing
    It comes from coordinators, on the internal listener. From a client it is an administrator's abort of a transaction that hangs; a
    client that would have one committed is refused, and so is one that names a later epoch of the coordinator or the producer than
    the partition knows: no marker of the coordinator could end the transaction any more.
    All markers are in their logs before the first wait. A failure belongs to its partition.
"""

from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import ProducerEpoch, ProducerId, TopicPartition
from ropewalk.base.limits import MARKER_CALL_MS_MAX
from ropewalk.broker.coordinators.marker_writing import MarkerToWrite
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.records.marker import TransactionMarker
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


class Writing(Protocol):
    async def write(self, wanted: list[MarkerToWrite], *, timeout_ms: int) -> list[RopewalkError | None]: ...


async def handle(
    request: WriteTxnMarkersRequest, caller: Caller, *, writing: Writing
) -> WriteTxnMarkersResponse:
    """For coordinators."""
    del caller
    return await _write(request, writing, is_clients=False)


async def _write(
    request: WriteTxnMarkersRequest, writing: Writing, *, is_clients: bool
) -> WriteTxnMarkersResponse:
    wanted = [
        MarkerToWrite(_marker(each), TopicPartition(topic.name, index), is_clients)
        for each in request.markers
        for topic in each.topics
        for index in topic.partition_indexes
    ]
    outcomes = await writing.write(wanted, timeout_ms=MARKER_CALL_MS_MAX)
    return _respond(request, [ErrorCode.NONE if each is None else code_for(each) for each in outcomes])


async def handle_for_administrator(
    request: WriteTxnMarkersRequest, caller: Caller, *, writing: Writing
) -> WriteTxnMarkersResponse:
    if any(each.transaction_result for each in request.markers):
        count = sum(len(topic.partition_indexes) for each in request.markers for topic in each.topics)
        return _respond(request, [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * count)
    del caller
    return await _write(request, writing, is_clients=True)


def _marker(asked: WritableTxnMarker) -> TransactionMarker:
    return TransactionMarker(
        producer_id=ProducerId(asked.producer_id),
        producer_epoch=ProducerEpoch(asked.producer_epoch),
        committed=asked.transaction_result,
        coordinator_epoch=asked.coordinator_epoch,
        version=asked.transaction_version,
    )


def _respond(request: WriteTxnMarkersRequest, codes: list[ErrorCode]) -> WriteTxnMarkersResponse:
    remaining = iter(codes)
    return WriteTxnMarkersResponse(
        tuple(
            WritableTxnMarkerResult(
                each.producer_id,
                tuple(
                    WritableTxnMarkerTopicResult(
                        topic.name,
                        tuple(
                            WritableTxnMarkerPartitionResult(index, next(remaining))
                            for index in topic.partition_indexes
                        ),
                    )
                    for topic in each.topics
                ),
            )
            for each in request.markers
        )
    )
