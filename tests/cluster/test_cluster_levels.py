"""Nodes of several versions in one cluster: who is let in, at which level, and what becomes of a node that cannot read on."""

import asyncio
from collections.abc import Sequence

import pytest

from ropewalk.base.errors import UnreadableMetadata, VersionRefused
from ropewalk.base.ids import NodeId, TopicId
from ropewalk.base.levels import OURS, Software
from ropewalk.broker.cluster import metadata_feed
from ropewalk.client.administration.balancing import Balancing
from ropewalk.client.administration.levels import Levels
from ropewalk.client.administration.membership import ClusterViewer
from ropewalk.client.errors import RemoteError
from ropewalk.metadata.etcd import keys
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import LevelChanged, MetadataRecord, TopicCreated, encode_records
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_leaders import create

SESSION = "node.session.timeout.ms=1500"
NEXT = Software("0.90.0", OURS.level_max, OURS.level_max + 1)
"""A release after this one, whose level is not in force yet."""
PRESENT = Software("0.89.0", OURS.level_min, OURS.level_max)
LATER = Software("0.91.0", OURS.level_max + 1, OURS.level_max + 2)


def encode_as_of_tomorrow(records: Sequence[MetadataRecord]) -> bytes:
    data = encode_records(records)
    return data.replace(b"topic_created", b"paint_ordered") if _makes_topics(records) else data


def _makes_topics(records: Sequence[MetadataRecord]) -> bool:
    return any(isinstance(record, TopicCreated) for record in records)


@pytest.mark.parametrize("with_etcd", [False, True])
def test_nodes_say_what_they_are_and_the_level_is_a_record(with_etcd: bool) -> None:
    async def story(nodes: Nodes) -> None:
        for member in range(3):
            image = nodes[member].image
            assert image.level == OURS.level_max
            assert [broker.software for broker in image.brokers.values()] == [OURS] * 3
            assert LevelChanged(OURS.level_max) in list(image.facts())

    in_a_cluster(story, with_etcd=with_etcd)


@pytest.mark.parametrize("with_etcd", [False, True])
def test_a_node_that_does_not_know_the_level_is_refused_in_a_line(with_etcd: bool) -> None:
    """With etcd it reads the level for itself; else it hears it from the controller."""

    async def story(nodes: Nodes) -> None:
        await nodes.members[2].stop()
        nodes.members[2].software = LATER
        with pytest.raises(UnreadableMetadata, match="start an older version") as refused:
            await nodes.members[2].start()
        assert "\n" not in str(refused.value)
        nodes.members[2].machine.kill()
        nodes.members[2].software = OURS
        await nodes.members[2].start()
        await nodes.until(lambda: nodes.is_serving(2, seen_by=0))

    in_a_cluster(story, SESSION, with_etcd=with_etcd)


@pytest.mark.parametrize("with_etcd", [False, True])
def test_a_node_more_than_one_release_away_is_refused_in_a_line(with_etcd: bool) -> None:
    async def story(nodes: Nodes) -> None:
        await nodes.members[2].stop()
        nodes.members[2].software = Software("0.77.0", OURS.level_min, OURS.level_max)
        with pytest.raises(VersionRefused, match="nodes may be one release apart"):
            await nodes.members[2].start()

    in_a_cluster(story, SESSION, with_etcd=with_etcd)


def test_a_node_leaves_service_when_the_level_goes_past_what_it_knows() -> None:
    """Nobody raises it while such a node is registered: this one is a mistake, and what matters is that nobody acts upon half of it."""

    async def story(nodes: Nodes) -> None:
        await create(nodes, "before")

        def decide(image: Image) -> list[MetadataRecord]:
            return [LevelChanged(image.level + 1)]

        deciding = nodes.controller()
        assert deciding is not None
        await _restart_as(nodes, {deciding: NEXT}, others=PRESENT)
        await nodes[deciding]._parts.cluster.commit(decide, None)
        for member in range(3):
            if member != deciding:
                took_s = await nodes.until(lambda member=member: nodes[member].left_service is not None)  # type: ignore[misc]
                assert took_s < 5
                assert "start a newer version" in (nodes[member].left_service or "")

    in_a_cluster(story, SESSION)


