"""Whatever a client changes of the cluster leaves who asked for it, in the same change: one event for each, by every API, forwarded or not."""

from typing import Any, NamedTuple

import pytest

from ropewalk.base.ids import NodeId
from ropewalk.kafka.forwarded import FORWARDED
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import KAFKA_LISTENER, ChangeDetail, ChangeMade
from ropewalk.wire.api import AnyApi
from ropewalk.wire.messages import (
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_user_scram_credentials,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_topics,
    elect_leaders,
    incremental_alter_configs,
    issue_token,
    metadata,
    replace_token_key,
    unregister_broker,
    update_features,
)
from ropewalk.wire.types import Message
from tests.kafka.rights_world import ADMIN, ALICE, HOST, RightsWorld, in_a_world_of_rights

TOPIC, BROKER = 2, 4
METHOD = "SCRAM-SHA-512"
SECRET = b"planted-secret-of-32-bytes-long!"


class Kind(NamedTuple):
    """A kind of change: a request that makes it, and what its event tells."""

    name: str
    api: AnyApi
    version: int
    request: Message
    details: tuple[tuple[str, str, str | None, str | None], ...]


def topic_setting(operation: int, value: str | None, name: str = "retention.ms") -> Message:
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        (
            incremental_alter_configs.AlterConfigsResource(
                TOPIC, "orders", (incremental_alter_configs.AlterableConfig(name, operation, value),)
            ),
        ),
        validate_only=False,
    )


def broker_setting(node: str, operation: int, value: str | None) -> Message:
    config = incremental_alter_configs.AlterableConfig("log.retention.ms", operation, value)
    resource = incremental_alter_configs.AlterConfigsResource(BROKER, node, (config,))
    return incremental_alter_configs.IncrementalAlterConfigsRequest((resource,), validate_only=False)


def replaced_settings(kind: int, name: str, **settings: str) -> Message:
    configs = tuple(
        alter_configs.AlterableConfig(key.replace("_", "."), value) for key, value in settings.items()
    )
    resource = alter_configs.AlterConfigsResource(kind, name, configs)
    return alter_configs.AlterConfigsRequest((resource,), validate_only=False)


def quota(entity: tuple[tuple[str, str | None], ...], value: float, *, remove: bool = False) -> Message:
    entry = alter_client_quotas.EntryData(
        tuple(alter_client_quotas.EntityData(*part) for part in entity),
        (alter_client_quotas.OpData("consumer_byte_rate", value, remove),),
    )
    return alter_client_quotas.AlterClientQuotasRequest((entry,), validate_only=False)


def acl(kind: int, name: str, pattern: int = 3) -> Message:
    return create_acls.CreateAclsRequest(
        (create_acls.AclCreation(kind, name, pattern, "User:bob", "*", 3, 3),)
    )


def user(*, upsert: bool, mechanism: int = 1) -> Message:
    if not upsert:
        deletion = alter_user_scram_credentials.ScramCredentialDeletion("carol", mechanism)
        return alter_user_scram_credentials.AlterUserScramCredentialsRequest((deletion,), ())
    upsertion = alter_user_scram_credentials.ScramCredentialUpsertion(
        "carol", mechanism, 4096, SECRET, SECRET * mechanism
    )
    return alter_user_scram_credentials.AlterUserScramCredentialsRequest((), (upsertion,))


def maintenance(is_on: int) -> Message:
    return unregister_broker.UnregisterBrokerRequest(0, maintenance=is_on)


def unclean(topic: str) -> Message:
    return elect_leaders.ElectLeadersRequest(1, (elect_leaders.TopicPartitions(topic, (0,)),))


