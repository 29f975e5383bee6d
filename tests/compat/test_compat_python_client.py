"""Our own Python client, against a node of ours and against Apache Kafka where Java and Maven are: the same tests for both."""

import asyncio
import itertools
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
import pytest

from bench.brokers import Unavailable, start_kafka
from ropewalk import Admin, Consumer, Json, Message, Producer, Text, TopicPartition, aio
from ropewalk.base.errors import ProducerFenced, TimedOut
from ropewalk.client.calls.partitioner import partition_for_key
from ropewalk.client.connections.versions import Versions
from ropewalk.client.errors import (
    CommitFailed,
    DeliveryFailed,
    Misuse,
    NoOffset,
    NotOfFormat,
    RemoteError,
    TransactionFailed,
)
from ropewalk.wire.error_code import ErrorCode
from tests.compat.crew import wait_until

pytestmark = [pytest.mark.compat, pytest.mark.timeout(60)]

_numbers = itertools.count()


@pytest.fixture(scope="module")
def kafka_address() -> Iterator[str]:
    try:
        broker = start_kafka(
            settings={
                "group.initial.rebalance.delay.ms": "0",
                "offsets.topic.num.partitions": "3",
                "transaction.state.log.num.partitions": "3",
            }
        )
    except Unavailable as missing:
        pytest.skip(f"optional: {missing}")
    yield broker.bootstrap
    broker.stop()


@pytest.fixture(params=["ropewalk", "kafka"])
def address(request: pytest.FixtureRequest) -> str:
    name = "bootstrap" if request.param == "ropewalk" else "kafka_address"
    found: str = request.getfixturevalue(name)
    return found


@pytest.fixture
def orders(address: str) -> str:
    """A topic of four partitions."""
    name = f"orders-{os.getpid()}-{next(_numbers)}"
    with Admin(address) as admin:
        admin.create_topic(name, partitions=4, replication_factor=1)
    return name


