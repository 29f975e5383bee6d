"""Metadata of many partitions: in turns, encoded once, and byte for byte what one encoding of the whole would be."""

import asyncio
from typing import Any, cast

import pytest
from msgspec import structs

from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId
from ropewalk.base.limits import REQUEST_PARTITIONS_PER_TURN
from ropewalk.kafka.caller import Caller, Holdable
from ropewalk.kafka.described_topics import DescribedTopics
from ropewalk.kafka.encoded import Encoded
from ropewalk.kafka.metadata_encoding import EncodedMetadata
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import (
    ALL_ROLES,
    KAFKA_LISTENER,
    BrokerRegistered,
    BrokerState,
    BrokerStateChanged,
    ClusterCreated,
    Endpoint,
    PartitionChanged,
    PartitionCreated,
    TopicCreated,
    TopicDeleted,
)
from ropewalk.wire.messages import metadata

BOTH = NodeId(0), NodeId(1)


def image_of(*partition_counts: int) -> Image:
    image = Image()
    image.apply(ClusterCreated("x" * 22))
    for node_id in BOTH:
        image.apply(
            BrokerRegistered(
                node_id,
                7,
                bytes(16),
                (Endpoint(KAFKA_LISTENER, "host", 9092), Endpoint("OUTSIDE", f"outside-{node_id}", 9094)),
                "rack",
                ALL_ROLES,
                BrokerState.ACTIVE,
            )
        )
    for number, partition_count in enumerate(partition_counts):
        topic_id = TopicId(number.to_bytes(16, "big"))
        image.apply(TopicCreated(topic_id, f"topic-{number}", None, 0))
        for index in range(partition_count):
            leader = None if index % 100 == 99 else NodeId(index % 2)
            image.apply(PartitionCreated(topic_id, index, BOTH, BOTH, leader, LeaderEpoch(3), 0))
    return image


class Held:
    """A connection that counts how often it was held."""

    peer_id = None

    def __init__(self) -> None:
        self.holds = 0

    def hold(self) -> None:
        self.holds += 1

    def release(self) -> None:
        self.holds -= 1


def caller_of(version: int, connection: Held | None = None, listener: str = KAFKA_LISTENER) -> Caller:
    held = cast(Holdable, connection or Held())  # nothing else is asked of it here
    return Caller(held, client_id="c", host="h", version=version, listener=listener)


class Asked:
    """The handler of all topics, behind the encoding of its answers."""

    def __init__(self, image: Image) -> None:
        self.described = DescribedTopics(image)
        self.plain: metadata.MetadataResponse | None = None
        self.encoding = EncodedMetadata(self._handle)

    async def _handle(self, _: object, caller: Caller) -> metadata.MetadataResponse:
        self.plain = await self.described.all(
            metadata.OPERATIONS_NOT_ASKED, metadata.OPERATIONS_NOT_ASKED, caller.listener
        )
        return self.plain

    def answer(self, version: int, listener: str = KAFKA_LISTENER) -> Any:
        return asyncio.run(self._answer(version, listener))

    async def _answer(self, version: int, listener: str) -> Any:
        return await self.encoding.handle(None, caller_of(version, listener=listener))


@pytest.mark.parametrize("version", metadata.API.versions)
@pytest.mark.parametrize(
    "partition_counts", [(1000,), (1, 0, 300, 128, 127), (4,) * 200, (REQUEST_PARTITIONS_PER_TURN + 1,)]
)
def test_an_encoded_answer_is_what_one_encoding_of_the_whole_gives(
    version: int, partition_counts: tuple[int, ...]
) -> None:
    asked = Asked(image_of(*partition_counts))
    answer = asked.answer(version)
    assert type(answer) is Encoded
    assert asked.plain is not None
    assert b"".join(answer.body()) == b"".join(metadata.API.encode_response(version, asked.plain))
    told = structs.replace(answer, throttle_ms=77)
    plain = structs.replace(asked.plain, throttle_ms=77)
    assert b"".join(told.body()) == b"".join(metadata.API.encode_response(version, plain))
    assert sorted(answer.error_codes) == sorted(
        partition.error_code
        for topic in asked.plain.topics
        for partition in topic.partitions
        if partition.error_code
    )


