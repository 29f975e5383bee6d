"""The walks in ARCHITECTURE are those that requests take: a simulated node is watched while it answers, file by file."""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from ropewalk.base.ids import ProducerEpoch, ProducerId
from ropewalk.client.administration.admin import Admin, NewTopic
from ropewalk.client.calls.produce import Acks
from ropewalk.records.record import Record, build
from ropewalk.wire.messages import end_txn, find_coordinator, init_producer_id, offset_commit, produce
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.http.client import Line
from tests.kafka.door import Door, at_the_door, batch_of, produce_request

ROOT = Path(__file__).parent.parent
WALKS = {
    title: re.findall(r"`([\w/]+\.py)`", text)
    for title, text in re.findall(
        r"^## The way of an? ([^\n]+)\n(?:(?!^## ).)*?^Files in order: (.+?)\n\n",
        (ROOT / "ARCHITECTURE.md").read_text(),
        re.DOTALL | re.MULTILINE,
    )
}
ROOMS = (
    "kafka/",
    "sqs/",
    "http1/",
    "broker/",
    "groups/",
    "queues/",
    "transactions/",
    "replication/",
    "log/",
    "records/",
    "runtime/steps.py",
)
FOLLOWERS_FILES_MAX = 20

ASKED_ON_THE_WAY = {
    "broker/hosting/steady_time.py": "a clock",
    "broker/partitions/believed_clock.py": "a clock",
    "broker/partitions/leader_epochs.py": "one comparison",
    "broker/partitions/waiters.py": "a queue",
    "broker/cluster/whereabouts.py": "a table",
    "broker/peers/calls/call.py": "a value",
    "broker/reading/fetch_sessions.py": "a table",
    "broker/reading/nearest.py": "who is near, where racks are told",
    "broker/queues/message_ids.py": "an id",
    "broker/queues/queues.py": "a table",
    "broker/queues/snapshots.py": "whether one is due",
    "groups/step.py": "a value",
    "http1/connections.py": "figures",
    "http1/message.py": "values",
    "kafka/caller.py": "a value",
    "kafka/receive_buffer.py": "the bytes of a connection",
    "kafka/served.py": "a line of the table of APIs",
    "kafka/tally.py": "figures",
    "log/damage.py": "what of a log is damaged",
    "log/descriptors.py": "open files",
    "log/index.py": "where in a file an offset is",
    "log/segment.py": "a file",
    "log/segments.py": "the files of a log",
    "log/span.py": "a stretch of a file",
    "log/storage.py": "the files of a log",
    "log/tail.py": "what was written last",
    "log/transactions.py": "what is open in a log",
    "log/trust.py": "what of a file was verified",
    "queues/due_times.py": "when something is due",
    "queues/fair_line.py": "a queue",
    "queues/log_clock.py": "a clock",
    "queues/outlook.py": "which messages can be given out",
    "queues/sent_times.py": "a table",
    "queues/waiting.py": "a queue",
    "records/batch.py": "the header of a batch",
    "records/compression.py": "a codec",
    "records/record.py": "how a batch is built",
    "sqs/attributes.py": "what attributes may be",
    "sqs/checksums.py": "a digest",
    "sqs/desk.py": "a table",
    "sqs/message_ids.py": "an id",
    "sqs/messages.py": "what a message may be",
    "sqs/shapes.py": "what a request may be",
    "sqs/urls.py": "a name in an address",
    "transactions/events.py": "values",
    "transactions/identity.py": "one comparison",
    "transactions/waiting.py": "a queue",
}
"""Small things that those who walk ask, and that walks do not name."""


@contextmanager
def watched() -> Iterator[list[str]]:
    """Every file that is entered, in order, without those that it came from."""
    entered: list[str] = []

    def on_event(frame: FrameType, event: str, _: object) -> None:
        before, is_ours, name = frame.f_code.co_filename.rpartition("/ropewalk/")
        if event == "call" and is_ours and before.endswith("/src") and name.startswith(ROOMS):
            entered.append(name)

    sys.setprofile(on_event)
    try:
        yield entered
    finally:
        sys.setprofile(None)


def entered_by_produce() -> list[str]:
    async def story(door: Door) -> list[str]:
        await door.create("t")
        await door.call(produce.API, 12, produce_request("t", batch_of("a")))
        with watched() as entered:
            await door.call(produce.API, 12, produce_request("t", batch_of("b")))
        return entered

    return at_the_door(story)


def entered_by_fetch() -> list[str]:
    async def story(door: Door) -> list[str]:
        await door.create("t")
        await door.produce("t", batch_of("a"))
        await door.fetch("t", 0)
        with watched() as entered:
            await door.fetch("t", 0)
        return entered

    return at_the_door(story)


async def coordinated(door: Door, key: str, key_type: int) -> None:
    request = find_coordinator.FindCoordinatorRequest(key_type=key_type, coordinator_keys=(key,))
    while (await door.call(find_coordinator.API, 6, request)).coordinators[0].error_code:
        await asyncio.sleep(0.1)


