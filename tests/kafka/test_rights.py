"""Rights at the Kafka door, beyond the matrix: what is hidden, what is revoked meanwhile, and what is easily got wrong."""

import asyncio
from functools import partial

import pytest

from ropewalk.base.errors import InvalidSetting
from ropewalk.broker.access import NODE
from ropewalk.kafka.caller import Disconnect
from ropewalk.metadata.settings.rights import STANDARD_AUTHORIZER
from ropewalk.node.kafka_door import serve_here
from ropewalk.security.access import CLUSTER_NAME, Filter, Operation, Pattern, Permission, ResourceType, Rule
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    add_partitions_to_txn,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_topic_partitions,
    fetch,
    init_producer_id,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    produce,
)
from tests.kafka.door import Door, at_the_door, batch_of
from tests.kafka.rights_world import ADMIN, ALICE, RightsWorld, in_a_world_of_rights, rule

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
CLUSTER = ResourceType.CLUSTER
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
DESCRIBE, READ, WRITE, CREATE = Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.CREATE


async def make(world: RightsWorld, *names: str) -> dict[str, bytes]:
    request = create_topics.CreateTopicsRequest(
        tuple(create_topics.CreatableTopic(name, 1, 1) for name in names)
    )
    made = await world.ask(create_topics.API, 7, request, principal=ADMIN)
    assert made.codes == {0}
    return {each.name: each.topic_id for each in made.response.topics}


async def write(world: RightsWorld, name: str, *, principal: str = ADMIN, acks: int = -1) -> set[int]:
    data = produce.PartitionProduceData(0, bytes(batch_of("a")))
    request = produce.ProduceRequest(None, acks, 1000, (produce.TopicProduceData(name, partitions=(data,)),))
    return (await world.ask(produce.API, 9, request, principal=principal)).codes


async def metadata_of(
    world: RightsWorld, request: metadata.MetadataRequest, version: int = 12
) -> dict[str | None, metadata.MetadataResponseTopic]:
    answer = await world.ask(metadata.API, version, request)
    return {topic.name: topic for topic in answer.response.topics}


def named(*names: str, creates: bool = True) -> metadata.MetadataRequest:
    return metadata.MetadataRequest(
        tuple(metadata.MetadataRequestTopic(name=name) for name in names), allow_auto_topic_creation=creates
    )


def test_metadata_of_all_topics_tells_of_those_that_may_be_described() -> None:
    async def story(world: RightsWorld) -> None:
        await make(world, "mine", "theirs")
        await world.allow(rule(TOPIC, "mine", READ))
        assert set(await metadata_of(world, metadata.MetadataRequest(None))) == {"mine"}
        assert set(await metadata_of(world, metadata.MetadataRequest(()), version=0)) == {"mine"}
        answer = await world.ask(metadata.API, 0, named("theirs"))
        assert [each.error_code for each in answer.response.topics] == [REFUSED]
        assert answer.response.brokers

    in_a_world_of_rights(story)