@pytest.fixture(params=["second", "first"])
def dialect(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of transactions: a client that does not see the feature speaks as clients did before it."""
    if request.param == "first":
        monkeypatch.setattr(Versions, "feature", lambda versions, name: 0)


def read(consumer: Consumer, count: int) -> list[Message]:
    """So many messages, or the test's time is over."""
    found: list[Message] = []
    while len(found) < count:
        found += consumer.poll(timeout_ms=1000)
    return found


def all_of(address: str, topic: str, count: int, isolation: str = "read_uncommitted") -> list[Message]:
    with Consumer(address, auto_offset_reset="earliest", isolation_level=isolation) as consumer:
        consumer.assign(consumer.partitions_of(topic))
        return read(consumer, count)


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_sent_is_read_in_the_order_of_its_key(address: str, orders: str, compression: str) -> None:
    sent = [(b"key %d" % (number % 7), b"%d" % number) for number in range(500)]
    with Producer(address, compression=compression, batch_size=2000) as producer:
        deliveries = [producer.send(orders, value, key=key, headers={"h": key}) for key, value in sent]
        first = deliveries[0].result(timeout_s=30)
        assert first.partition == partition_for_key(sent[0][0], 4)
    found = all_of(address, orders, len(sent))
    assert sorted((message.key, message.value) for message in found) == sorted(sent)
    for key in {key for key, _ in sent}:
        assert [each.value for each in found if each.key == key] == [
            value for owner, value in sent if owner == key
        ]
    assert all(message.headers == (("h", message.key),) for message in found)
    places = {(message.partition, message.offset) for message in found}
    assert {(each.result().partition, each.result().offset) for each in deliveries} == places


class Order(msgspec.Struct):
    customer: str
    amount: int


def test_values_travel_in_the_format_that_was_chosen(address: str, orders: str) -> None:
    with Producer(address, key_format=Text(), value_format=Json()) as producer:
        producer.send(orders, Order("ada", 7), key="ada").result()
        producer.send(orders, None, key="ada")
        producer.send(orders, {"customer": "ada", "amount": "many"}, key="ada")
    partition = TopicPartition(orders, partition_for_key(b"ada", 4))
    with Consumer(
        address, auto_offset_reset="earliest", key_format=Text(), value_format=Json(Order)
    ) as consumer:
        consumer.assign([partition])
        found = read(consumer, 2)
        assert [(message.key, message.value) for message in found] == [
            ("ada", Order("ada", 7)),
            ("ada", None),
        ]
        with pytest.raises(NotOfFormat, match="amount"):
            read(consumer, 1)
        assert consumer.position(partition) == 2, "it stands at what it could not read"
        consumer.seek(partition, 3)
        assert consumer.poll(timeout_ms=100) == []


def test_a_group_goes_on_where_it_committed(address: str, orders: str) -> None:
    with Producer(address) as producer:
        for number in range(20):
            producer.send(orders, b"%d" % number, partition=0)
    with Consumer(address, group=f"g-{orders}", auto_offset_reset="earliest", max_poll_records=5) as consumer:
        consumer.subscribe(orders)
        seen = [message.value for _, message in zip(range(7), consumer, strict=False)]
    # Leaving commits the seven that the loop has seen, and not the three that were polled with them.
    assert seen == [b"%d" % number for number in range(7)]
    with Consumer(address, group=f"g-{orders}", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(orders)
        assert [message.value for message in read(consumer, 13)] == [
            b"%d" % number for number in range(7, 20)
        ]
        consumer.commit()
        first = TopicPartition(orders, 0)
        assert consumer.committed()[first].offset == 20
        consumer.commit({first: 3})
        assert consumer.committed([first])[first].offset == 3
        assert consumer.lag(first) == 0


def test_a_message_whose_processing_failed_is_read_again(address: str, orders: str) -> None:
    with Producer(address) as producer:
        for number in range(3):
            producer.send(orders, b"%d" % number, partition=0)
    for _ in range(2):
        with (
            suppress(ZeroDivisionError),
            Consumer(address, group=f"g-{orders}", auto_offset_reset="earliest") as consumer,
        ):
            consumer.subscribe(orders)
            for message in consumer:
                assert message.value == b"0"
                raise ZeroDivisionError


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_members_share_and_hand_over_without_losing_or_repeating(
    address: str, orders: str, assignor: str
) -> None:
    hand_over(address, orders, assignor, "classic")


def test_members_of_a_group_that_the_server_assigns_share_and_hand_over(address: str, orders: str) -> None:
    hand_over(address, orders, "range", "consumer")


def hand_over(address: str, topic: str, assignor: str, protocol: str) -> None:
    """One member, then two, then the other alone, while records come in."""
    group, told = f"g-{topic}", []

    def member() -> Consumer:
        return Consumer(
            address,
            group=group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=200,
            assignor=assignor,
            group_protocol=protocol,
        )

    def on_assigned(partitions: list[TopicPartition]) -> None:
        told.append(("assigned", threading.get_ident()))

    def on_revoked(partitions: list[TopicPartition]) -> None:
        told.append(("revoked", threading.get_ident()))
        first.commit()

    def until_shared() -> None:
        while len(second.assignment) < 2:
            seen.extend(message.value for message in first.poll(timeout_ms=20))
            seen.extend(message.value for message in second.poll(timeout_ms=20))

    seen: list[bytes] = []
    with Producer(address) as producer, member() as second:
        with member() as first:
            first.subscribe(topic, on_assigned=on_assigned, on_revoked=on_revoked)
            producer.send(topic, b"0", partition=0)
            seen += [message.value for message in read(first, 1)]
            assert len(first.assignment) == 4
            second.subscribe(topic)
            until_shared()
            for number in range(1, 101):
                producer.send(topic, b"%d" % number, partition=number % 4)
            producer.flush()
            while len(seen) < 101:
                until_shared()
                seen.extend(message.value for message in first.poll(timeout_ms=20))
                seen.extend(message.value for message in second.poll(timeout_ms=20))
        for number in range(101, 201):
            producer.send(topic, b"%d" % number, partition=number % 4)
        seen += [message.value for message in read(second, 100)]
        assert len(second.assignment) == 4
    assert sorted(map(int, seen)) == list(range(201))
    assert {kind for kind, _ in told} == {"assigned", "revoked"}
    assert {thread for _, thread in told} == {threading.get_ident()}, "callbacks run where poll is called"


def test_a_member_that_was_replaced_is_told_so_when_it_commits(address: str, orders: str) -> None:
    with Producer(address) as producer:
        producer.send(orders, b"0", partition=0)
    with (
        Consumer(
            address,
            group=f"g-{orders}",
            auto_offset_reset="earliest",
            heartbeat_interval_ms=200,
            max_poll_interval_ms=1000,
            enable_auto_commit=False,
        ) as slow,
        Consumer(
            address, group=f"g-{orders}", auto_offset_reset="earliest", heartbeat_interval_ms=200
        ) as other,
    ):
        slow.subscribe(orders)
        read(slow, 1)
        other.subscribe(orders)
        while len(other.assignment) < 4:  # the slow one does not poll, so it falls out
            other.poll(timeout_ms=50)
        with pytest.raises(CommitFailed, match="moved on"):
            slow.commit({TopicPartition(orders, 0): 1})


def test_positions_are_set_found_and_held(address: str, orders: str) -> None:
    first, second = TopicPartition(orders, 0), TopicPartition(orders, 1)
    began_ms = int(
        datetime.now(UTC).timestamp() * 1000
    )  # records of long ago would be gone at the next look of retention
    with Producer(address) as producer:
        for number in range(10):
            for partition in (0, 1):
                producer.send(orders, b"%d" % number, partition=partition, timestamp_ms=began_ms + number)
    with Consumer(address, auto_offset_reset="earliest") as consumer:
        consumer.assign([first, second])
        assert consumer.beginning_offsets([first, second]) == {first: 0, second: 0}
        assert consumer.end_offsets([first]) == {first: 10}
        found = consumer.offsets_for_times({first: began_ms + 4, second: began_ms + 1_000_000})
        place = found[first]
        assert place is not None
        assert place.offset == 4
        assert found[second] is None
        consumer.pause(second)
        assert consumer.paused == {second}
        consumer.seek(first, 4)
        assert [message.value for message in read(consumer, 6)] == [b"%d" % number for number in range(4, 10)]
        assert consumer.poll(timeout_ms=100) == []
        consumer.seek_to_end(first)
        consumer.resume(second)
        assert {message.partition for message in read(consumer, 10)} == {1}
        consumer.seek_to_beginning(first)
        assert read(consumer, 10)[0].offset == 0
        assert consumer.position(first) == 10


def test_who_wants_no_reset_is_told_that_there_is_no_offset(address: str, orders: str) -> None:
    with Consumer(address, group=f"g-{orders}", auto_offset_reset="none") as consumer:
        consumer.assign([TopicPartition(orders, 0)])
        with pytest.raises(NoOffset, match="auto_offset_reset is none"):
            read(consumer, 1)
        consumer.seek(TopicPartition(orders, 0), 1000)
        with pytest.raises(NoOffset, match="1000"):
            read(consumer, 1)


def test_a_producer_waits_until_a_group_has_processed_its_records(address: str, orders: str) -> None:
    group = f"g-{orders}"
    with (
        Producer(address) as producer,
        Consumer(address, group=group, auto_offset_reset="earliest") as consumer,
    ):
        acknowledged = [
            producer.send(orders, b"%d" % number, partition=number % 4).result() for number in range(8)
        ]
        with pytest.raises(TimedOut, match=r"has committed nothing, 2 is wanted"):
            producer.wait_processed(group, timeout_ms=2_000)
        consumer.subscribe(orders)
        read(consumer, 8)
        consumer.commit({TopicPartition(orders, 0): 2})
        producer.wait_processed(group, acknowledged[:1], timeout_ms=30_000)
        waiting = threading.Thread(target=producer.wait_processed, args=(group,))
        waiting.start()
        consumer.commit()
        waiting.join(30)
        assert not waiting.is_alive()


@pytest.mark.usefixtures("dialect")
def test_transactions_are_seen_whole_or_not_at_all(address: str, orders: str) -> None:
    group, source = f"g-{orders}", TopicPartition(orders, 3)
    with (
        Producer(address, transactional_id=f"t-{orders}") as producer,
        Consumer(address, group=group) as member,
    ):
        with producer.transaction():
            producer.send(orders, b"committed", partition=0)
            producer.send_offsets_to_transaction({source: 5}, group)
        with suppress(ZeroDivisionError), producer.transaction():
            producer.send(orders, b"aborted", partition=0).result()
            producer.send_offsets_to_transaction({source: 9}, group)
            raise ZeroDivisionError
        with producer.transaction():
            producer.send(orders, b"committed later", partition=0)
        assert member.committed([source])[source].offset == 5
        with pytest.raises(Misuse, match="no transaction is open"):
            producer.send(orders, b"outside", partition=0)
        producer.begin_transaction()
        producer.send(orders, b"open", partition=0).result()
        seen = all_of(address, orders, 2, isolation="read_committed")
        assert [message.value for message in seen] == [b"committed", b"committed later"]
        assert len(all_of(address, orders, 4)) == 4, "who asks for everything is given everything"


@pytest.mark.usefixtures("dialect")
def test_a_producer_whose_id_was_taken_over_is_fenced(address: str, orders: str) -> None:
    with Producer(address, transactional_id=f"t-{orders}") as former:
        former.begin_transaction()
        former.send(orders, b"lost", partition=0).result()
        with Producer(address, transactional_id=f"t-{orders}") as latter:
            with pytest.raises((ProducerFenced, TransactionFailed)):
                former.commit_transaction()
            with latter.transaction():
                latter.send(orders, b"kept", partition=0)
        seen = all_of(address, orders, 1, isolation="read_committed")
        assert [message.value for message in seen] == [b"kept"]


@pytest.mark.usefixtures("dialect")
def test_consume_transform_produce_is_exactly_once_over_crashes(address: str, orders: str) -> None:
    """Every third attempt is left before it is committed, as a crash would; the next one takes its place."""
    group, target = f"g-{orders}", f"{orders}-out"
    with Admin(address) as admin:
        admin.create_topic(target, partitions=1, replication_factor=1)
    with Producer(address) as producer:
        for number in range(60):
            producer.send(orders, b"%d" % number, partition=number % 4)
    attempt = 0
    done = 0
    while done < 60:
        with (
            Producer(address, transactional_id=f"t-{orders}") as producer,
            Consumer(
                address,
                group=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                max_poll_records=7,
            ) as consumer,
        ):
            consumer.subscribe(orders)
            while done < 60:
                messages = read(consumer, 1)
                attempt += 1
                producer.begin_transaction()
                for message in messages:
                    producer.send(target, b"<%s>" % message.value)
                producer.send_offsets_to_transaction(consumer.positions(), consumer.group_identity())
                if attempt % 3 == 0:
                    break
                producer.commit_transaction()
                done += len(messages)
    seen = all_of(address, target, 60, isolation="read_committed")
    assert sorted(message.value for message in seen) == sorted(b"<%d>" % number for number in range(60))


def has_setting(admin: Admin, topic: str, name: str, value: str) -> bool:
    """A broker of Kafka takes a setting into use a little after it was told, and shows it from then on."""
    return any(each.name == name and each.value == value for each in admin.topic_settings(topic))


def test_administration(address: str, orders: str) -> None:
    with Admin(address) as admin, Producer(address) as producer:
        assert orders in admin.topics()
        with pytest.raises(RemoteError) as refused:
            admin.create_topic(orders)
        assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        admin.create_topic(orders, exists_ok=True)
        admin.add_partitions(orders, 5)
        wait_until(
            lambda: len(admin.describe_topic(orders).partitions) == 5,
            "Kafka shows what it did a little later",
        )
        admin.alter_topic_settings(orders, {"retention.ms": "123456"})
        settings = {setting.name: setting.value for setting in admin.topic_settings(orders)}
        assert settings["retention.ms"] == "123456"
        for number in range(10):
            producer.send(orders, b"%d" % number, partition=0)
        producer.flush()
        first = TopicPartition(orders, 0)
        assert admin.delete_records({first: 4}) == {first: 4}
        assert admin.beginning_offsets(orders)[first] == 4
        assert admin.end_offsets(orders)[first] == 10
        group = f"g-{orders}"
        admin.commit(group, {first: 6})
        assert admin.committed(group)[first].offset == 6
        assert group in [listed.group for listed in admin.groups()]
        assert admin.describe_group(group).members == ()
        admin.delete_offsets(group, [first])
        assert admin.committed(group) == {}
        admin.commit(group, {first: 6})
        admin.delete_group(group)
        admin.delete_topic(orders)
        assert admin.describe_cluster().brokers


def test_a_topic_that_is_not_there_is_told_with_the_flush(address: str, orders: str) -> None:
    with Producer(address, may_create_topics=False) as producer:
        delivery = producer.send(f"{orders}-none", b"x")
        with pytest.raises(RemoteError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            producer.flush()
        with pytest.raises(RemoteError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            delivery.result()
        producer.send(orders, b"x").result()


def test_a_record_that_the_broker_refuses_is_told_and_the_rest_arrives(address: str, orders: str) -> None:
    with Admin(address) as admin:

        def is_set() -> bool:
            # Told again: to a Kafka that has just made the topic it got lost now and then, which is not explained.
            admin.alter_topic_settings(orders, {"max.message.bytes": "2000"})
            return has_setting(admin, orders, "max.message.bytes", "2000")

        wait_until(is_set, "the setting is there", within_s=40)
    with Producer(address, linger_ms=0) as producer:
        refused = producer.send(orders, b"x" * 5000, partition=0)
        with pytest.raises(DeliveryFailed, match="none of them is in the log"):
            refused.result()
        producer.send(orders, b"small", partition=0).result()
        with pytest.raises(DeliveryFailed):
            producer.flush()
    assert [message.value for message in all_of(address, orders, 1)] == [b"small"]


def test_the_same_on_an_event_loop(address: str, orders: str) -> None:
    async def story() -> list[bytes]:
        async with aio.Producer(address) as producer:
            for number in range(10):
                await producer.send(orders, b"%d" % number, partition=0)
        found: list[bytes] = []
        async with aio.Consumer(address, group=f"g-{orders}", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(pattern=f"{orders}.*")
            async for message in consumer:
                found.append(message.value)
                if len(found) == 10:
                    break
        async with aio.Admin(address) as admin:
            committed = await admin.committed(f"g-{orders}")
        assert committed[TopicPartition(orders, 0)].offset == 10
        return found

    assert asyncio.run(story()) == [b"%d" % number for number in range(10)]
