"""Transactions of real clients: what one commits all others read, what it aborts nobody does, and offsets go with them."""

from collections.abc import Callable

import confluent_kafka
import pytest

from tests.compat.clients import Confluent as Plain
from tests.compat.clients import Message
from tests.compat.java_tools import class_path_of, run_java
from tests.compat.transactors import PATIENCE_S, TRANSACTORS, Confluent, Transactor

pytestmark = [pytest.mark.compat, pytest.mark.timeout(120)]

WRITERS = pytest.mark.parametrize("kind", TRANSACTORS, ids=lambda kind: kind.name)


@WRITERS
def test_every_client_reads_what_one_has_committed_and_nothing_else(
    kind: type[Transactor], bootstrap: str, topic: str
) -> None:
    transactions = [([f"{number}-{each}" for each in range(20)], number % 3 != 1) for number in range(9)]
    kind(bootstrap).write(topic, f"writer of {topic}", transactions)
    expected = [value for values, committed in transactions if committed for value in values]
    for reader in TRANSACTORS:
        assert reader(bootstrap).read(topic, len(expected)) == expected, reader.name


def committed(bootstrap: str, topic: str, group: str) -> int:
    """Stable, as Java, librdkafka and all that read their own position ask for."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "isolation.level": "read_committed"}
    )
    (found,) = consumer.committed([confluent_kafka.TopicPartition(topic, 0)], PATIENCE_S)
    consumer.close()
    return int(found.offset)


@WRITERS
def test_an_offset_counts_when_its_transaction_does(
    kind: type[Transactor], bootstrap: str, topic: str, group: str
) -> None:
    transactor = kind(bootstrap)
    name = f"writer of {topic}"
    transactor.write_with_offset(topic, name, group, 7, commit=True)
    assert committed(bootstrap, topic, group) == 7
    transactor.write_with_offset(topic, name, group, 9, commit=False)
    assert committed(bootstrap, topic, group) == 7


@WRITERS
def test_whoever_comes_second_fences_whoever_came_first(
    kind: type[Transactor], bootstrap: str, topic: str
) -> None:
    name = f"writer of {topic}"
    zombie = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 0}
    )
    zombie.init_transactions(PATIENCE_S)
    zombie.begin_transaction()
    zombie.produce(topic, "zombie", partition=0)
    zombie.flush(PATIENCE_S)
    kind(bootstrap).write(topic, name, [(["heir"], True)])
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        zombie.commit_transaction(PATIENCE_S)
    assert refused.value.args[0].fatal()
    assert Confluent(bootstrap).read(topic, 1) == ["heir"]


@pytest.fixture(scope="module")
def java() -> Callable[..., str]:
    path = class_path_of("Transactions")
    return lambda *arguments: run_java(path, "Transactions", *arguments)


def test_java_copies_exactly_once_with_an_epoch_for_every_transaction(
    java: Callable[..., str], bootstrap: str, topic: str
) -> None:
    Plain(bootstrap).produce(topic, [Message(str(number).encode()) for number in range(20)])
    printed = java(bootstrap, topic, "20")
    assert dict(line.split(": ", 1) for line in printed.splitlines()) == {
        "attempts": "29",
        "zombie": "fenced",
        "committed": "20",
        "state": "CompleteCommit",
        "listed": "true",
        "feature": "2",
        "read": " ".join([*map(str, range(20)), "heir"]),
    }
