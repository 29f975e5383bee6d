"""Transactions at the Kafka door of one node: both kinds, offsets with them, timeouts, restarts and what administrators see."""

import asyncio

import pytest

from ropewalk.records.batch import iterate
from ropewalk.records.record import iterate_records
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    add_partitions_to_txn,
    api_versions,
    describe_transactions,
    fetch,
    find_coordinator,
    init_producer_id,
    list_transactions,
    offset_fetch,
    produce,
    write_txn_markers,
)
from tests.kafka.door import Door, at_the_door, batch_of, produce_request
from tests.kafka.transactional import Transactional, read_committed

SETTINGS = (
    "transaction.state.log.num.partitions=3",
    "offsets.topic.num.partitions=3",
    "group.initial.rebalance.delay.ms=0",
)
TIMED_OUT = {True: ErrorCode.INVALID_TXN_STATE, False: ErrorCode.PRODUCER_FENCED}
"""What a producer hears that would commit what was aborted since it took too long. With an epoch for every transaction it may have
missed the answer to an abort of its own, so that it is not told of another producer."""

KINDS = pytest.mark.parametrize("tv2", [True, False], ids=["TV2", "TV1"])


def values(found: fetch.PartitionData) -> list[str]:
    """What a consumer of committed records hands on: neither markers nor what was aborted."""
    aborted = sorted((each.first_offset, each.producer_id) for each in found.aborted_transactions or ())
    data = memoryview(bytes(found.records or b""))
    read: list[str] = []
    cut: set[int] = set()
    for position, header in iterate(data):
        while aborted and aborted[0][0] <= header.base_offset:
            cut.add(aborted.pop(0)[1])
        if header.is_control:
            cut.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in cut):
            batch = data[position : position + header.size_bytes]
            read += [bytes(record.value or b"").decode() for record in iterate_records(batch)]
    return read


async def seen(door: Door, topic: str = "t", *, count: int, partition: int = 0) -> list[str]:
    """Committed values, once there are so many: markers follow the answer to EndTxn."""
    while len(found := values(await read_committed(door, topic, partition=partition))) < count:
        await asyncio.sleep(0.001)
    return found


async def settled(door: Door, topic: str = "t", partition: int = 0) -> fetch.PartitionData:
    """The partition when nothing in it is undecided any more."""
    while True:
        found = await read_committed(door, topic, partition=partition)
        if found.last_stable_offset == found.high_watermark:
            return found
        await asyncio.sleep(0.001)


async def begun(door: Door, *, tv2: bool, name: str = "t", timeout_ms: int = 60_000) -> Transactional:
    """A producer that has a transaction open in partition 0 of `t`, with one record in it."""
    producer = await Transactional(door, name, tv2=tv2).init(timeout_ms=timeout_ms)
    if not tv2:
        assert await producer.add("t", 0) == [0]
    assert (await producer.send("t", "one")).error_code == 0
    return producer


@KINDS
def test_what_is_committed_is_seen_and_not_before(tv2: bool) -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        producer = await begun(door, tv2=tv2)
        early = await read_committed(door, "t")
        assert (early.last_stable_offset, values(early)) == (0, [])
        assert await producer.end(committed=True) == 0
        assert await seen(door, count=1) == ["one"]

    at_the_door(story, *SETTINGS)


@KINDS
def test_what_is_aborted_is_never_seen(tv2: bool) -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        producer = await begun(door, tv2=tv2)
        assert await producer.end(committed=False) == 0
        found = await settled(door)
        assert values(found) == []
        assert [each.first_offset for each in found.aborted_transactions or ()] == [0]
        assert found.last_stable_offset == 2, "the record and its marker"

    at_the_door(story, *SETTINGS)


@KINDS
def test_one_transaction_follows_another_at_once(tv2: bool) -> None:
    async def story(door: Door) -> None:
        await door.create("t", 2)
        producer = await Transactional(door, tv2=tv2).init()
        for number in range(20):
            for partition in (0, 1):
                if not tv2:
                    assert await producer.add("t", partition) == [0]
                answer = await producer.send("t", str(number), partition=partition)
                assert answer.error_code == 0, answer.error_message
            assert await producer.end(committed=number % 3 != 0) == 0
        expected = [str(number) for number in range(20) if number % 3]
        for partition in (0, 1):
            assert await seen(door, count=len(expected), partition=partition) == expected

    at_the_door(story, *SETTINGS)