async def _restart_as(nodes: Nodes, software: dict[int, Software], *, others: Software) -> None:
    for member in nodes.members.values():
        await member.stop()
    for node_id, member in nodes.members.items():
        member.software = software.get(node_id, others)
        await member.start()
        await nodes.until(lambda node_id=node_id: nodes.is_serving(node_id, seen_by=node_id))  # type: ignore[misc]


@pytest.mark.parametrize("with_etcd", [False, True])
def test_a_record_that_cannot_be_read_takes_a_node_out_of_service_and_it_says_so(
    with_etcd: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(nodes: Nodes) -> None:
        deciding = nodes.controller()
        others = [member for member in range(3) if member != deciding]
        monkeypatch.setattr(keys if with_etcd else metadata_feed, "encode_records", encode_as_of_tomorrow)
        await nodes[deciding or 0]._parts.cluster.commit(
            lambda _image: [TopicCreated(TopicId(bytes(16)), "unheard of")], None
        )
        for member in others:
            took_s = await nodes.until(lambda member=member: nodes[member].left_service is not None)  # type: ignore[misc]
            assert took_s < 5
            ready = await nodes[member]._parts.instruments.health.ready()
            problems = [check.problem or "" for check in ready if not check.is_tolerable]
            assert any("a record of the kind paint_ordered is unknown" in problem for problem in problems)
            assert not any(nodes[member].partitions.all_led())
            assert not nodes[member].failed.done()

    in_a_cluster(story, SESSION, with_etcd=with_etcd)


OLD = Software("0.1.0", 1, 1)


async def _roll(nodes: Nodes, software: Software) -> None:
    """One node after the other, each in order."""
    for node_id, member in nodes.members.items():
        await member.stop()
        member.software = software
        await member.start()
        await nodes.until(
            lambda node_id=node_id: all(  # type: ignore[misc]
                nodes.is_serving(node_id, seen_by=other) for other in nodes.members
            )
        )


@pytest.mark.parametrize("with_etcd", [False, True])
def test_a_level_rises_by_itself_when_the_last_node_knows_it(with_etcd: bool) -> None:
    async def story(nodes: Nodes) -> None:
        assert nodes[0].image.level == 1
        for member in (0, 1):
            await nodes.members[member].stop()
            nodes.members[member].software = OURS
            await nodes.members[member].start()
        await asyncio.sleep(10)
        assert nodes[0].image.level == 1, "one node does not know the next"
        await nodes.members[2].stop()
        nodes.members[2].software = OURS
        await nodes.members[2].start()
        await nodes.until(lambda: all(nodes[member].image.level == 2 for member in range(3)))
        await nodes.members[2].stop()
        nodes.members[2].software = OLD
        with pytest.raises((UnreadableMetadata, VersionRefused), match="start a newer version"):
            await nodes.members[2].start()

    in_a_cluster(story, SESSION, with_etcd=with_etcd, software=OLD)


def test_by_hand_it_rises_when_asked_and_nodes_can_go_back_until_then() -> None:
    async def story(nodes: Nodes) -> None:
        client = nodes.client()
        await _roll(nodes, OURS)
        await asyncio.sleep(10)
        assert nodes[0].image.level == 1
        await nodes.members[2].stop()
        nodes.members[2].software = OLD
        await nodes.members[2].start()
        await nodes.until(lambda: nodes.is_serving(2, seen_by=0))
        with pytest.raises(RemoteError, match=r"node 2 is of version 0\.1\.0"):
            await Levels(client).finalize(2)
        await Levels(client).finalize()
        assert nodes[0].image.level == 1, "that is the newest that all know"
        with pytest.raises(RemoteError, match="maintenance came with level 2"):
            await Balancing(client).set_maintenance(NodeId(1), is_on=True)
        await _roll(nodes, OURS)
        await Levels(client).finalize()
        assert nodes[0].image.level == 2
        with pytest.raises(RemoteError, match="never goes down"):
            await Levels(client).finalize(1)
        await Balancing(client).set_maintenance(NodeId(1), is_on=True)
        await nodes.until(lambda: nodes[2].image.brokers[NodeId(1)].in_maintenance)
        found = await ClusterViewer(client).describe()
        assert (found.level, found.finalize) == (2, "manual")
        assert {node.version for node in found.nodes} == {OURS.version}
        assert [node.in_maintenance for node in found.nodes] == [False, True, False]
        client.close()

    in_a_cluster(story, SESSION, "features.finalize=manual", software=OLD)