def test_a_topic_is_made_on_demand_by_those_who_may_create_it() -> None:
    async def story(world: RightsWorld) -> None:
        await world.allow(rule(TOPIC, "new", DESCRIBE))
        assert (await metadata_of(world, named("new")))["new"].error_code == REFUSED
        assert "new" not in world.parts.cluster.image.topics
        absent = await metadata_of(world, named("new", creates=False))
        assert absent["new"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await world.allow(rule(TOPIC, "new", CREATE))
        assert (await metadata_of(world, named("new")))["new"].error_code == ErrorCode.NONE

    in_a_world_of_rights(story)


def test_whether_a_topic_exists_is_not_told_by_name_and_its_name_not_by_id() -> None:
    async def story(world: RightsWorld) -> None:
        ids = await make(world, "theirs")
        told = await metadata_of(world, named("theirs", "absent", creates=False))
        there, absent = told["theirs"], told["absent"]
        assert (
            (there.error_code, there.topic_id) == (absent.error_code, absent.topic_id) == (REFUSED, bytes(16))
        )
        by_id = metadata.MetadataRequest((metadata.MetadataRequestTopic(ids["theirs"]),))
        (topic,) = (await world.ask(metadata.API, 12, by_id)).response.topics
        assert (topic.error_code, topic.name, topic.topic_id) == (REFUSED, None, ids["theirs"])
        deletion = delete_topics.DeleteTopicsRequest(
            (
                delete_topics.DeleteTopicState(None, ids["theirs"]),
                delete_topics.DeleteTopicState(None, b"x" * 16),
            )
        )
        known, unknown = (await world.ask(delete_topics.API, 6, deletion)).response.topics[::-1]
        assert (known.error_code, known.name) == (REFUSED, None)
        assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID
        await world.allow(rule(TOPIC, "theirs", DESCRIBE))
        known = (await world.ask(delete_topics.API, 6, deletion)).response.topics[-1]
        assert (known.error_code, known.name) == (REFUSED, "theirs")

    in_a_world_of_rights(story)


def test_the_operations_that_are_told_are_those_that_are_allowed() -> None:
    async def story(world: RightsWorld) -> None:
        await make(world, "mine")
        await world.allow(rule(TOPIC, "mine", WRITE))
        asked = metadata.MetadataRequest(
            (metadata.MetadataRequestTopic(name="mine"),),
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        )
        answer = (await world.ask(metadata.API, 8, asked)).response
        assert answer.topics[0].topic_authorized_operations == 1 << WRITE | 1 << DESCRIBE
        assert answer.cluster_authorized_operations == 0
        await world.allow(rule(CLUSTER, CLUSTER_NAME, Operation.ALTER))
        answer = (await world.ask(metadata.API, 8, asked)).response
        assert answer.cluster_authorized_operations == 1 << Operation.ALTER | 1 << DESCRIBE

    in_a_world_of_rights(story)


def test_the_pages_of_all_topics_have_those_that_may_be_described_and_no_others() -> None:
    async def story(world: RightsWorld) -> None:
        await make(world, "a-mine", "b-theirs", "c-mine")
        await world.allow(rule(TOPIC, "a-mine", DESCRIBE), rule(TOPIC, "c-mine", DESCRIBE))
        cursor, told = None, []
        while True:
            request = describe_topic_partitions.DescribeTopicPartitionsRequest((), 1, cursor)
            answer = await world.ask(describe_topic_partitions.API, 0, request)
            assert b"theirs" not in answer.body
            told += [topic.name for topic in answer.response.topics]
            cursor = answer.response.next_cursor
            if cursor is None:
                break
        assert told == ["a-mine", "c-mine"]
        at_theirs = describe_topic_partitions.DescribeTopicPartitionsRequest(
            (), 9, describe_topic_partitions.Cursor("b-theirs", 0)
        )
        answer = await world.ask(describe_topic_partitions.API, 0, at_theirs)
        assert [topic.name for topic in answer.response.topics] == ["c-mine"]

    in_a_world_of_rights(story)


def test_only_what_is_allowed_of_a_produce_is_written_and_without_acks_the_connection_ends() -> None:
    async def story(world: RightsWorld) -> None:
        await make(world, "mine", "theirs")
        await world.allow(rule(TOPIC, "mine", WRITE))
        data = produce.PartitionProduceData(0, bytes(batch_of("a")))
        both = tuple(produce.TopicProduceData(name, partitions=(data,)) for name in ("theirs", "mine"))
        answer = await world.ask(produce.API, 9, produce.ProduceRequest(None, -1, 1000, both))
        outcome = {topic.name: topic.partitions[0].error_code for topic in answer.response.topics}
        assert outcome == {"mine": ErrorCode.NONE, "theirs": REFUSED}
        with pytest.raises(Disconnect):
            await world.ask(produce.API, 9, produce.ProduceRequest(None, 0, 1000, both))
        ends = {name: world.parts.partitions.find(name, 0).log.end_offset for name in ("mine", "theirs")}
        assert ends == {"mine": 2, "theirs": 0}

    in_a_world_of_rights(story)


def fetch_of(
    *names: str, session: tuple[int, int] = (0, -1), wait_ms: int = 0, min_bytes: int = 0
) -> fetch.FetchRequest:
    return fetch.FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        session_id=session[0],
        session_epoch=session[1],
        topics=tuple(
            fetch.FetchTopic(name, partitions=(fetch.FetchPartition(0, partition_max_bytes=1 << 20),))
            for name in names
        ),
    )


def outcomes(response: fetch.FetchResponse) -> dict[str, tuple[int, bool]]:
    return {
        topic.name: (topic.partitions[0].error_code, bool(topic.partitions[0].records))
        for topic in response.topics
    }