def test_every_transaction_of_the_second_kind_has_an_epoch_of_its_own() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        producer = await begun(door, tv2=True)
        before = producer.producer_epoch
        assert await producer.end(committed=True) == 0
        assert producer.producer_epoch == before + 1

    at_the_door(story, *SETTINGS)


@KINDS
def test_a_commit_that_is_repeated_succeeds_and_the_contrary_does_not(tv2: bool) -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        producer = await begun(door, tv2=tv2)
        held = (producer.producer_id, producer.producer_epoch)
        assert await producer.end(committed=True) == 0
        await settled(door)
        after = (producer.producer_id, producer.producer_epoch)
        producer.producer_id, producer.producer_epoch = held
        assert await producer.end(committed=True) == 0
        assert (producer.producer_id, producer.producer_epoch) == after
        producer.producer_id, producer.producer_epoch = held
        assert await producer.end(committed=False) == ErrorCode.INVALID_TXN_STATE

    at_the_door(story, *SETTINGS)


@KINDS
def test_whoever_takes_over_fences_the_former_producer_and_aborts_what_it_left(tv2: bool) -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        zombie = await begun(door, tv2=tv2)
        heir = await Transactional(door, tv2=tv2).init()
        assert heir.producer_id == zombie.producer_id
        assert heir.producer_epoch > zombie.producer_epoch
        assert (await zombie.send("t", "late")).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        assert await zombie.end(committed=True) == ErrorCode.PRODUCER_FENCED
        assert await zombie.end(committed=True, version=1) == ErrorCode.INVALID_PRODUCER_EPOCH
        if not tv2:
            assert await heir.add("t", 0) == [0]
        assert (await heir.send("t", "heir")).error_code == 0
        assert await heir.end(committed=True) == 0
        assert await seen(door, count=1) == ["heir"]

    at_the_door(story, *SETTINGS)


@KINDS
def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_refused(tv2: bool) -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        producer = await begun(door, tv2=tv2, timeout_ms=1_000)
        await asyncio.sleep(3)
        assert values(await settled(door)) == []
        assert await producer.end(committed=True) == TIMED_OUT[tv2]

    at_the_door(story, *SETTINGS)


@pytest.mark.parametrize(
    ("version", "expected"), [(9, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)]
)
def test_a_partition_that_was_not_added_is_not_written_to(version: int, expected: ErrorCode) -> None:
    async def story(door: Door) -> None:
        await door.create("t", 2)
        producer = await begun(door, tv2=False)
        answer = await producer.send("t", "unasked", partition=1, version=version)
        assert answer.error_code == expected
        assert await producer.end(committed=True) == 0
        assert (await settled(door, partition=1)).high_watermark == 0

    at_the_door(story, *SETTINGS)


def test_a_batch_of_a_transaction_needs_the_transactional_id() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        producer = await begun(door, tv2=True)
        request = produce_request("t", producer.batch("t", "nameless"))
        answer = (await door.call(produce.API, 9, request)).topics[0].partitions[0]
        assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert (await producer.send("t", "two")).error_code == 0

    at_the_door(story, *SETTINGS)


def test_a_producer_in_a_transaction_may_not_write_beside_it() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        producer = await begun(door, tv2=True)
        plain = batch_of("plain", producer=(producer.producer_id, producer.producer_epoch, 1))
        assert (await door.produce("t", plain)).error_code == ErrorCode.INVALID_TXN_STATE

    at_the_door(story, *SETTINGS)


@KINDS
def test_what_was_decided_before_a_crash_is_carried_out_after_it(tv2: bool) -> None:
    """However far the markers came: the node dies at once when EndTxn is answered."""

    async def story(door: Door) -> None:
        await door.create("t", 2)
        producer = await begun(door, tv2=tv2)
        if not tv2:
            assert await producer.add("t", 1) == [0]
        assert (await producer.send("t", "two", partition=1)).error_code == 0
        assert await producer.end(committed=True) == 0
        await door.restart()
        assert await seen(door, count=1) == ["one"]
        assert await seen(door, count=1, partition=1) == ["two"]
        producer.door = door
        assert (await Transactional(door, tv2=tv2).init()).producer_id == producer.producer_id

    at_the_door(story, *SETTINGS)


