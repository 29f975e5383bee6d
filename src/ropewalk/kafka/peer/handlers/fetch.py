"""Fetch, as replicas use it: copy a partition from its leader.

Behaviour worth knowing
    The offset that a replica asks for is what it holds, durably if the topic's `flush` says so. It moves the high watermark,
    if the replica knows the leader's epoch and its log continues the leader's; otherwise it is told where the two part.
    It is given what is not committed yet, and woken by what is appended.
    No client's quota is charged. Replicas out of sync share `leader.replication.throttled.rate`.
"""

from ropewalk.base.budget import ByteBudget
from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.base.ports import Clock, Pool
from ropewalk.broker.partitions.hosted_partitions import HostedPartitions
from ropewalk.broker.reading.fetch_session import ReplicaReader
from ropewalk.broker.reading.fetch_sessions import FetchSessions
from ropewalk.broker.reading.leader_throttle import LeaderThrottle
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.handlers import fetch
from ropewalk.kafka.peer.identity import check_identity
from ropewalk.wire.messages.fetch import FetchRequest, FetchResponse


async def handle(
    request: FetchRequest,
    caller: Caller,
    *,
    hosted: HostedPartitions,
    sessions: FetchSessions,
    pool: Pool,
    budget: ByteBudget,
    clock: Clock,
    bytes_max: int,
    throttle: LeaderThrottle,
) -> FetchResponse | None:
    state = request.replica_state
    try:
        check_identity(caller, state.replica_id)
    except RopewalkError as error:
        return FetchResponse(throttle_ms=0, error_code=code_for(error))
    return await fetch.answer(
        request,
        caller,
        ReplicaReader(NodeId(state.replica_id), state.replica_epoch),
        hosted=hosted,
        sessions=sessions,
        pool=pool,
        budget=budget,
        clock=clock,
        bytes_max=bytes_max,
        throttle=throttle,
    )