def test_a_session_gives_nothing_after_a_revocation_also_of_what_had_no_news() -> None:
    async def story(world: RightsWorld) -> None:
        await make(world, "quiet", "busy")
        reading = [rule(TOPIC, "quiet", READ), rule(TOPIC, "busy", READ)]
        await world.allow(*reading)
        first = (await world.ask(fetch.API, 12, fetch_of("quiet", "busy", session=(0, 0)))).response
        assert outcomes(first) == {"quiet": (0, False), "busy": (0, False)}
        session_id = first.session_id
        again = (await world.ask(fetch.API, 12, fetch_of(session=(session_id, 1)))).response
        assert again.topics == ()
        await write(world, "busy")
        await world.rule_by(reading[:1])
        refused = (await world.ask(fetch.API, 12, fetch_of(session=(session_id, 2)))).response
        assert outcomes(refused) == {"busy": (REFUSED, False)}
        await world.forget()
        refused = (await world.ask(fetch.API, 12, fetch_of(session=(session_id, 3)))).response
        assert outcomes(refused) == {"busy": (REFUSED, False), "quiet": (REFUSED, False)}
        await world.allow(*reading)
        given = (await world.ask(fetch.API, 12, fetch_of(session=(session_id, 4)))).response
        assert outcomes(given)["busy"] == (0, True)

    in_a_world_of_rights(story)


def test_a_session_is_decided_by_whoever_fetches_and_not_by_who_began_it() -> None:
    async def story(world: RightsWorld) -> None:
        await make(world, "theirs")
        await write(world, "theirs")
        first = await world.ask(fetch.API, 12, fetch_of("theirs", session=(0, 0)), principal=ADMIN)
        assert outcomes(first.response) == {"theirs": (0, True)}
        taken = await world.ask(fetch.API, 12, fetch_of(session=(first.response.session_id, 1)))
        assert outcomes(taken.response) == {"theirs": (REFUSED, False)}

    in_a_world_of_rights(story)


def test_a_fetch_that_waits_ends_with_the_refusal_when_the_right_is_revoked() -> None:
    async def story(world: RightsWorld) -> None:
        await make(world, "mine")
        await world.allow(rule(TOPIC, "mine", READ))
        request = fetch_of("mine", wait_ms=500_000, min_bytes=1)
        began_at_s = world.door.world.now_s
        waiting = asyncio.ensure_future(world.ask(fetch.API, 12, request))
        await asyncio.sleep(1)
        assert not waiting.done()
        await world.forget()
        assert outcomes((await waiting).response) == {"mine": (REFUSED, False)}
        assert world.door.world.now_s - began_at_s < 60

    in_a_world_of_rights(story)


def test_one_partition_that_is_refused_keeps_the_whole_transaction_from_going_on() -> None:
    async def story(world: RightsWorld) -> None:
        await make(world, "mine", "theirs")
        await world.allow(rule(ResourceType.TRANSACTIONAL_ID, "t", WRITE), rule(TOPIC, "mine", WRITE))
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            (),
            "t",
            1,
            0,
            tuple(add_partitions_to_txn.AddPartitionsToTxnTopic(name, (0,)) for name in ("mine", "theirs")),
        )
        answer = (await world.ask(add_partitions_to_txn.API, 3, request)).response
        codes = {
            each.name: each.results_by_partition[0].partition_error_code
            for each in answer.results_by_topic_v3_and_below
        }
        assert codes == {"mine": ErrorCode.OPERATION_NOT_ATTEMPTED, "theirs": REFUSED}

    in_a_world_of_rights(story)


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        pytest.param([], ErrorCode.CLUSTER_AUTHORIZATION_FAILED, id="nothing"),
        pytest.param(
            [rule(CLUSTER, CLUSTER_NAME, Operation.IDEMPOTENT_WRITE)], ErrorCode.NONE, id="the cluster"
        ),
        pytest.param([rule(TOPIC, "any", WRITE)], ErrorCode.NONE, id="a topic"),
        pytest.param([rule(TOPIC, "any", WRITE, pattern=Pattern.PREFIXED)], ErrorCode.NONE, id="a prefix"),
        pytest.param([rule(TOPIC, "any", READ)], ErrorCode.CLUSTER_AUTHORIZATION_FAILED, id="only to read"),
        pytest.param(
            [rule(TOPIC, "any", WRITE), rule(TOPIC, "*", WRITE, permission=Permission.DENY)],
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            id="a topic, and all are denied",
        ),
    ],
)
def test_an_idempotent_producer_needs_a_topic_to_write_to(rules: list[Rule], code: ErrorCode) -> None:
    async def story(world: RightsWorld) -> None:
        await world.allow(*rules)
        answer = await world.ask(init_producer_id.API, 4, init_producer_id.InitProducerIdRequest(None, 0))
        assert answer.response.error_code == code

    in_a_world_of_rights(story)


