"""The consumer at the edges: what cannot be opened, offsets that are gone, replicas that fail, histories that change, groups that move on.

Over whole nodes, in virtual time.
"""

import asyncio
from collections.abc import Sequence

import pytest

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.client.administration.admin import Admin
from ropewalk.client.administration.leadership import Leadership
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.list_offsets import Isolation
from ropewalk.client.calls.produce import Acks
from ropewalk.client.connections.cluster import Cluster, ClusterView
from ropewalk.client.consumer import Consumer as PartitionReader
from ropewalk.client.consuming.consumer import Consumer
from ropewalk.client.consuming.fetcher import Fetcher
from ropewalk.client.errors import CommitFailed, HistoryChanged, TransactionFailed, UnreadableBatch
from ropewalk.client.producing.producer import Producer
from ropewalk.metadata.settings.replication import RACK_AWARE_SELECTOR
from ropewalk.records.batch import HEADER_BYTES, stamp_crc
from ropewalk.records.codec import Codec
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import create_topics
from tests.client.test_client_in_a_cluster import HostPorts
from tests.cluster import nodes as cluster_of_nodes
from tests.cluster.nodes import KAFKA_PORT, Member, Nodes, in_a_cluster
from tests.cluster.test_cluster_moves import ask, make_orders, partition_at
from tests.kafka.door import batch_of

ORDERS = TopicPartition("orders", 0)
QUICK = "group.initial.rebalance.delay.ms=0"


def consumer_of(
    nodes: Nodes, name: str = "consumer", group: str | None = None, **settings: object
) -> Consumer:
    bootstrap = ",".join(f"node{node_id}:{KAFKA_PORT}" for node_id in nodes.members)
    chosen = {"auto_offset_reset": "earliest", **settings}
    return Consumer(bootstrap, group=group, ports=HostPorts(nodes, name), **chosen)  # type: ignore[arg-type]


async def make(nodes: Nodes, client: Client, *replicas: tuple[int, ...], **settings: str) -> None:
    """`orders`, with a partition on each list of replicas."""
    assigned = tuple(
        create_topics.CreatableReplicaAssignment(index, each) for index, each in enumerate(replicas)
    )
    configs = tuple(
        create_topics.CreatableTopicConfig(key.replace("_", "."), value) for key, value in settings.items()
    )
    asked = create_topics.CreatableTopic("orders", -1, -1, assigned, configs)
    (made,) = (await ask(client, create_topics.API, create_topics.CreateTopicsRequest((asked,)))).topics
    assert made.error_code == ErrorCode.NONE, made
    await nodes.until(lambda: all("orders" in nodes[node_id].image.topics for node_id in nodes.members))


async def values_of(consumer: Consumer, count: int, *, within_s: float = 30) -> list[str]:
    found: list[str] = []
    async with asyncio.timeout(within_s):
        while len(found) < count:
            found += [message.value.decode() for message in await consumer.poll()]
    return found


def that_cannot_be_opened() -> bytearray:
    batch = batch_of("x" * 100, codec=Codec.GZIP)
    batch[HEADER_BYTES:] = bytes(len(batch) - HEADER_BYTES)
    stamp_crc(memoryview(batch))
    return batch