def test_an_open_transaction_survives_a_restart_and_can_be_committed() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        producer = await begun(door, tv2=True)
        await door.restart()
        producer.door = door
        await producer.find()
        assert (await producer.send("t", "two")).error_code == 0
        assert await producer.end(committed=True) == 0
        assert await seen(door, count=2) == ["one", "two"]

    at_the_door(story, *SETTINGS)


def test_a_topic_that_is_deleted_meanwhile_does_not_keep_a_transaction_open() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await door.create("gone")
        producer = await begun(door, tv2=True)
        assert (await producer.send("gone", "x")).error_code == 0
        await door.delete("gone")
        assert await producer.end(committed=True) == 0
        assert await seen(door, count=1) == ["one"]
        assert (await producer.send("t", "next")).error_code == 0

    at_the_door(story, *SETTINGS)


async def committed_offset(door: Door, *, stable: bool = True) -> tuple[int, int]:
    topic = offset_fetch.OffsetFetchRequestTopics("t", partition_indexes=(0,))
    group = offset_fetch.OffsetFetchRequestGroup("g", topics=(topic,))
    request = offset_fetch.OffsetFetchRequest(groups=(group,), require_stable=stable)
    answer = (await door.call(offset_fetch.API, 8, request)).groups[0]
    if answer.error_code:
        return answer.error_code, -1
    found = answer.topics[0].partitions[0]
    return found.error_code, found.committed_offset


async def find_group(door: Door) -> None:
    request = find_coordinator.FindCoordinatorRequest(coordinator_keys=("g",))
    (found,) = (await door.call(find_coordinator.API, 4, request)).coordinators
    assert found.error_code == 0


@KINDS
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_offsets_count_when_their_transaction_does(tv2: bool, committed: bool) -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await find_group(door)
        producer = await begun(door, tv2=tv2)
        if not tv2:
            assert await producer.add_offsets("g") == 0
        assert await producer.commit_offset("g", "t", 7) == 0
        assert await committed_offset(door) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
        assert await committed_offset(door, stable=False) == (0, -1)
        assert await producer.end(committed=committed) == 0
        while (found := await committed_offset(door))[0] == ErrorCode.UNSTABLE_OFFSET_COMMIT:
            await asyncio.sleep(0.001)
        assert found == (0, 7 if committed else -1)
        await door.restart()
        while (found := await committed_offset(door))[0] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            await asyncio.sleep(0.001)
        assert found == (0, 7 if committed else -1)

    at_the_door(story, *SETTINGS)


def test_offsets_that_were_not_announced_are_refused() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await find_group(door)
        producer = await begun(door, tv2=False)
        assert await producer.commit_offset("g", "t", 7, version=3) == ErrorCode.INVALID_TXN_STATE
        assert await producer.commit_offset("g", "t", 7, version=4) == ErrorCode.TRANSACTION_ABORTABLE
        assert await committed_offset(door) == (0, -1)

    at_the_door(story, *SETTINGS)


async def describe(door: Door, *names: str) -> list[describe_transactions.TransactionState]:
    request = describe_transactions.DescribeTransactionsRequest(names)
    return list((await door.call(describe_transactions.API, 0, request)).transaction_states)


def test_administrators_see_transactions() -> None:
    async def story(door: Door) -> None:
        await door.create("t", 2)
        producer = await begun(door, tv2=True)
        idle = await Transactional(door, "idle").init()
        found, unknown = await describe(door, "t", "nobody")
        assert (found.transaction_state, found.producer_id) == ("Ongoing", producer.producer_id)
        assert [(topic.name, topic.partitions) for topic in found.topics] == [("t", (0,))]
        assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

        async def listed(
            *states: str, pattern: str | None = None, duration: int = -1
        ) -> list_transactions.ListTransactionsResponse:
            request = list_transactions.ListTransactionsRequest(states, (), duration, pattern)
            return await door.call(list_transactions.API, 2, request)

        everything = await listed()
        assert {each.transactional_id: each.transaction_state for each in everything.transaction_states} == {
            "t": "Ongoing",
            "idle": "Empty",
        }
        ongoing = await listed("Ongoing", "Nonsense")
        assert [each.transactional_id for each in ongoing.transaction_states] == ["t"]
        assert ongoing.unknown_state_filters == ("Nonsense",)
        assert [each.producer_id for each in (await listed(pattern="id.*")).transaction_states] == [
            idle.producer_id
        ]
        assert (await listed(duration=60_000)).transaction_states == ()
        assert (await listed(pattern="(")).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION

    at_the_door(story, *SETTINGS)