def test_settings_of_a_topic_that_was_made_are_told_to_those_who_may_describe_them() -> None:
    async def story(world: RightsWorld) -> None:
        await world.allow(rule(TOPIC, "new", CREATE, pattern=Pattern.PREFIXED))
        for name, extra in (("new-1", []), ("new-2", [rule(TOPIC, "new-2", Operation.DESCRIBE_CONFIGS)])):
            await world.allow(*extra)
            request = create_topics.CreateTopicsRequest((create_topics.CreatableTopic(name, 1, 1),))
            (result,) = (await world.ask(create_topics.API, 7, request)).response.topics
            assert result.error_code == ErrorCode.NONE
            assert bool(result.configs) == bool(extra)
            assert result.topic_config_error_code == (ErrorCode.NONE if extra else REFUSED)
        refused = create_topics.CreateTopicsRequest(
            (create_topics.CreatableTopic("other", 1, 1),), 1000, True
        )
        (result,) = (await world.ask(create_topics.API, 7, refused)).response.topics
        assert result.error_code == REFUSED

    in_a_world_of_rights(story)


def beat(
    member_id: str, *, names: tuple[str, ...] | None = None, pattern: str | None = None, epoch: int = 0
) -> consumer_group_heartbeat.ConsumerGroupHeartbeatRequest:
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        "g",
        member_id,
        epoch,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=names,
        subscribed_topic_regex=pattern,
        topic_partitions=(),
    )


def assigned(
    world: RightsWorld, response: consumer_group_heartbeat.ConsumerGroupHeartbeatResponse
) -> set[str]:
    topics = {bytes(key): topic for key, topic in world.parts.cluster.image.topics_by_id.items()}
    assert response.assignment is not None
    return {topics[each.topic_id].name for each in response.assignment.topic_partitions}


def test_a_regular_expression_matches_only_what_its_member_may_describe() -> None:
    async def story(world: RightsWorld) -> None:
        await make(world, "log-mine", "log-theirs")
        await world.parts.groups.coordinator("g")
        await world.allow(rule(GROUP, "g", READ), rule(TOPIC, "log-mine", READ))
        joined = (await world.ask(consumer_group_heartbeat.API, 1, beat("m", pattern=".*"))).response
        assert joined.error_code == ErrorCode.NONE
        assert assigned(world, joined) == {"log-mine"}
        await world.allow(rule(TOPIC, "log-theirs", READ))
        later = (
            await world.ask(
                consumer_group_heartbeat.API, 1, beat("m", pattern=".*", epoch=joined.member_epoch)
            )
        ).response
        assert assigned(world, later) == {"log-mine", "log-theirs"}

    in_a_world_of_rights(story)


def test_a_description_of_a_group_tells_of_no_topic_that_may_not_be_described() -> None:
    async def story(world: RightsWorld) -> None:
        await make(world, "mine", "theirs")
        await world.parts.groups.coordinator("g")
        joined = await world.ask(
            consumer_group_heartbeat.API, 1, beat("m", names=("mine", "theirs")), principal=ADMIN
        )
        assert joined.codes == {0}
        await world.allow(rule(GROUP, "g", DESCRIBE), rule(TOPIC, "mine", DESCRIBE))
        request = consumer_group_describe.ConsumerGroupDescribeRequest(
            ("g",), include_authorized_operations=True
        )
        answer = await world.ask(consumer_group_describe.API, 1, request)
        assert [(each.error_code, each.members) for each in answer.response.groups] == [(REFUSED, ())]
        assert b"theirs" not in answer.body
        await world.allow(rule(TOPIC, "theirs", DESCRIBE))
        (group,) = (await world.ask(consumer_group_describe.API, 1, request)).response.groups
        assert (group.error_code, len(group.members)) == (0, 1)
        assert group.authorized_operations == 1 << DESCRIBE

    in_a_world_of_rights(story)


