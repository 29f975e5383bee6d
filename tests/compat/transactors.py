"""Transactional producers and readers of committed records, on the three Python clients, behind one small face.

Each is used as its own documentation shows. A client makes its connections anew in every call.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

import aiokafka
import confluent_kafka
import kafka
import kafka.structs

PATIENCE_S: Final = 30

Transaction = tuple[Sequence[str], bool]
"""Values, and whether they are to be committed."""


class Transactor(Protocol):
    name: str

    def __init__(self, bootstrap: str) -> None: ...

    def write(self, topic: str, transactional_id: str, transactions: Sequence[Transaction]) -> None:
        """To partition 0. What is to be aborted is in the log before it is."""

    def write_with_offset(
        self, topic: str, transactional_id: str, group: str, offset: int, *, commit: bool
    ) -> None:
        """One record to `topic`, and the group's offset in partition 0 of it, in one transaction."""

    def read(self, topic: str, count: int) -> list[str]:
        """The first so many committed values of partition 0."""


class Confluent:
    name = "confluent-kafka"

    def __init__(self, bootstrap: str) -> None:
        self._settings = {"bootstrap.servers": bootstrap, "log_level": 0}

    def _producer(self, transactional_id: str) -> confluent_kafka.Producer:
        producer = confluent_kafka.Producer({**self._settings, "transactional.id": transactional_id})
        producer.init_transactions(PATIENCE_S)
        return producer

    def write(self, topic: str, transactional_id: str, transactions: Sequence[Transaction]) -> None:
        producer = self._producer(transactional_id)
        for values, committed in transactions:
            producer.begin_transaction()
            for value in values:
                producer.produce(topic, value, partition=0)
            assert producer.flush(PATIENCE_S) == 0
            (producer.commit_transaction if committed else producer.abort_transaction)(PATIENCE_S)

    def write_with_offset(
        self, topic: str, transactional_id: str, group: str, offset: int, *, commit: bool
    ) -> None:
        producer = self._producer(transactional_id)
        consumer = confluent_kafka.Consumer({**self._settings, "group.id": group})
        producer.begin_transaction()
        producer.produce(topic, "with an offset", partition=0)
        place = confluent_kafka.TopicPartition(topic, 0, offset)
        producer.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), PATIENCE_S)
        (producer.commit_transaction if commit else producer.abort_transaction)(PATIENCE_S)
        consumer.close()

    def read(self, topic: str, count: int) -> list[str]:
        consumer = confluent_kafka.Consumer(
            {**self._settings, "group.id": "none", "isolation.level": "read_committed"}
        )
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        try:
            values: list[str] = []
            while len(values) < count:
                (message,) = consumer.consume(1, PATIENCE_S)
                assert message.error() is None, message.error()
                values.append((message.value() or b"").decode())
            return values
        finally:
            consumer.close()


class Aiokafka:
    name = "aiokafka"

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def write(self, topic: str, transactional_id: str, transactions: Sequence[Transaction]) -> None:
        asyncio.run(asyncio.wait_for(self._write(topic, transactional_id, transactions), PATIENCE_S))

    async def _write(self, topic: str, transactional_id: str, transactions: Sequence[Transaction]) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self._bootstrap, transactional_id=transactional_id
        )
        await producer.start()
        for values, committed in transactions:
            await producer.begin_transaction()
            for value in values:
                await producer.send_and_wait(topic, value.encode(), partition=0)
            await (producer.commit_transaction() if committed else producer.abort_transaction())
        await producer.stop()

    def write_with_offset(
        self, topic: str, transactional_id: str, group: str, offset: int, *, commit: bool
    ) -> None:
        asyncio.run(
            asyncio.wait_for(self._with_offset(topic, transactional_id, group, offset, commit), PATIENCE_S)
        )

    async def _with_offset(
        self, topic: str, transactional_id: str, group: str, offset: int, commit: bool
    ) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self._bootstrap, transactional_id=transactional_id
        )
        await producer.start()
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"with an offset", partition=0)
        await producer.send_offsets_to_transaction({aiokafka.TopicPartition(topic, 0): offset}, group)
        await (producer.commit_transaction() if commit else producer.abort_transaction())
        await producer.stop()

    def read(self, topic: str, count: int) -> list[str]:
        return asyncio.run(asyncio.wait_for(self._read(topic, count), PATIENCE_S))

    async def _read(self, topic: str, count: int) -> list[str]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap, isolation_level="read_committed"
        )
        await consumer.start()
        place = aiokafka.TopicPartition(topic, 0)
        consumer.assign([place])
        consumer.seek(place, 0)
        values = [(await consumer.getone()).value.decode() for _ in range(count)]
        await consumer.stop()
        return values


class KafkaPython:
    name = "kafka-python"

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def write(self, topic: str, transactional_id: str, transactions: Sequence[Transaction]) -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=self._bootstrap, transactional_id=transactional_id)
        producer.init_transactions()
        for values, committed in transactions:
            producer.begin_transaction()
            for value in values:
                producer.send(topic, value.encode(), partition=0)
            producer.flush(PATIENCE_S)
            (producer.commit_transaction if committed else producer.abort_transaction)()
        producer.close()

    def write_with_offset(
        self, topic: str, transactional_id: str, group: str, offset: int, *, commit: bool
    ) -> None:
        producer = kafka.KafkaProducer(bootstrap_servers=self._bootstrap, transactional_id=transactional_id)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"with an offset", partition=0)
        place = kafka.TopicPartition(topic, 0)
        producer.send_offsets_to_transaction({place: kafka.structs.OffsetAndMetadata(offset, "", -1)}, group)
        (producer.commit_transaction if commit else producer.abort_transaction)()
        producer.close()

    def read(self, topic: str, count: int) -> list[str]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            isolation_level="read_committed",
            consumer_timeout_ms=PATIENCE_S * 1000,
        )
        place = kafka.TopicPartition(topic, 0)
        consumer.assign([place])
        consumer.seek(place, 0)
        values = [message.value.decode() for _, message in zip(range(count), consumer, strict=False)]
        consumer.close()
        return values


TRANSACTORS: Final[tuple[type[Transactor], ...]] = (Confluent, Aiokafka, KafkaPython)