@pytest.mark.parametrize("good", [0, 1])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_one_batch_that_cannot_be_opened_costs_nothing_else(good: int, protocol: str) -> None:
    bad = 1 - good
    there = TopicPartition("orders", bad)

    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make(nodes, client, (1,), (1,), records_validate="header")
            for value in ("a0", "a1", "a2"):
                await client.produce("orders", good, batch_of(value))
            for batch in (batch_of("b0"), that_cannot_be_opened(), batch_of("b2")):
                await client.produce("orders", bad, batch)
        delivered: list[str] = []
        async with consumer_of(
            nodes, group="readers", group_protocol=protocol, auto_commit_interval_ms=100
        ) as consumer:
            consumer.subscribe("orders")
            errors: list[UnreadableBatch] = []
            while len(delivered) < 4 or len(errors) < 3:
                try:
                    delivered += [message.value.decode() for message in await consumer.poll()]
                except UnreadableBatch as error:
                    errors.append(error)
                    assert consumer.position(there) == 1
            assert sorted(delivered) == ["a0", "a1", "a2", "b0"]
            assert {(error.partition, error.base_offset, error.end_offset) for error in errors} == {
                (there, 1, 2)
            }
        async with consumer_of(nodes, group="readers", group_protocol=protocol) as consumer:
            committed = await consumer.committed([TopicPartition("orders", index) for index in range(2)])
            assert {partition.partition: each.offset for partition, each in committed.items()} == {
                good: 3,
                bad: 1,
            }
            consumer.subscribe("orders")
            with pytest.raises(UnreadableBatch) as stopped:
                await values_of(consumer, 1)
            assert stopped.value.end_offset is not None
            consumer.seek(there, stopped.value.end_offset)
            assert await values_of(consumer, 1) == ["b2"]

    in_a_cluster(story, QUICK)


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics that somebody has asked the cluster about, one after the other."""
    topics: list[str] = []
    look_up = Cluster.metadata

    async def noting(cluster: Cluster, names: Sequence[str] | None, **named: object) -> ClusterView:
        topics.extend(names or ())
        return await look_up(cluster, names, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Cluster, "metadata", noting)
    return topics


def test_while_nobody_leads_a_partition_nobody_is_asked_for_its_leader_all_the_time(
    looked_up: list[str],
) -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make(nodes, client, (1,), (2,))
            await client.produce("orders", 0, batch_of("before"))
            producer = Producer(
                f"node0:{KAFKA_PORT},node2:{KAFKA_PORT}", ports=HostPorts(nodes, "producer"), linger_ms=0
            )
            async with producer, consumer_of(nodes) as consumer:
                consumer.assign([ORDERS, TopicPartition("orders", 1)])
                assert await values_of(consumer, 1) == ["before"]
                nodes.members[1].kill()
                await nodes.until(lambda: partition_at(nodes, 0).leader is None)
                delivery = await producer.send("orders", b"after", partition=0)
                await asyncio.sleep(1)
                looked_up.clear()
                await asyncio.sleep(10)
                assert 2 <= len(looked_up) <= 60
                await client.produce("orders", 1, batch_of("elsewhere"))
                assert await values_of(consumer, 1) == ["elsewhere"], "the others go on"
                await nodes.members[1].start()
                await nodes.until(lambda: partition_at(nodes, 0).leader == 1)
                assert (await delivery).offset == 1
                assert await values_of(consumer, 1) == ["after"]

    in_a_cluster(story, "node.session.timeout.ms=1500")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[NodeId]:
    """Whom the consumer has sent a Fetch, one after the other."""
    nodes: list[NodeId] = []
    ask_for = Fetcher._ask

    def noting(fetcher: Fetcher, node: NodeId, *arguments: object, **named: object) -> None:
        nodes.append(node)
        ask_for(fetcher, node, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Fetcher, "_ask", noting)
    return nodes


def test_nothing_is_asked_again_at_once_that_was_refused(asked: list[NodeId]) -> None:
    """What was read ahead of a busy application is out of range by the time it is asked for."""

    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make(nodes, client, (1,))
            for number in range(2):
                await client.produce("orders", 0, batch_of(str(number)))
            async with consumer_of(nodes, max_partition_fetch_bytes=1) as consumer:
                consumer.assign([ORDERS])
                assert [m.offset for m in await consumer.poll(max_records=1)] == [0]
                for number in range(2, 5):
                    await client.produce("orders", 0, batch_of(str(number)))
                await asyncio.sleep(2)
                await Admin(client).delete_records("orders", {0: 5})
                assert [m.offset for m in await consumer.poll(max_records=1)] == [1]
                asked.clear()
                await asyncio.sleep(10)
                assert len(asked) <= 3
                await client.produce("orders", 0, batch_of("5"))
                assert (await values_of(consumer, 2))[-1] == "5", "and yet it goes on"

    in_a_cluster(story)


def in_racks(monkeypatch: pytest.MonkeyPatch) -> None:
    add = Nodes.add

    def with_rack(nodes: Nodes, node_id: int, *settings: str, **named: object) -> Member:
        placed = (f"broker.rack=rack-{node_id}", f"replica.selector.class={RACK_AWARE_SELECTOR}")
        return add(nodes, node_id, *settings, *placed, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(cluster_of_nodes.Nodes, "add", with_rack)


def test_a_consumer_with_a_rack_reads_from_the_replica_there_and_comes_back_when_it_fails(
    monkeypatch: pytest.MonkeyPatch, asked: list[NodeId]
) -> None:
    in_racks(monkeypatch)

    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make(nodes, client, (1, 2), min_insync_replicas="1")
            for number in range(5):
                await client.produce("orders", 0, batch_of(str(number)))
            async with consumer_of(nodes, client_rack="rack-2") as consumer:
                consumer.assign([ORDERS])
                assert await values_of(consumer, 5) == list("01234")
                assert asked[:2] == [1, 2]
                await consumer.poll(timeout_ms=2000)
                assert set(asked[1:]) == {2}
                nodes.members[2].kill()
                asked.clear()
                await client.produce("orders", 0, batch_of("5"))
                assert await values_of(consumer, 1) == ["5"]
                assert asked[-1] == 1
                assert len(asked) < 100, "neither of them is asked in a circle"
                await nodes.members[2].start()
                await nodes.until(lambda: set(partition_at(nodes, 0).isr) == {1, 2})
                await values_of_nothing(consumer, 40_000)
                assert asked[-1] == 2, "it goes where it is sent again when the replica is back"

    in_a_cluster(story)


def test_a_replica_that_has_fallen_behind_is_left_for_the_leader_when_metadata_are_due(
    monkeypatch: pytest.MonkeyPatch, asked: list[NodeId]
) -> None:
    """It answers, and has nothing: only whoever asks the leader again hears that there is more."""
    in_racks(monkeypatch)

    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make(nodes, client, (1, 2), min_insync_replicas="1")
            for number in range(3):
                await client.produce("orders", 0, batch_of(str(number)))
            async with consumer_of(nodes, client_rack="rack-2", metadata_max_age_ms=5_000) as consumer:
                consumer.assign([ORDERS])
                assert await values_of(consumer, 3) == list("012")
                nodes.world.network.partition("node1", "node2")
                await client.produce("orders", 0, batch_of("3"), acks=Acks.LEADER)
                await nodes.until(lambda: partition_at(nodes, 0).isr == (1,), within_s=60)
                assert await values_of(consumer, 1) == ["3"]
                assert asked[-1] == 1

    in_a_cluster(story)


async def values_of_nothing(consumer: Consumer, for_ms: int) -> None:
    for _ in range(for_ms // 500):
        assert await consumer.poll(timeout_ms=500) == []


@pytest.mark.parametrize("reset", ["earliest", "none"])
def test_a_consumer_that_is_carried_into_another_history_goes_back_or_says_so(
    reset: str, caplog: pytest.LogCaptureFixture
) -> None:
    behind, ahead = NodeId(1), NodeId(2)

    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make_orders(nodes, client, ahead, behind)
            await client.produce("orders", 0, batch_of("both"))
            nodes.members[behind].kill()
            await nodes.until(lambda: partition_at(nodes, 0).isr == (ahead,))
            for value in ("lost", "lost too"):
                await client.produce("orders", 0, batch_of(value))
            async with consumer_of(nodes, auto_offset_reset=reset) as consumer:
                consumer.assign([ORDERS])
                consumer.seek(ORDERS, 0)
                assert await values_of(consumer, 3) == ["both", "lost", "lost too"]
                nodes.members[ahead].kill()
                await nodes.until(lambda: partition_at(nodes, 0).leader is None)
                await nodes.members[behind].start()
                await nodes.until(lambda: nodes.is_serving(behind, seen_by=0))
                assert await Leadership(client).elect([ORDERS], unclean=True) == {ORDERS: None}
                for value in ("other 1", "other 2", "other 3"):
                    await client.produce("orders", 0, batch_of(value))
                if reset == "none":
                    with pytest.raises(HistoryChanged) as changed:
                        await values_of(consumer, 1)
                    assert (changed.value.position, changed.value.diverged_at) == (3, 1)
                    assert consumer.position(ORDERS) == 3
                    consumer.seek(ORDERS, changed.value.diverged_at)
                assert await values_of(consumer, 3) == ["other 1", "other 2", "other 3"]

    in_a_cluster(story)
    assert ("another history" in caplog.text) == (reset != "none")


def test_a_consumer_that_is_carried_to_and_fro_between_two_histories_reads_both() -> None:
    """The first leader comes back with a log that is long enough, and has nothing of what was written meanwhile."""
    behind, ahead = NodeId(1), NodeId(2)

    async def story(nodes: Nodes) -> None:
        async def lead_by_force(member: NodeId, instead_of: NodeId) -> None:
            nodes.members[instead_of].kill()
            await nodes.until(lambda: partition_at(nodes, 0).leader is None)
            await nodes.members[member].start()
            await nodes.until(lambda: nodes.is_serving(member, seen_by=0))
            assert await Leadership(client).elect([ORDERS], unclean=True) == {ORDERS: None}

        async with nodes.client() as client:
            await make_orders(nodes, client, ahead, behind)
            await client.produce("orders", 0, batch_of("both"))
            nodes.members[behind].kill()
            await nodes.until(lambda: partition_at(nodes, 0).isr == (ahead,))
            for value in ("one", "two"):
                await client.produce("orders", 0, batch_of(value))
            async with consumer_of(nodes) as consumer:
                consumer.assign([ORDERS])
                assert await values_of(consumer, 3) == ["both", "one", "two"]
                await lead_by_force(behind, ahead)
                await client.produce("orders", 0, batch_of("another"))
                assert await values_of(consumer, 1) == ["another"]
                await lead_by_force(ahead, behind)
                assert await values_of(consumer, 2) == ["one", "two"]
                for value in ("three", "four"):
                    await client.produce("orders", 0, batch_of(value))
                assert await values_of(consumer, 2) == ["three", "four"]
                # Where the newest epoch ends that this one knows says nothing to who has read nothing of it.
                await lead_by_force(behind, ahead)
                assert await values_of(consumer, 1) == ["another"]

    in_a_cluster(story)


def test_a_topic_that_was_made_anew_is_not_read_from_the_middle() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make(nodes, client, (1,))
            for number in range(3):
                await client.produce("orders", 0, batch_of(f"former {number}"))
            async with consumer_of(nodes) as consumer:
                consumer.assign([ORDERS])
                await values_of(consumer, 3)
                await Admin(client).delete_topics(["orders"])
                await nodes.until(
                    lambda: all("orders" not in nodes[each].image.topics for each in nodes.members)
                )
                await make(nodes, client, (1,))
                for number in range(5):
                    await client.produce("orders", 0, batch_of(f"latter {number}"))
                assert await values_of(consumer, 5) == [f"latter {number}" for number in range(5)]

    in_a_cluster(story)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_was_thrown_out_commits_nothing_though_nobody_else_is_there(protocol: str) -> None:
    """Others may have been there meanwhile, and be further: what it knows is of a generation that is over."""

    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make(nodes, client, (1, 2, 0))
            await client.produce("orders", 0, batch_of("a"))
            settings = {
                "group": "readers",
                "group_protocol": protocol,
                "enable_auto_commit": False,
                "max_poll_interval_ms": 8_000,
                "session_timeout_ms": 6_000,
                "heartbeat_interval_ms": 500,
            }
            async with consumer_of(nodes, "slow", **settings) as slow:  # type: ignore[arg-type]
                slow.subscribe("orders")
                await values_of(slow, 1)
                await asyncio.sleep(12)
                async with consumer_of(nodes, "quick", **settings) as quick:  # type: ignore[arg-type]
                    quick.subscribe("orders")
                    await values_of(quick, 1)
                    await client.produce("orders", 0, batch_of("b"))
                    await values_of(quick, 1)
                    await quick.commit()
                with pytest.raises(CommitFailed):
                    await slow.commit()
                async with Producer(
                    f"node0:{KAFKA_PORT}", ports=HostPorts(nodes, "copier"), transactional_id="copier"
                ) as producer:
                    await producer.begin_transaction()
                    with pytest.raises((CommitFailed, TransactionFailed, RopewalkError)):
                        await producer.send_offsets_to_transaction(slow.positions(), slow.group_identity())
                    await producer.abort_transaction()
                assert (await slow.committed([ORDERS]))[ORDERS].offset == 2
                await client.produce("orders", 0, batch_of("c"))
                assert await values_of(slow, 1) == ["c"], "it joins again, and reads on from there"
                await slow.commit()

    in_a_cluster(story, QUICK, "group.min.session.timeout.ms=100", "group.consumer.session.timeout.ms=6000")


def test_a_commit_asked_for_before_a_rebalance_is_not_sent_in_the_next_generation() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make(nodes, client, (1,), (1,))
            for index in range(2):
                await client.produce("orders", index, batch_of("a"))
            settings = {"group": "readers", "enable_auto_commit": False, "assignor": "range"}
            async with consumer_of(nodes, "one", **settings) as one:  # type: ignore[arg-type]
                one.subscribe("orders")
                await values_of(one, 2)
                before = one.group_identity()
                asked = one._commit_of(None)
                async with consumer_of(nodes, "other", **settings) as other:  # type: ignore[arg-type]
                    other.subscribe("orders")
                    while len(one.assignment) != 1 or len(other.assignment) != 1:
                        await one.poll(timeout_ms=50)
                        await other.poll(timeout_ms=50)
                    assert one.group_identity().generation > before.generation
                    with pytest.raises(CommitFailed):
                        await one._commits.send(asked, deadline_ms=one._session.deadline_ms())
                    assert await one.committed(asked.offsets) == {}

    in_a_cluster(story, QUICK)


def test_who_reads_what_is_committed_by_hand_is_not_shown_what_was_aborted() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make(nodes, client, (1,))
            async with Producer(
                f"node0:{KAFKA_PORT}", ports=HostPorts(nodes, "writer"), transactional_id="writer"
            ) as producer:
                for value, is_kept in ((b"lost", False), (b"kept", True)):
                    await producer.begin_transaction()
                    await (await producer.send("orders", value))
                    await (producer.commit_transaction() if is_kept else producer.abort_transaction())
            seen: dict[Isolation, list[bytes | None]] = {}
            for isolation in Isolation:
                reader = PartitionReader(client, {ORDERS: 0}, isolation=isolation)
                while reader.positions[ORDERS] < 4:
                    for consumed in await reader.poll(wait_ms=100):
                        seen.setdefault(isolation, []).extend(record.value for record in consumed.records)
            assert seen == {
                Isolation.READ_UNCOMMITTED: [b"lost", b"kept"],
                Isolation.READ_COMMITTED: [b"kept"],
            }

    in_a_cluster(story)