def test_of_all_offsets_of_a_group_those_of_other_topics_are_left_out() -> None:
    async def story(world: RightsWorld) -> None:
        await make(world, "mine", "theirs")
        await world.parts.groups.coordinator("g")
        topics = tuple(
            offset_commit.OffsetCommitRequestTopic(
                name, partitions=(offset_commit.OffsetCommitRequestPartition(0, 1),)
            )
            for name in ("mine", "theirs")
        )
        await world.ask(
            offset_commit.API, 8, offset_commit.OffsetCommitRequest("g", topics=topics), principal=ADMIN
        )
        await world.allow(rule(GROUP, "g", DESCRIBE), rule(TOPIC, "mine", DESCRIBE))
        for version in offset_fetch.API.versions:
            if version < 2:
                continue  # which cannot ask for all
            if version < 8:
                request = offset_fetch.OffsetFetchRequest("g", None)
            else:
                group = offset_fetch.OffsetFetchRequestGroup("g", topics=None)
                request = offset_fetch.OffsetFetchRequest(groups=(group,))
            answer = await world.ask(offset_fetch.API, version, request)
            assert b"theirs" not in answer.body
            found = answer.response.topics or answer.response.groups[0].topics
            assert len(found) == 1
            assert found[0].partitions[0].committed_offset == 1

    in_a_world_of_rights(story)


def test_a_group_that_is_named_twice_tells_no_more_than_once() -> None:
    async def story(world: RightsWorld) -> None:
        await make(world, "theirs")
        await world.parts.groups.coordinator("g")
        partitions = (offset_commit.OffsetCommitRequestPartition(0, 1),)
        topics = (offset_commit.OffsetCommitRequestTopic("theirs", partitions=partitions),)
        await world.ask(
            offset_commit.API, 8, offset_commit.OffsetCommitRequest("g", topics=topics), principal=ADMIN
        )
        await world.allow(rule(GROUP, "g", DESCRIBE))
        twice = tuple(offset_fetch.OffsetFetchRequestGroup("g", topics=each) for each in (None, ()))
        answer = await world.ask(offset_fetch.API, 8, offset_fetch.OffsetFetchRequest(groups=twice))
        assert b"theirs" not in answer.body

    in_a_world_of_rights(story)


def test_a_name_beside_the_id_of_another_topic_does_not_bring_its_name_out() -> None:
    async def story(world: RightsWorld) -> None:
        ids = await make(world, "theirs")
        both = delete_topics.DeleteTopicsRequest((delete_topics.DeleteTopicState("mine", ids["theirs"]),))
        answer = await world.ask(delete_topics.API, 6, both)
        assert b"theirs" not in answer.body

    in_a_world_of_rights(story)


def test_topics_of_the_cluster_itself_are_out_of_reach_of_wildcards() -> None:
    async def story(world: RightsWorld) -> None:
        await world.parts.groups.coordinator("g")  # which makes the topic
        everything = [
            rule(TOPIC, "*", Operation.ALL),
            rule(TOPIC, "__", Operation.ALL, pattern=Pattern.PREFIXED),
        ]
        await world.allow(*everything)
        assert "__consumer_offsets" not in await metadata_of(world, metadata.MetadataRequest(None))
        answer = await world.ask(fetch.API, 12, fetch_of("__consumer_offsets"))
        assert outcomes(answer.response) == {"__consumer_offsets": (REFUSED, False)}
        await world.allow(rule(TOPIC, "__consumer_offsets", READ))
        answer = await world.ask(fetch.API, 12, fetch_of("__consumer_offsets"))
        assert outcomes(answer.response)["__consumer_offsets"][0] == ErrorCode.NONE

    in_a_world_of_rights(story)