def entered_by_commit() -> list[str]:
    async def story(door: Door) -> list[str]:
        await door.create("t")
        await coordinated(door, "g", 0)
        partition = offset_commit.OffsetCommitRequestPartition(0, 1, committed_metadata="")
        topic = offset_commit.OffsetCommitRequestTopic(name="t", partitions=(partition,))
        request = offset_commit.OffsetCommitRequest("g", topics=(topic,))
        while (await door.call(offset_commit.API, 9, request)).topics[0].partitions[0].error_code:
            await asyncio.sleep(0.1)
        with watched() as entered:
            await door.call(offset_commit.API, 9, request)
        return entered

    return at_the_door(story)


def entered_by_end() -> list[str]:
    async def story(door: Door) -> list[str]:
        await door.create("t")
        await coordinated(door, "w", 1)
        init = init_producer_id.InitProducerIdRequest("w", 60_000)
        while (identity := await door.call(init_producer_id.API, 5, init)).error_code:
            await asyncio.sleep(0.1)
        batch = build(
            [Record(timestamp=0, value=b"a")],
            producer_id=ProducerId(identity.producer_id),
            producer_epoch=ProducerEpoch(identity.producer_epoch),
            base_sequence=0,
            is_transactional=True,
        )
        data = produce.TopicProduceData("t", bytes(16), (produce.PartitionProduceData(0, bytes(batch)),))
        await door.call(produce.API, 12, produce.ProduceRequest("w", -1, 30_000, (data,)))
        request = end_txn.EndTxnRequest("w", identity.producer_id, identity.producer_epoch, True)
        with watched() as entered:
            assert (await door.call(end_txn.API, 5, request)).error_code == 0
            await asyncio.sleep(0.02)  # for the markers
        return entered

    return at_the_door(story)


def entered_by_send() -> list[str]:
    async def story(door: Door) -> list[str]:
        line = await Line.open(door.world.network.host("client"), "node", 9324)

        async def ask(action: str, **parameters: str) -> int:
            body = json.dumps(parameters).encode()
            head = f"POST / HTTP/1.1\r\nHost: node\r\nX-Amz-Target: AmazonSQS.{action}\r\nContent-Length: {len(body)}\r\n\r\n"
            line.send(head.encode() + body)
            return (await line.page()).status

        assert await ask("CreateQueue", QueueName="jobs") == 200
        while await ask("SendMessage", QueueUrl="jobs", MessageBody="a") != 200:
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        with watched() as entered:
            assert await ask("SendMessage", QueueUrl="jobs", MessageBody="b") == 200
        return entered

    return at_the_door(story, "sqs.listen=node:9324", "sqs.insecure=true")


def entered_by_follower() -> list[str]:
    """By a fetch that waits for a write, from the follower's asking to its answer in the log."""

    async def story(nodes: Nodes) -> list[str]:
        async with nodes.client() as client:
            await Admin(client).create_topics([NewTopic("t", 1, 2)])
            batch = build([Record(timestamp=0, value=b"a")])
            await client.produce("t", 0, bytearray(batch), acks=Acks.ALL)
            with watched() as entered:
                for _ in range(2):
                    await client.produce("t", 0, bytearray(batch), acks=Acks.ALL)
                    await asyncio.sleep(0.1)
        answered = entered.index("broker/partitions/replica.py")
        asked = entered.index("broker/copying/fetcher.py", answered)
        return entered[asked:]

    return in_a_cluster(story, nodes=2)


def of_those_that_walk(entered: list[str], walk: list[str]) -> list[str]:
    return [name for name in dict.fromkeys(entered) if name in walk]


@pytest.mark.parametrize(
    ("walk", "entered_by"),
    [
        pytest.param("Produce", entered_by_produce, id="Produce"),
        pytest.param("Fetch", entered_by_fetch, id="Fetch"),
        pytest.param("group's commit", entered_by_commit, id="OffsetCommit"),
        pytest.param("transaction", entered_by_end, id="EndTxn"),
        pytest.param("SendMessage", entered_by_send, id="SendMessage"),
    ],
)
def test_a_request_enters_the_files_of_its_walk_in_order(
    walk: str, entered_by: Callable[[], list[str]]
) -> None:
    entered = entered_by()
    named = WALKS[walk]
    assert of_those_that_walk(entered, named) == named
    assert set(entered) - set(named) - set(ASKED_ON_THE_WAY) == set()


def test_a_followers_fetch_enters_the_files_of_its_walk_in_order() -> None:
    """Those apart that the write enters as well, for which the fetch waits at its leader."""
    named = [name for name in WALKS["copy"] if name not in WALKS["Produce"]]
    assert of_those_that_walk(entered_by_follower(), named) == named


def test_every_walk_names_files_that_exist_and_none_twice() -> None:
    assert list(WALKS) == ["Produce", "Fetch", "copy", "group's commit", "transaction", "SendMessage"]
    for walk, named in WALKS.items():
        assert [name for name in named if not (ROOT / "src/ropewalk" / name).exists()] == [], walk
        assert len(named) == len(set(named)), walk
    assert len(WALKS["copy"]) <= FOLLOWERS_FILES_MAX


if __name__ == "__main__":  # what to write, where a walk has become another one
    for entered_by in (
        entered_by_produce,
        entered_by_fetch,
        entered_by_commit,
        entered_by_end,
        entered_by_send,
    ):
        walk = [name for name in dict.fromkeys(entered_by()) if name not in ASKED_ON_THE_WAY]
        print(f"{entered_by.__name__}: " + ", ".join(f"`{name}`" for name in walk))
