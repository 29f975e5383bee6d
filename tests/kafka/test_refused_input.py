"""What groups and transactions refuse, each with the code that Kafka gives: one table.

Every row meets the same stage: a topic `t`, a classic group `g` with one member, and a transactional producer with a transaction open.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import pytest

from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    describe_transactions,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_transactions,
    offset_delete,
    sync_group,
)
from tests.kafka.door import Door, at_the_door
from tests.kafka.test_group_apis import commit, committing, find, member
from tests.kafka.transactional import Transactional

SETTINGS = (
    "group.initial.rebalance.delay.ms=0",
    "offsets.topic.num.partitions=1",
    "transaction.state.log.num.partitions=1",
    "transaction.max.timeout.ms=60000",
)


class Stage(NamedTuple):
    door: Door
    member: join_group.JoinGroupResponse
    producer: Transactional


Ask = Callable[[Stage], Awaitable[int]]


async def unknown_group_described(stage: Stage) -> int:
    request = describe_groups.DescribeGroupsRequest(("nobody",))
    return (await stage.door.call(describe_groups.API, 6, request)).groups[0].error_code


async def unknown_group_deleted(stage: Stage) -> int:
    request = delete_groups.DeleteGroupsRequest(("nobody",))
    return (await stage.door.call(delete_groups.API, 2, request)).results[0].error_code


async def unknown_group_forgets_offsets(stage: Stage) -> int:
    request = offset_delete.OffsetDeleteRequest("nobody", ())
    return (await stage.door.call(offset_delete.API, 0, request)).error_code


async def group_in_use_deleted(stage: Stage) -> int:
    request = delete_groups.DeleteGroupsRequest(("g",))
    return (await stage.door.call(delete_groups.API, 2, request)).results[0].error_code


async def stranger_beats(stage: Stage) -> int:
    request = heartbeat.HeartbeatRequest("g", stage.member.generation_id, "stranger")
    return (await stage.door.call(heartbeat.API, 4, request)).error_code


async def stranger_leaves(stage: Stage) -> int:
    request = leave_group.LeaveGroupRequest("g", members=(leave_group.MemberIdentity("stranger"),))
    return (await stage.door.call(leave_group.API, 5, request)).members[0].error_code


async def beat_of_another_generation(stage: Stage) -> int:
    request = heartbeat.HeartbeatRequest("g", stage.member.generation_id + 1, stage.member.member_id)
    return (await stage.door.call(heartbeat.API, 4, request)).error_code


async def sync_of_another_generation(stage: Stage) -> int:
    request = sync_group.SyncGroupRequest("g", stage.member.generation_id - 1, stage.member.member_id)
    return (await stage.door.call(sync_group.API, 5, request)).error_code


async def commit_of_another_generation(stage: Stage) -> int:
    request = committing(1, generation=stage.member.generation_id - 1, member_id=stage.member.member_id)
    return await commit(stage.door, request)


async def commit_in_transaction_of_another_generation(stage: Stage) -> int:
    generation, member_id = stage.member.generation_id - 1, stage.member.member_id
    return await stage.producer.commit_offset("g", "t", 1, generation=generation, member_id=member_id)


async def commit_in_transaction_by_a_stranger(stage: Stage) -> int:
    generation = stage.member.generation_id
    return await stage.producer.commit_offset("g", "t", 1, generation=generation, member_id="stranger")


async def commit_with_much_metadata(stage: Stage) -> int:
    generation, member_id = stage.member.generation_id, stage.member.member_id
    return await commit(
        stage.door, committing(1, generation=generation, member_id=member_id, metadata="m" * 4097)
    )


async def commit_in_transaction_with_much_metadata(stage: Stage) -> int:
    return await stage.producer.commit_offset("g", "t", 1, metadata="m" * 4097)


async def commit_in_transaction_of_an_unknown_topic(stage: Stage) -> int:
    return await stage.producer.commit_offset("g", "nowhere", 1)


async def subscription_by_an_illegal_expression(stage: Stage) -> int:
    request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        "expressions", "m", 0, rebalance_timeout_ms=60_000, subscribed_topic_regex="(", topic_partitions=()
    )
    return (await stage.door.call(consumer_group_heartbeat.API, 1, request)).error_code


async def transactions_by_an_illegal_expression(stage: Stage) -> int:
    request = list_transactions.ListTransactionsRequest((), (), -1, "(")
    return (await stage.door.call(list_transactions.API, 2, request)).error_code


async def session_too_short(stage: Stage) -> int:
    request = join_group.JoinGroupRequest("g", 1, 60_000, "", protocol_type="consumer")
    return (await stage.door.call(join_group.API, 9, request)).error_code


async def init(stage: Stage, transactional_id: str, timeout_ms: int, **identity: int) -> int:
    request = init_producer_id.InitProducerIdRequest(transactional_id, timeout_ms, **identity)
    return (await stage.door.call(init_producer_id.API, 5, request)).error_code


async def timeout_above_the_maximum(stage: Stage) -> int:
    return await init(stage, "another", 60_001)


async def no_timeout(stage: Stage) -> int:
    return await init(stage, "another", 0)


async def empty_transactional_id(stage: Stage) -> int:
    return await init(stage, "", 1_000)


async def half_an_identity(stage: Stage) -> int:
    return await init(stage, "another", 1_000, producer_id=1)


async def identity_of_a_stranger(stage: Stage) -> int:
    return await init(stage, "t", 1_000, producer_id=4711, producer_epoch=0)


async def zombie(stage: Stage) -> Transactional:
    """The producer on the stage, after another has taken its place."""
    await Transactional(stage.door).init()
    return stage.producer


async def zombie_writes(stage: Stage) -> int:
    return (await (await zombie(stage)).send("t", "late")).error_code


async def zombie_writes_elsewhere(stage: Stage) -> int:
    return (await (await zombie(stage)).send("u", "late")).error_code


async def zombie_adds(stage: Stage) -> int:
    return (await (await zombie(stage)).add("u", 0))[0]


async def old_zombie_adds(stage: Stage) -> int:
    return (await (await zombie(stage)).add("u", 0, version=1))[0]


async def zombie_adds_offsets(stage: Stage) -> int:
    return await (await zombie(stage)).add_offsets("g")


async def zombie_commits_offsets(stage: Stage) -> int:
    return await (await zombie(stage)).commit_offset("g", "t", 1)


async def zombie_commits(stage: Stage) -> int:
    return await (await zombie(stage)).end(committed=True)


async def old_zombie_commits(stage: Stage) -> int:
    return await (await zombie(stage)).end(committed=True, version=1)


async def unknown_transaction_described(stage: Stage) -> int:
    request = describe_transactions.DescribeTransactionsRequest(("nobody",))
    return (await stage.door.call(describe_transactions.API, 0, request)).transaction_states[0].error_code


async def commit_of_nothing(stage: Stage) -> int:
    """Before anything was written there is nothing to commit."""
    idle = await Transactional(stage.door, "idle", tv2=False).init()
    return await idle.end(committed=True)


TABLE: list[tuple[Ask, ErrorCode]] = [
    (unknown_group_described, ErrorCode.GROUP_ID_NOT_FOUND),
    (unknown_group_deleted, ErrorCode.GROUP_ID_NOT_FOUND),
    (unknown_group_forgets_offsets, ErrorCode.GROUP_ID_NOT_FOUND),
    (group_in_use_deleted, ErrorCode.NON_EMPTY_GROUP),
    (stranger_beats, ErrorCode.UNKNOWN_MEMBER_ID),
    (stranger_leaves, ErrorCode.UNKNOWN_MEMBER_ID),
    (beat_of_another_generation, ErrorCode.ILLEGAL_GENERATION),
    (sync_of_another_generation, ErrorCode.ILLEGAL_GENERATION),
    (commit_of_another_generation, ErrorCode.ILLEGAL_GENERATION),
    (commit_in_transaction_of_another_generation, ErrorCode.ILLEGAL_GENERATION),
    (commit_in_transaction_by_a_stranger, ErrorCode.UNKNOWN_MEMBER_ID),
    (commit_with_much_metadata, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    (commit_in_transaction_with_much_metadata, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    (commit_in_transaction_of_an_unknown_topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    (subscription_by_an_illegal_expression, ErrorCode.INVALID_REGULAR_EXPRESSION),
    (transactions_by_an_illegal_expression, ErrorCode.INVALID_REGULAR_EXPRESSION),
    (session_too_short, ErrorCode.INVALID_SESSION_TIMEOUT),
    (timeout_above_the_maximum, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    (no_timeout, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    (empty_transactional_id, ErrorCode.INVALID_REQUEST),
    (half_an_identity, ErrorCode.INVALID_REQUEST),
    (identity_of_a_stranger, ErrorCode.PRODUCER_FENCED),
    (zombie_writes, ErrorCode.INVALID_PRODUCER_EPOCH),
    (zombie_writes_elsewhere, ErrorCode.INVALID_PRODUCER_EPOCH),
    (zombie_adds, ErrorCode.PRODUCER_FENCED),
    (old_zombie_adds, ErrorCode.INVALID_PRODUCER_EPOCH),
    (zombie_adds_offsets, ErrorCode.PRODUCER_FENCED),
    (zombie_commits_offsets, ErrorCode.INVALID_PRODUCER_EPOCH),
    (zombie_commits, ErrorCode.PRODUCER_FENCED),
    (old_zombie_commits, ErrorCode.INVALID_PRODUCER_EPOCH),
    (unknown_transaction_described, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
    (commit_of_nothing, ErrorCode.INVALID_TXN_STATE),
]


@pytest.mark.parametrize(("ask", "expected"), TABLE, ids=[ask.__name__.replace("_", " ") for ask, _ in TABLE])
def test_refused(ask: Ask, expected: ErrorCode) -> None:
    async def story(door: Door) -> int:
        for topic in ("t", "u"):
            await door.create(topic)
        await find(door)
        producer = await Transactional(door).init(timeout_ms=50_000)
        assert (await producer.send("t", "one")).error_code == 0
        return await ask(Stage(door, await member(door), producer))

    assert at_the_door(story, *SETTINGS) == expected