@pytest.mark.parametrize("is_administrator", [False, True])
def test_with_deletion_by_administrators_the_right_to_delete_is_not_enough(is_administrator: bool) -> None:
    async def story(world: RightsWorld) -> None:
        await make(world, "mine")
        await world.parts.groups.coordinator("g")
        await world.allow(
            rule(TOPIC, "mine", Operation.ALL),
            rule(GROUP, "g", Operation.ALL),
            *([rule(CLUSTER, CLUSTER_NAME, Operation.ALTER)] if is_administrator else []),
        )
        partitions = (delete_records.DeleteRecordsPartition(0, 0),)
        offsets = (
            offset_delete.OffsetDeleteRequestTopic("mine", (offset_delete.OffsetDeleteRequestPartition(0),)),
        )
        for api, version, request, refusal in (
            (delete_groups.API, 2, delete_groups.DeleteGroupsRequest(("g",)), 30),
            (offset_delete.API, 0, offset_delete.OffsetDeleteRequest("g", offsets), 30),
            (
                delete_records.API,
                2,
                delete_records.DeleteRecordsRequest(
                    (delete_records.DeleteRecordsTopic("mine", partitions),), 1000
                ),
                29,
            ),
            (delete_topics.API, 5, delete_topics.DeleteTopicsRequest((), ("mine",), 1000), 29),
        ):
            assert (refusal in (await world.ask(api, version, request)).codes) == (not is_administrator)
        assert ("mine" in world.parts.cluster.image.topics) == (not is_administrator)

    in_a_world_of_rights(story, "cluster.delete.by=admin")


def test_a_forwarded_request_is_decided_by_who_sent_it_and_not_by_who_forwards_it() -> None:
    async def story(world: RightsWorld) -> None:
        request = create_topics.CreateTopicsRequest((create_topics.CreatableTopic("new", 1, 1),))
        assert REFUSED in (await world.ask_elsewhere(create_topics.API, 7, request)).codes
        own = await world.ask_elsewhere(create_topics.API, 7, request, principal=NODE)
        assert own.codes == {0}, "a node makes topics for itself"
        assert REFUSED in (await world.ask(create_topics.API, 7, request, principal="User:ropewalk")).codes

    in_a_world_of_rights(story)


def test_a_right_of_a_group_is_its_members_also_where_the_request_is_forwarded() -> None:
    async def story(world: RightsWorld) -> None:
        await world.allow(rule(TOPIC, "new", CREATE, pattern=Pattern.PREFIXED, principal="Group:crew"))
        for number, ask in enumerate((world.ask, world.ask_elsewhere)):
            request = create_topics.CreateTopicsRequest(
                (create_topics.CreatableTopic(f"new-{number}", 1, 1),)
            )
            assert REFUSED in (await ask(create_topics.API, 7, request)).codes
            allowed = await ask(create_topics.API, 7, request, groups=("crew",))
            assert allowed.response.topics[0].error_code == 0

    in_a_world_of_rights(story)


def test_nodes_losses_and_complaints_are_for_those_who_may_describe_the_cluster() -> None:
    async def story(world: RightsWorld) -> None:
        request = describe_cluster.DescribeClusterRequest(
            include_cluster_authorized_operations=True, include_nodes=True
        )
        told = (await world.ask(describe_cluster.API, 2, request)).response
        assert (told.error_code, told.nodes, told.cluster_authorized_operations) == (0, (), 0)
        assert told.brokers
        await world.allow(rule(CLUSTER, CLUSTER_NAME, DESCRIBE))
        told = (await world.ask(describe_cluster.API, 2, request)).response
        assert told.nodes
        assert told.cluster_authorized_operations == 1 << DESCRIBE

    in_a_world_of_rights(story)