SCRAM, QUOTA = alter_user_scram_credentials.API, alter_client_quotas.API
INCREMENTAL, REPLACE = incremental_alter_configs.API, alter_configs.API
KINDS = (
    Kind(
        "a topic",
        create_topics.API,
        7,
        create_topics.CreateTopicsRequest(
            (
                create_topics.CreatableTopic(
                    "orders", 2, 1, (), (create_topics.CreatableTopicConfig("retention.ms", "1000"),)
                ),
            )
        ),
        (
            ("topic.created", "Topic:orders", None, None),
            ("topic.setting", "Topic:orders:retention.ms", None, "1000"),
            ("topic.partitions", "Topic:orders", None, "2"),
        ),
    ),
    Kind(
        "a topic by asking about it",
        metadata.API,
        12,
        metadata.MetadataRequest(
            (metadata.MetadataRequestTopic(name="asked"),), allow_auto_topic_creation=True
        ),
        (("topic.created", "Topic:asked", None, None), ("topic.partitions", "Topic:asked", None, "1")),
    ),
    Kind(
        "more partitions",
        create_partitions.API,
        3,
        create_partitions.CreatePartitionsRequest(
            (create_partitions.CreatePartitionsTopic("orders", 5, None),), 1000, validate_only=False
        ),
        (("topic.partitions", "Topic:orders", "2", "5"),),
    ),
    Kind(
        "a setting of a topic",
        INCREMENTAL,
        1,
        topic_setting(0, "2000"),
        (("topic.setting", "Topic:orders:retention.ms", "1000", "2000"),),
    ),
    Kind(
        "an item of a list",
        INCREMENTAL,
        1,
        topic_setting(2, "compact", "cleanup.policy"),
        (("topic.setting", "Topic:orders:cleanup.policy", None, "delete,compact"),),
    ),
    Kind(
        "an item less",
        INCREMENTAL,
        1,
        topic_setting(3, "delete", "cleanup.policy"),
        (("topic.setting", "Topic:orders:cleanup.policy", "delete,compact", "compact"),),
    ),
    Kind(
        "a setting taken back",
        INCREMENTAL,
        1,
        topic_setting(1, None),
        (("topic.setting", "Topic:orders:retention.ms", "2000", None),),
    ),
    Kind(
        "the settings of a topic",
        REPLACE,
        2,
        replaced_settings(TOPIC, "orders", segment_ms="5000"),
        (
            ("topic.setting", "Topic:orders:segment.ms", None, "5000"),
            ("topic.setting", "Topic:orders:cleanup.policy", "compact", None),
        ),
    ),
    Kind(
        "a setting of a broker",
        INCREMENTAL,
        1,
        broker_setting("0", 0, "7000"),
        (("broker.setting", "Broker:0:log.retention.ms", None, "7000"),),
    ),
    Kind(
        "a setting of a broker taken back",
        INCREMENTAL,
        1,
        broker_setting("0", 1, None),
        (("broker.setting", "Broker:0:log.retention.ms", "7000", None),),
    ),
    Kind(
        "a setting of all brokers",
        INCREMENTAL,
        1,
        broker_setting("", 0, "8000"),
        (("cluster.setting", "cluster:log.retention.ms", None, "8000"),),
    ),
    Kind(
        "the settings of a broker",
        REPLACE,
        2,
        replaced_settings(BROKER, "0", log_retention_ms="9000"),
        (("broker.setting", "Broker:0:log.retention.ms", None, "9000"),),
    ),
    Kind(
        "the settings of all brokers",
        REPLACE,
        2,
        replaced_settings(BROKER, "", num_partitions="3"),
        (
            ("cluster.setting", "cluster:num.partitions", None, "3"),
            ("cluster.setting", "cluster:log.retention.ms", "8000", None),
        ),
    ),
    *(
        Kind(
            f"a quota of {text}",
            QUOTA,
            1,
            quota(entity, 10.0),
            (("quota", f"Quota:{text}:consumer_byte_rate", None, "10"),),
        )
        for text, entity in (
            ("user=bob", (("user", "bob"),)),
            ("user=(default)", (("user", None),)),
            ("client-id=app", (("client-id", "app"),)),
            ("client-id=app,user=bob", (("client-id", "app"), ("user", "bob"))),
        )
    ),
    Kind(
        "another quota of a user",
        QUOTA,
        1,
        quota((("user", "bob"),), 1.5e6),
        (("quota", "Quota:user=bob:consumer_byte_rate", "10", "1.5e+06"),),
    ),
    Kind(
        "a quota taken back",
        QUOTA,
        1,
        quota((("user", "bob"),), 0.0, remove=True),
        (("quota", "Quota:user=bob:consumer_byte_rate", "1.5e+06", None),),
    ),
    Kind("a user", SCRAM, 0, user(upsert=True), (("user.credential", "User:carol", None, "SHA_256, 4096"),)),
    Kind(
        "another password",
        SCRAM,
        0,
        user(upsert=True),
        (("user.credential", "User:carol", "SHA_256", "SHA_256, 4096"),),
    ),
    Kind(
        "another mechanism",
        SCRAM,
        0,
        user(upsert=True, mechanism=2),
        (("user.credential", "User:carol", None, "SHA_512, 4096"),),
    ),
    Kind(
        "a mechanism less",
        SCRAM,
        0,
        user(upsert=False, mechanism=2),
        (("user.credential", "User:carol", "SHA_512", None),),
    ),
    Kind(
        "a token, and so a key",
        issue_token.API,
        0,
        issue_token.IssueTokenRequest("carol", -1),
        (("token.key", "TokenKey:*", None, "signs"),),
    ),
    Kind(
        "another key, now",
        replace_token_key.API,
        0,
        replace_token_key.ReplaceTokenKeyRequest(is_known_to_others=True),
        (("token.key", "TokenKey:*", "signed", None), ("token.key", "TokenKey:*", None, "signs")),
    ),
    Kind("a user less", SCRAM, 0, user(upsert=False), (("user.credential", "User:carol", "SHA_256", None),)),
    *(
        Kind(
            f"a rule about {resource}",
            create_acls.API,
            3,
            acl(number, name, pattern),
            (("acl", resource, None, "ALLOW READ to User:bob from *"),),
        )
        for resource, number, name, pattern in (
            ("Topic:t", 2, "t", 3),
            ("Topic(prefixed):t", 2, "t", 4),
            ("Group:g", 3, "g", 3),
        )
    ),
    Kind(
        "rules less",
        delete_acls.API,
        3,
        delete_acls.DeleteAclsRequest((delete_acls.DeleteAclsFilter(3, "g", 3, None, None, 1, 1),)),
        (("acl", "Group:g", "ALLOW READ to User:bob from *", None),),
    ),
    Kind(
        "maintenance",
        unregister_broker.API,
        0,
        maintenance(1),
        (("broker.maintenance", "Broker:0", "no", "yes"),),
    ),
    Kind(
        "the end of maintenance",
        unregister_broker.API,
        0,
        maintenance(0),
        (("broker.maintenance", "Broker:0", "yes", "no"),),
    ),
    Kind(
        "a topic less",
        delete_topics.API,
        6,
        delete_topics.DeleteTopicsRequest((delete_topics.DeleteTopicState("orders"),)),
        (("topic.deleted", "Topic:orders", None, None),),
    ),
)
"""In an order in which each can be made."""