def test_what_has_not_changed_is_neither_described_nor_encoded_again() -> None:
    image = image_of(300, 300)
    asked = Asked(image)
    first = asked.answer(12)
    before = asked.plain
    assert asked.answer(12) is first
    image.apply(PartitionChanged(TopicId(bytes(16)), 5, BOTH, (NodeId(1),), NodeId(1), LeaderEpoch(4), 1))
    second = asked.answer(12)
    assert asked.plain is not None
    assert before is not None
    assert asked.plain.topics[1] is before.topics[1]
    assert asked.plain.topics[0].partitions[5].leader_epoch == 4
    assert b"".join(second.body()) == b"".join(metadata.API.encode_response(12, asked.plain))


def test_two_listeners_share_what_is_encoded_and_each_keeps_its_own_answer() -> None:
    image = image_of(300, 300)
    asked = Asked(image)
    inside = asked.answer(12)
    topics = [] if asked.plain is None else asked.plain.topics
    outside = asked.answer(12, "OUTSIDE")
    assert asked.plain is not None
    assert [(broker.host, broker.port) for broker in asked.plain.brokers] == [
        ("outside-0", 9094),
        ("outside-1", 9094),
    ]
    assert all(one is other for one, other in zip(topics, asked.plain.topics, strict=True))
    assert b"".join(outside.body()) == b"".join(metadata.API.encode_response(12, asked.plain))
    assert outside.body() != inside.body()
    assert asked.answer(12) is inside
    assert asked.answer(12, "OUTSIDE") is outside


def test_another_set_of_brokers_in_service_is_told_for_every_partition() -> None:
    image = image_of(300)
    asked = Asked(image)
    asked.answer(12)
    image.apply(BrokerStateChanged(NodeId(1), 7, BrokerState.FENCED))
    asked.answer(12)
    assert asked.plain is not None
    assert {partition.offline_replicas for partition in asked.plain.topics[0].partitions} == {(NodeId(1),)}


def test_a_topic_that_is_deleted_is_not_kept() -> None:
    image = image_of(*[1] * 10)
    described = DescribedTopics(image)
    asyncio.run(described.all(0, 0, KAFKA_LISTENER))
    for number in range(9):
        image.apply(TopicDeleted(TopicId(number.to_bytes(16, "big"))))
    image.apply(TopicCreated(TopicId(bytes([1]) * 16), "another", None, 0))
    asyncio.run(described.all(0, 0, KAFKA_LISTENER))
    assert len(described._known) <= 2


def test_a_large_answer_is_made_in_turns_of_one_image_while_the_connection_is_held() -> None:
    """Others run in between, what they apply does not get in, and the client's next request is not begun."""
    image = image_of(2000, 2000)
    asked, connection = Asked(image), Held()
    turns: list[int] = []

    async def beside() -> None:
        while connection.holds or not turns:
            if len(turns) == 3:
                for index in (0, 1999):
                    image.apply(
                        PartitionChanged(
                            TopicId((1).to_bytes(16, "big")), index, BOTH, BOTH, NodeId(1), LeaderEpoch(9), 1
                        )
                    )
            turns.append(connection.holds)
            await asyncio.sleep(0)

    async def story() -> None:
        other = asyncio.ensure_future(beside())
        await asked.encoding.handle(None, caller_of(12, connection))
        await other

    asyncio.run(story())
    assert len(turns) >= 2 * 4000 // REQUEST_PARTITIONS_PER_TURN - 2
    assert connection.holds == 0
    assert asked.plain is not None
    assert {partition.leader_epoch for topic in asked.plain.topics for partition in topic.partitions} == {3}
    assert asked.answer(12) is not None
    assert {partition.leader_epoch for topic in asked.plain.topics for partition in topic.partitions} == {
        3,
        9,
    }
