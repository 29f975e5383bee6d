"""Fetch (key 1): read record batches, waiting for them if there are none yet. Consumers and followers use it.

v4  isolation_level, last_stable_offset, aborted_transactions
v5  log_start_offset
v7  fetch sessions
v9  current_leader_epoch
v10 zstd may be sent
v11 rack_id and preferred_read_replica
v12 flexible encoding; last_fetched_epoch, and the answer where logs diverge
v13 topics by id instead of by name
v15 a follower describes itself in replica_state
v16 the response may carry the current leader and where it is
v17 replica_directory_id
v18 the high watermark a follower knows
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import (
    UUID_ZERO,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    Uuid,
    since,
    tagged,
    until,
)


class ReplicaState(Message, frozen=True):
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class FetchPartition(Message, frozen=True):
    index: Int32
    current_leader_epoch: Annotated[Int32, since(9)] = -1
    fetch_offset: Int64 = 0
    last_fetched_epoch: Annotated[Int32, since(12)] = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    partition_max_bytes: Int32 = 0
    replica_directory_id: Annotated[Uuid, since(17), tagged(0)] = UUID_ZERO
    high_watermark: Annotated[Int64, since(18), tagged(1)] = 2**63 - 1


class FetchTopic(Message, frozen=True):
    name: Annotated[str, until(12)] = ""
    topic_id: Annotated[Uuid, since(13)] = UUID_ZERO
    partitions: tuple[FetchPartition, ...] = ()


class ForgottenTopic(Message, frozen=True):
    name: Annotated[str, since(7, until=12)] = ""
    topic_id: Annotated[Uuid, since(13)] = UUID_ZERO
    partitions: tuple[Int32, ...] = ()


class FetchRequest(Message, frozen=True):
    cluster_id: Annotated[str | None, since(12), tagged(0)] = None
    replica_id: Annotated[Int32, until(14)] = -1
    replica_state: Annotated[ReplicaState, since(15), tagged(1)] = ReplicaState()
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = 0x7FFFFFFF
    isolation_level: Int8 = 0
    session_id: Annotated[Int32, since(7)] = 0
    session_epoch: Annotated[Int32, since(7)] = -1
    topics: tuple[FetchTopic, ...] = ()
    forgotten_topics: Annotated[tuple[ForgottenTopic, ...], since(7)] = ()
    rack_id: Annotated[str, since(11)] = ""


class EpochEndOffset(Message, frozen=True):
    epoch: Int32 = -1
    end_offset: Int64 = -1


class LeaderIdAndEpoch(Message, frozen=True):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class SnapshotId(Message, frozen=True):
    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Message, frozen=True):
    producer_id: Int64
    first_offset: Int64


class PartitionData(Message, frozen=True):
    index: Int32
    error_code: Int16
    high_watermark: Int64
    last_stable_offset: Int64 = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    diverging_epoch: Annotated[EpochEndOffset, since(12), tagged(0)] = EpochEndOffset()
    current_leader: Annotated[LeaderIdAndEpoch, since(12), tagged(1)] = LeaderIdAndEpoch()
    snapshot_id: Annotated[SnapshotId, since(12), tagged(2)] = SnapshotId()
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None
    preferred_read_replica: Annotated[Int32, since(11)] = -1
    records: Records = None


class FetchableTopicResponse(Message, frozen=True):
    name: Annotated[str, until(12)] = ""
    topic_id: Annotated[Uuid, since(13)] = UUID_ZERO
    partitions: tuple[PartitionData, ...] = ()


class NodeEndpoint(Message, frozen=True):
    node_id: Int32
    host: str
    port: Int32
    rack: str | None = None


class FetchResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Annotated[Int16, since(7)] = 0
    session_id: Annotated[Int32, since(7)] = 0
    topics: tuple[FetchableTopicResponse, ...] = ()
    node_endpoints: Annotated[tuple[NodeEndpoint, ...], since(16), tagged(0)] = ()


API: Final = Api(
    key=1,
    name="Fetch",
    versions=range(4, 18 + 1),
    flexible_since=12,
    request=FetchRequest,
    response=FetchResponse,
)