CHANGE_NOTHING = (
    Kind("a topic that is there", create_topics.API, 7, KINDS[0].request, ()),
    Kind("an election that nobody needs", elect_leaders.API, 2, unclean("orders"), ()),
    Kind(
        "a move that is none",
        alter_partition_reassignments.API,
        1,
        alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            topics=(
                alter_partition_reassignments.ReassignableTopic(
                    "orders", (alter_partition_reassignments.ReassignablePartition(0, None),)
                ),
            )
        ),
        (),
    ),
    Kind(
        "a level that is in force",
        update_features.API,
        2,
        update_features.UpdateFeaturesRequest(1000, (update_features.FeatureUpdateKey("ropewalk.level", 2),)),
        (),
    ),
    Kind(
        "a look at more partitions",
        create_partitions.API,
        3,
        create_partitions.CreatePartitionsRequest(
            (create_partitions.CreatePartitionsTopic("orders", 9, None),), 1000, validate_only=True
        ),
        (),
    ),
)


def events(image: Image, after: int) -> list[ChangeMade]:
    return list(image.audit.after(after))


def told(change: ChangeMade) -> tuple[tuple[str, str, str | None, str | None], ...]:
    return tuple(
        (
            detail.kind,
            "TokenKey:*" if detail.kind == "token.key" else detail.resource,
            detail.before,
            detail.after,
        )
        for detail in change.details
    )