def creation(**changes: object) -> create_acls.AclCreation:
    usual: dict[str, object] = {
        "resource_type": 2,
        "resource_name": "orders",
        "resource_pattern_type": 3,
        "principal": "User:bob",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return create_acls.AclCreation(**{**usual, **changes})  # type: ignore[arg-type]  # a table of changes


ANY_RULE = (1, None, 1, None, None, 1, 1)


@pytest.mark.parametrize("version", create_acls.API.versions)
def test_rules_are_added_described_and_removed_in_every_version(version: int) -> None:
    async def story(world: RightsWorld) -> None:
        wanted = (
            creation(),
            creation(),
            creation(resource_pattern_type=4, resource_name="ord"),
            creation(resource_type=1),
            creation(resource_pattern_type=2),
            creation(operation=1),
            creation(permission_type=1),
            creation(resource_name=""),
            creation(principal="bob"),
            creation(resource_type=4),
        )
        added = await world.ask(
            create_acls.API, version, create_acls.CreateAclsRequest(wanted), principal=ADMIN
        )
        invalid = ErrorCode.INVALID_REQUEST
        assert [each.error_code for each in added.response.results] == [0, 0, 0, *[invalid] * 7]
        described = await world.ask(
            describe_acls.API,
            version,
            describe_acls.DescribeAclsRequest(2, "orders", 2, None, None, 1, 1),
            principal=ADMIN,
        )
        found = {
            (each.resource_name, each.pattern_type, len(each.acls)) for each in described.response.resources
        }
        assert found == {("orders", 3, 1), ("ord", 4, 1)}
        removal = delete_acls.DeleteAclsRequest(
            (
                delete_acls.DeleteAclsFilter(2, "orders", 3, "User:bob", "*", 3, 3),
                delete_acls.DeleteAclsFilter(*ANY_RULE),
                delete_acls.DeleteAclsFilter(2, "nothing", 3, None, None, 1, 1),
            )
        )
        removed = await world.ask(delete_acls.API, version, removal, principal=ADMIN)
        assert [len(each.matching_acls) for each in removed.response.filter_results] == [1, 2, 0]
        assert not len(world.parts.cluster.image.acls)

    in_a_world_of_rights(story)


@pytest.mark.parametrize("unknown", [{"resource_type": 0}, {"operation": 99}, {"permission_type": 9}])
def test_a_code_that_nobody_knows_refuses_the_whole_request(unknown: dict[str, object]) -> None:
    async def story(world: RightsWorld) -> None:
        request = create_acls.CreateAclsRequest((creation(), creation(**unknown)))
        answer = await world.ask(create_acls.API, 3, request, principal=ADMIN)
        assert [each.error_code for each in answer.response.results] == [ErrorCode.INVALID_REQUEST] * 2
        assert not len(world.parts.cluster.image.acls)
        described = describe_acls.DescribeAclsRequest(1, None, 0, None, None, 1, 1)
        answer = await world.ask(describe_acls.API, 3, described, principal=ADMIN)
        assert answer.response.error_code == ErrorCode.INVALID_REQUEST
        removal = delete_acls.DeleteAclsRequest((delete_acls.DeleteAclsFilter(1, None, 1, None, None, 0, 1),))
        answer = await world.ask(delete_acls.API, 3, removal, principal=ADMIN)
        assert answer.codes == {ErrorCode.INVALID_REQUEST}

    in_a_world_of_rights(story)


def test_rules_are_there_after_a_restart() -> None:
    async def story(world: RightsWorld) -> None:
        await world.allow(rule(TOPIC, "mine", READ))
        await world.door.restart()
        assert list(world.door.node.image.acls) == [rule(TOPIC, "mine", READ)]

    in_a_world_of_rights(story)


def test_where_resources_without_rules_are_open_one_rule_closes_a_resource() -> None:
    async def story(world: RightsWorld) -> None:
        await make(world, "open", "closed")
        await world.allow(rule(TOPIC, "closed", READ, principal="User:bob"))
        assert await write(world, "open", principal=ALICE) == {0}
        assert REFUSED in await write(world, "closed", principal=ALICE)
        await world.forget(Filter(principal="User:bob"))
        assert await write(world, "closed", principal=ALICE) == {0}

    in_a_world_of_rights(story, "allow.everyone.if.no.acl.found=true")


def test_clients_at_the_door_are_anonymous_and_refused() -> None:
    async def story(door: Door) -> int:
        answer = await door.call(metadata.API, 12, named("t"))
        return answer.topics[0].error_code

    on = (f"authorizer.class.name={STANDARD_AUTHORIZER}", "sqs.listen=none")
    assert at_the_door(story, *on) == REFUSED
    assert at_the_door(story, *on, "super.users=User:ANONYMOUS") == ErrorCode.NONE


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        pytest.param(("super.users=alice",), "super.users names 'alice', must be TYPE:NAME", id="no type"),
    ],
)
def test_a_node_that_could_not_keep_its_rules_does_not_start(settings: tuple[str, ...], said: str) -> None:
    async def story(door: Door) -> None:
        raise AssertionError("it has started")

    with pytest.raises(InvalidSetting, match=said):
        at_the_door(story, f"authorizer.class.name={STANDARD_AUTHORIZER}", "sqs.listen=none", *settings)


def test_where_nothing_is_checked_nothing_stands_before_a_handler() -> None:
    async def story(door: Door) -> set[str]:
        handles = [served.handle for served in serve_here(door.node._parts).values()]
        return {
            handle.func.__module__.rpartition(".")[0] for handle in handles if isinstance(handle, partial)
        }

    assert at_the_door(story) == {"ropewalk.kafka.handlers"}
