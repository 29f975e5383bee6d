"""WriteTxnMarkers: a coordinator has the leader of partitions write the markers that end transactions there."""

from collections.abc import Sequence
from typing import Final

from ropewalk.base.errors import ProducerFenced, RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.broker.peers.calls.call import Call, call
from ropewalk.broker.peers.calls.refusals import Refusals
from ropewalk.broker.peers.peers import Lane
from ropewalk.client.errors import RemoteError
from ropewalk.records.marker import TransactionMarker
from ropewalk.transactions.errors import TransactionalProducerFenced
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import write_txn_markers as wire

_REFUSALS: Final = Refusals(ProducerFenced, TransactionalProducerFenced)


def write_markers(
    wanted: Sequence[tuple[TransactionMarker, TopicPartition]],
) -> Call[list[RopewalkError | None]]:
    """One outcome for each, None where the marker is committed."""
    topics: dict[TransactionMarker, dict[str, list[int]]] = {}
    for marker, partition in wanted:
        indexes = topics.setdefault(marker, {}).setdefault(partition.topic, [])
        indexes.append(partition.partition)
    request = wire.WriteTxnMarkersRequest(tuple(_marker(marker, each) for marker, each in topics.items()))

    def understand(answer: wire.WriteTxnMarkersResponse) -> list[RopewalkError | None]:
        codes = {
            (result.producer_id, topic.name, partition.index): partition.error_code
            for result in answer.markers
            for topic in result.topics
            for partition in topic.partitions
        }
        return [
            _outcome(codes.get((marker.producer_id, partition.topic, partition.partition)), partition)
            for marker, partition in wanted
        ]

    return call(wire.API, request, understand, lane=Lane.MARKERS)


def _marker(marker: TransactionMarker, topics: dict[str, list[int]]) -> wire.WritableTxnMarker:
    return wire.WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.committed,
        topics=tuple(wire.WritableTxnMarkerTopic(name, tuple(indexes)) for name, indexes in topics.items()),
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.version,
    )


def _outcome(code: int | None, partition: TopicPartition) -> RopewalkError | None:
    """What was not answered was not done, as far as anybody can say."""
    if code is None:
        code = ErrorCode.UNKNOWN_SERVER_ERROR
    return None if code == ErrorCode.NONE else _REFUSALS.error(RemoteError(code, about=str(partition)))