def markers(
    producer_id: int, epoch: int, *, committed: bool, coordinator_epoch: int = 0
) -> write_txn_markers.WriteTxnMarkersRequest:
    topic = write_txn_markers.WritableTxnMarkerTopic("t", (0,))
    marker = write_txn_markers.WritableTxnMarker(producer_id, epoch, committed, (topic,), coordinator_epoch)
    return write_txn_markers.WriteTxnMarkersRequest((marker,))


async def write_marker(door: Door, producer: Transactional, *, committed: bool, version: int = 1) -> int:
    request = markers(producer.producer_id, producer.producer_epoch, committed=committed)
    answer = await door.call(write_txn_markers.API, version, request)
    return answer.markers[0].topics[0].partitions[0].error_code


def test_an_administrator_may_abort_what_hangs_and_commit_nothing() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        producer = await begun(door, tv2=False)
        assert await write_marker(door, producer, committed=True) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert values(await read_committed(door, "t")) == []
        assert await write_marker(door, producer, committed=False) == 0
        found = await settled(door)
        assert (found.last_stable_offset, values(found)) == (2, [])

    at_the_door(story, *SETTINGS)


@pytest.mark.parametrize(
    ("producer_epoch", "coordinator_epoch"),
    [(0, 2**31 - 1), (0, 1), (7, 0)],
    ids=[
        "the last epoch there is",
        "one that has yet to begin",
        "an epoch of the producer that was never given",
    ],
)
def test_an_administrator_fences_neither_the_coordinator_nor_the_producer(
    producer_epoch: int, coordinator_epoch: int
) -> None:
    """The marker of the coordinator itself would come too late for ever, and the transaction hang."""

    async def story(door: Door) -> None:
        await door.create("t")
        producer = await begun(door, tv2=False)
        request = markers(
            producer.producer_id,
            producer.producer_epoch + producer_epoch,
            committed=False,
            coordinator_epoch=coordinator_epoch,
        )
        answer = await door.call(write_txn_markers.API, 1, request)
        assert answer.markers[0].topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
        assert await producer.end(committed=True) == 0
        found = await settled(door)
        assert values(found) == ["one"]

    at_the_door(story, *SETTINGS)


def test_only_nodes_may_add_partitions_for_others() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        producer = await begun(door, tv2=True)
        topic = add_partitions_to_txn.AddPartitionsToTxnTopic("t", (0,))
        transaction = add_partitions_to_txn.AddPartitionsToTxnTransaction(
            "t", producer.producer_id, producer.producer_epoch, False, (topic,)
        )
        request = add_partitions_to_txn.AddPartitionsToTxnRequest((transaction,))
        answer = await door.call(add_partitions_to_txn.API, 4, request)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    at_the_door(story, *SETTINGS)


@pytest.mark.parametrize("internal", ["__transaction_state", "__consumer_offsets"])
def test_the_clusters_own_topics_take_part_in_no_clients_transaction(internal: str) -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await find_group(door)
        old = await begun(door, tv2=False, name="old")
        assert await old.add(internal, 0) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        quick = await begun(door, tv2=True, name="quick")
        assert (await quick.send(internal, "x")).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        for name in ("old", "quick"):
            (found,) = await describe(door, name)
            assert [topic.name for topic in found.topics] == ["t"]

    at_the_door(story, *SETTINGS)