@pytest.mark.parametrize("is_forwarded", [False, True])
def test_every_kind_of_change_tells_once_who_asked_for_it(is_forwarded: bool) -> None:
    async def story(world: RightsWorld) -> None:
        image = world.parts.cluster.image
        for kind in KINDS:
            elsewhere = is_forwarded and kind.api.key in FORWARDED
            before = image.audit.newest_number
            ask: Any = world.ask_elsewhere if elsewhere else world.ask
            answer = await ask(
                kind.api, kind.version, kind.request, principal=ADMIN, groups=("staff",), method=METHOD
            )
            assert answer.codes <= {0}, (kind.name, answer.response)
            (change,) = events(image, before)
            assert (change.number, change.operation) == (
                before + 1,
                "CreateTopics" if kind.api is metadata.API else kind.api.name,
            )
            assert (change.principal, change.groups, change.client_id) == (ADMIN, ("staff",), "test"), (
                kind.name
            )
            assert change.method == METHOD
            assert (change.host, change.listener) == (HOST, "" if elsewhere else KAFKA_LISTENER)
            assert change.forwarded_by == (NodeId(9) if elsewhere else None)
            assert (told(change), change.more_count) == (kind.details, 0), kind.name

    in_a_world_of_rights(story)


def test_what_is_refused_or_changes_nothing_leaves_no_event() -> None:
    async def story(world: RightsWorld) -> None:
        image = world.parts.cluster.image
        await world.ask(KINDS[0].api, KINDS[0].version, KINDS[0].request, principal=ADMIN)
        before = image.audit.newest_number
        for kind in CHANGE_NOTHING:
            await world.ask(kind.api, kind.version, kind.request, principal=ADMIN, method=METHOD)
            assert not events(image, before), kind.name
        for kind in KINDS:
            await world.ask(kind.api, kind.version, kind.request, principal=ALICE)
            assert not events(image, before), kind.name

    in_a_world_of_rights(story)


def test_no_secret_is_told() -> None:
    async def story(world: RightsWorld) -> None:
        for kind in KINDS:
            await world.ask(kind.api, kind.version, kind.request, principal=ADMIN, method=METHOD)
        parts, image = world.parts, world.parts.cluster.image
        assert image.token_keys.keys
        for key in image.token_keys.keys:
            assert str(key.key) not in str(events(image, 0))
        assert "planted" not in str(events(image, 0))
        assert all(isinstance(each, ChangeDetail) for event in events(image, 0) for each in event.details)
        assert parts.cluster.decides

    in_a_world_of_rights(story)


def test_events_outlive_a_restart_and_numbers_go_on() -> None:
    async def story(world: RightsWorld) -> None:
        for kind in KINDS[:4]:
            await world.ask(kind.api, kind.version, kind.request, principal=ADMIN, method=METHOD)
        known = events(world.parts.cluster.image, 0)
        assert [change.number for change in known] == [1, 2, 3, 4]
        await world.door.restart()
        again = RightsWorld(world.door)
        assert events(again.parts.cluster.image, 0) == known
        await again.ask(KINDS[4].api, KINDS[4].version, KINDS[4].request, principal=ADMIN)
        assert [change.number for change in events(again.parts.cluster.image, 3)] == [4, 5]

    in_a_world_of_rights(story)
