"""`ropewalk txn` as a user meets it, against a real node in this process."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from random import Random
from typing import TypeVar

import pytest

from ropewalk.base.ids import TopicPartition
from ropewalk.client.administration.open_transactions import OpenTransaction
from ropewalk.client.administration.transactions import (
    DescribedTransaction,
    Transactions,
    without_coordinator,
)
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import parse_addresses
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.network import TcpNetwork
from ropewalk.testing import Cluster
from ropewalk.wire.api import Api
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.types import Message
from tests.cli.conftest import Ropewalk
from tests.cli.test_cli_commands import lines
from tests.kafka.transactional import Transactional

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)
T = TypeVar("T")

PLACE = TopicPartition("orders", 0)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(settings={"transaction.state.log.num.partitions": 1}) as cluster:
        cluster.create_topic("orders", message_timestamp_after_max_ms=2**60)  # records are of simulated time
        yield cluster


@pytest.fixture(autouse=True)
def _bootstrap(cluster: Cluster, ropewalk: Ropewalk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROPEWALK_BOOTSTRAP", cluster.bootstrap)


class _Door:
    """The first broker, as tests of the door call it."""

    def __init__(self, client: Client) -> None:
        self._session = client.session

    async def call(self, api: Api[Q, R], version: int, request: Q) -> R:
        deadline_ms = self._session.deadline_ms()
        connection = await self._session.cluster.any_connection(deadline_ms=deadline_ms)
        return await connection.call(api, request, deadline_ms=deadline_ms, version_max=version)


def ask(cluster: Cluster, work: Callable[[Client], Awaitable[T]]) -> T:
    async def main() -> T:
        addresses = parse_addresses(cluster.bootstrap)
        async with Client(TcpNetwork(), SystemClock(), Random(0), addresses) as client:
            return await work(client)

    return asyncio.run(main())


def opened(cluster: Cluster, transactional_id: str) -> Transactional:
    """A producer in the midst of a transaction."""

    async def begin(client: Client) -> Transactional:
        producer = await Transactional(_Door(client), transactional_id).init()
        assert (await producer.send("orders", "one")).error_code == ErrorCode.NONE
        return producer

    return ask(cluster, begin)


def end(cluster: Cluster, producer: Transactional, *, committed: bool) -> int:
    async def work(client: Client) -> int:
        producer.door = _Door(client)
        return await producer.end(committed=committed)

    return ask(cluster, work)


def test_transactions_are_listed_and_described(cluster: Cluster, ropewalk: Ropewalk) -> None:
    producer = opened(cluster, "shown")
    assert ["shown", "Ongoing"] in [line[:2] for line in lines(ropewalk("txn", "ls").stdout)]
    (listed,) = json.loads(ropewalk("txn", "ls", "--match", "sho.*", "-o", "json").stdout)
    assert (listed["transactional_id"], listed["state"], listed["coordinator"]) == ("shown", "Ongoing", 0)
    assert json.loads(ropewalk("txn", "ls", "--longer-than", "1h", "-o", "json").stdout) == []
    (described,) = json.loads(ropewalk("txn", "describe", "shown", "-o", "json").stdout)
    assert described["state"] == "Ongoing"
    assert described["partitions"] == [{"topic": "orders", "partition": 0}]
    assert described["producer_id"] == listed["producer_id"]
    table = lines(ropewalk("txn", "describe", "shown").stdout)
    assert (table[0][0], table[1][:2], table[1][-1]) == ("ID", ["shown", "Ongoing"], "orders-0")

    assert end(cluster, producer, committed=True) == ErrorCode.NONE
    shown = json.loads(ropewalk("txn", "ls", "-s", "Ongoing", "-s", "Sleeping", "-o", "json").stdout)
    assert "shown" not in [each["transactional_id"] for each in shown]


def test_an_abort_fences_the_producer(cluster: Cluster, ropewalk: Ropewalk) -> None:
    producer = opened(cluster, "aborted")
    refused = ropewalk("txn", "abort", "aborted")
    assert refused.exit_code == 1
    assert "--yes" in refused.stderr
    result = ropewalk("txn", "abort", "aborted", "--yes")
    assert result.exit_code == 0, result.stderr
    assert ["aborted", "aborted"] in lines(result.stdout)
    assert end(cluster, producer, committed=True) == ErrorCode.PRODUCER_FENCED
    again = ropewalk("txn", "abort", "aborted", "-y")
    assert ["aborted", "nothing", "to", "abort"] in lines(again.stdout)
    (described,) = json.loads(ropewalk("txn", "describe", "aborted", "-o", "json").stdout)
    assert described["partitions"] == []


def test_what_is_not_there_is_said(ropewalk: Ropewalk) -> None:
    for command in (("describe", "nobody"), ("abort", "nobody", "-y")):
        result = ropewalk("txn", *command)
        assert result.exit_code == 1
        assert "TRANSACTIONAL_ID_NOT_FOUND" in result.stderr
    assert "INVALID_REGULAR_EXPRESSION" in ropewalk("txn", "ls", "--match", "(").stderr
    assert ropewalk("txn", "ls", "--longer-than", "soon").exit_code == 2


def test_a_transaction_that_its_coordinator_knows_does_not_hang(cluster: Cluster, ropewalk: Ropewalk) -> None:
    producer = opened(cluster, "known")
    for arguments in ((), ("orders",), ("orders-0",), ("--abort", "-y")):
        result = ropewalk("txn", "hanging", *arguments)
        assert (result.exit_code, result.stdout) == (0, "no transaction hangs\n"), result.stderr
    assert json.loads(ropewalk("txn", "hanging", "-o", "json").stdout) == []
    assert end(cluster, producer, committed=False) == ErrorCode.NONE


def test_a_transaction_can_be_ended_in_a_partition(cluster: Cluster) -> None:
    producer = opened(cluster, "torn")

    async def work(client: Client) -> list[int]:
        transactions = Transactions(client)
        (found,) = [
            each for each in await transactions.open_in([PLACE]) if each.producer_id == producer.producer_id
        ]
        assert await transactions.abort_in_partition(found) is None
        return [each.producer_id for each in await transactions.open_in([PLACE])]

    assert producer.producer_id not in ask(cluster, work)
    assert end(cluster, producer, committed=False) == ErrorCode.NONE


def test_only_what_no_coordinator_will_end_hangs() -> None:
    def described(state: str, *partitions: TopicPartition) -> DescribedTransaction:
        return DescribedTransaction("t", state, 7, 3, 60_000, 0, partitions, "127.0.0.1:9092")

    other = TopicPartition("orders", 1)
    here, there = (OpenTransaction(place, 7, 2, 0, 40, 0) for place in (PLACE, other))
    stranger = OpenTransaction(PLACE, 8, 0, 0, 41, 0)
    assert without_coordinator([here, there, stranger], [described("Ongoing", PLACE)]) == [there, stranger]
    assert without_coordinator([here], [described("PrepareAbort", PLACE)]) == []
    assert without_coordinator([here], [described("CompleteCommit")]) == [here]
    assert without_coordinator([here], []) == [here]