def test_no_marker_gets_behind_the_back_of_the_coordinator() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        producer = await begun(door, tv2=True)
        topic = write_txn_markers.WritableTxnMarkerTopic("__transaction_state", (0, 1, 2))
        marker = write_txn_markers.WritableTxnMarker(
            producer.producer_id, producer.producer_epoch, False, (topic,), 0
        )
        request = write_txn_markers.WriteTxnMarkersRequest((marker,))
        (answer,) = (await door.call(write_txn_markers.API, 1, request)).markers
        codes = {each.error_code for found in answer.topics for each in found.partitions}
        assert codes == {ErrorCode.INVALID_TOPIC_EXCEPTION}
        assert await producer.end(committed=True) == 0

    at_the_door(story, *SETTINGS)


def test_a_partition_that_does_not_exist_fails_all_that_were_to_be_added() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        producer = await Transactional(door, tv2=False).init()
        assert await producer.add("t", 0, 5) == [
            ErrorCode.OPERATION_NOT_ATTEMPTED,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert (await describe(door, "t"))[0].transaction_state == "Empty"

    at_the_door(story, *SETTINGS)


@pytest.mark.parametrize(
    ("transactional_id", "timeout_ms", "expected"),
    [
        pytest.param("t", 900_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT, id="above the maximum"),
        pytest.param("t", 0, ErrorCode.INVALID_TRANSACTION_TIMEOUT, id="no time at all"),
        pytest.param("", 60_000, ErrorCode.INVALID_REQUEST, id="an empty id"),
    ],
)
def test_a_producer_that_asks_for_nonsense_is_refused(
    transactional_id: str, timeout_ms: int, expected: ErrorCode
) -> None:
    async def story(door: Door) -> None:
        await Transactional(door, transactional_id).find()
        request = init_producer_id.InitProducerIdRequest(transactional_id, timeout_ms)
        assert (await door.call(init_producer_id.API, 5, request)).error_code == expected

    at_the_door(story, *SETTINGS)


def test_an_unknown_producer_is_refused_by_every_request() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await find_group(door)
        stranger = Transactional(door, tv2=False)
        await stranger.find()
        stranger.producer_id, stranger.producer_epoch = 4711, 0
        unknown = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert await stranger.add("t", 0) == [unknown]
        assert await stranger.add_offsets("g") == unknown
        assert await stranger.end(committed=True) == unknown
        assert (await stranger.send("t", "x")).error_code == unknown
        assert (await stranger.send("t", "x", version=12)).error_code == unknown
        assert await stranger.commit_offset("g", "t", 1) == unknown

    at_the_door(story, *SETTINGS)


def test_nobody_looks_after_a_transactional_id_before_its_coordinator_was_looked_for() -> None:
    async def story(door: Door) -> None:
        producer = Transactional(door)
        assert await producer.try_init() == ErrorCode.NOT_COORDINATOR
        assert await producer.end(committed=True) == ErrorCode.NOT_COORDINATOR

    at_the_door(story, *SETTINGS)


def test_answers_wait_while_the_state_is_read() -> None:
    """A producer that comes back at once after a restart is told to try again, not that it is unknown."""

    async def story(door: Door) -> None:
        await door.create("t")
        producer = await begun(door, tv2=True)
        await door.restart()
        producer.door = door
        codes = {await producer.end(committed=True)}
        while codes & {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}:
            await asyncio.sleep(0.001)
            codes = {await producer.end(committed=True)}
        assert codes == {0}

    at_the_door(story, *SETTINGS)


def test_a_node_that_looks_after_transactions_stops_in_order() -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        await begun(door, tv2=True)
        await door.node.stop()
        assert not door.node.failed.done()

    at_the_door(story, *SETTINGS)


@pytest.mark.parametrize(("version", "supported"), [(3, []), (4, [("transaction.version", 0, 2)])])
def test_clients_are_told_that_every_transaction_has_an_epoch(
    version: int, supported: list[tuple[str, int, int]]
) -> None:
    """Of what may be off entirely, clients that do not know such features are told only that it is on."""

    async def story(door: Door) -> None:
        request = api_versions.ApiVersionsRequest("test", "1.0")
        answer = await door.call(api_versions.API, version, request)
        finalized = {each.name: each.max_version_level for each in answer.finalized_features}
        assert finalized["transaction.version"] == 2
        assert answer.finalized_features_epoch >= 0
        found = [(each.name, each.min_version, each.max_version) for each in answer.supported_features]
        assert [each for each in found if each[0] == "transaction.version"] == supported

    at_the_door(story)
