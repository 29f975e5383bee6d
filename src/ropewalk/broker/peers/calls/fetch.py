"""Fetch, as one node asks another for what it copies from it: many partitions in one session.

What a reader could get wrong
    What came is understood partition by partition, when its turn comes: an answer may hold thousands, and most may be of no use by then.
    Records are a view of the frame they came in; whoever keeps them keeps the frame.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct
from typing_extensions import Buffer

from ropewalk.base.errors import (
    FetchSessionEpochInvalid,
    FetchSessionTopicsMixed,
    FetchSessionUnknown,
    RopewalkError,
)
from ropewalk.base.ids import LeaderEpoch, NodeId, Offset, TopicId
from ropewalk.broker.peers.calls.call import Call, call
from ropewalk.broker.peers.calls.refusals import Refusals
from ropewalk.broker.peers.peers import Lane
from ropewalk.client.errors import RemoteError
from ropewalk.log.epochs import EpochEnd
from ropewalk.replication.follower import Answer, Diverging, Elsewhere, Question, Records, Refusal
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch as wire

Key: TypeAlias = tuple[TopicId, int]

_VERSION: Final = 17
"""The first in which a replica says all that is wanted here."""

_REFUSALS: Final = Refusals(FetchSessionUnknown, FetchSessionEpochInvalid, FetchSessionTopicsMixed)

_FENCED: Final = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class ReplicaFetch(Struct, frozen=True, kw_only=True):
    """What a follower asks of one leader. Partitions that the session has and that are not named are asked for as before."""

    node_id: NodeId
    broker_epoch: int
    session_id: int
    session_epoch: int
    named: Mapping[TopicId, Sequence[tuple[int, Question]]]
    """By topic, the index of each partition and what is asked about it."""
    forgotten: Mapping[TopicId, Sequence[int]]
    """By topic, partitions that leave the session."""
    wait_ms_max: int
    bytes_min: int
    bytes_max: int
    partition_bytes_max: int


class Fetched:
    __slots__ = ("_topics", "session_id")

    def __init__(self, response: wire.FetchResponse) -> None:
        self.session_id = response.session_id
        self._topics = response.topics

    def partitions(self) -> Iterator[tuple[Key, Answer, Buffer]]:
        """What the leader answered about each partition, with the records that came."""
        for topic in self._topics:
            topic_id = TopicId(topic.topic_id)
            for data in topic.partitions:
                yield (topic_id, data.index), _answer(data), data.records or b""


def fetch(asked: ReplicaFetch) -> Call[Fetched | RopewalkError]:
    """An error where the leader refuses the fetch as a whole: one of a fetch session, or any other."""
    bytes_max = asked.partition_bytes_max
    topics = tuple(
        wire.FetchTopic(
            "",
            topic_id,
            tuple(
                wire.FetchPartition(
                    index,
                    question.leader_epoch,
                    question.fetch_offset,
                    question.last_fetched_epoch,
                    question.log_start_offset,
                    bytes_max,
                )
                for index, question in named
            ),
        )
        for topic_id, named in asked.named.items()
    )
    request = wire.FetchRequest(
        replica_state=wire.ReplicaState(asked.node_id, asked.broker_epoch),
        max_wait_ms=asked.wait_ms_max,
        min_bytes=asked.bytes_min,
        max_bytes=asked.bytes_max,
        session_id=asked.session_id,
        session_epoch=asked.session_epoch,
        topics=topics,
        forgotten_topics=tuple(
            wire.ForgottenTopic("", topic_id, tuple(indexes)) for topic_id, indexes in asked.forgotten.items()
        ),
    )
    return call(wire.API, request, understood, lane=Lane.REPLICAS, version_max=_VERSION)


def understood(response: wire.FetchResponse) -> Fetched | RopewalkError:
    if response.error_code != ErrorCode.NONE:
        return _REFUSALS.error(RemoteError(response.error_code))
    return Fetched(response)


def _answer(data: wire.PartitionData) -> Answer:
    if data.error_code == ErrorCode.NONE:
        diverging = data.diverging_epoch
        if diverging.epoch >= 0:
            return Diverging(EpochEnd(LeaderEpoch(diverging.epoch), Offset(diverging.end_offset)))
        return Records(Offset(data.high_watermark), Offset(data.log_start_offset))
    if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and data.log_start_offset >= 0:
        return Elsewhere(Offset(data.log_start_offset))
    if data.error_code in _FENCED:
        return Refusal.FENCED
    return Refusal.NOT_YET if data.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH else Refusal.OTHER
