"""Clusters, brokers and producer ids: first starts, restarts, and what must never be given twice."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import (
    CorruptMetadata,
    DirectoryPutBack,
    DuplicateBroker,
    InvalidRequest,
    OtherCluster,
    RopewalkError,
)
from ropewalk.base.ids import LeaderEpoch, NodeId, ProducerId, TopicId
from ropewalk.controller.brokers import Registration, decide_create_cluster, decide_register_broker
from ropewalk.controller.producer_ids import allocated_block, decide_allocate_producer_ids
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import (
    BrokerState,
    ClusterCreated,
    MetadataRecord,
    PartitionChanged,
    ProducerIdsAllocated,
)
from tests.controller.imagined import ENDPOINTS, NOW_MS, ImaginedCluster, directory, losses, nodes

ORDERS = TopicId(b"orders".ljust(16, b".")), 0


def test_a_cluster_is_created_once() -> None:
    image = Image()
    (created,) = decide_create_cluster(image, Random(1))
    image.apply(created)
    assert image.cluster_id is not None
    assert len(image.cluster_id) == 22
    assert decide_create_cluster(image, Random(2)) == []


def test_a_cluster_takes_the_id_its_data_directory_carries() -> None:
    image = Image()
    assert decide_create_cluster(image, Random(1), "known") == [ClusterCreated("known")]
    image.apply(ClusterCreated("known"))
    with pytest.raises(InvalidRequest, match="belongs to cluster other, the metadata to known"):
        decide_create_cluster(image, Random(1), "other")


def test_partitions_without_metadata_are_no_new_cluster() -> None:
    with pytest.raises(CorruptMetadata, match="holds 3 partitions, but its metadata is empty"):
        decide_create_cluster(Image(), Random(1), "known", partitions_held_count=3)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), max_size=10))
def test_every_start_of_a_broker_has_a_larger_epoch(starts: list[tuple[int, int]]) -> None:
    cluster = ImaginedCluster()
    for number, generation in starts:
        before = cluster.image.brokers.get(NodeId(number))
        cluster.register(number, generation=generation)
        after = cluster.image.brokers[NodeId(number)]
        assert before is None or after.epoch > before.epoch
        assert after.epoch == cluster.image.end_offset - 1
        assert after.directory == directory(number, generation)


def registration(
    number: int = 4,
    *,
    generation: int = 0,
    skew_ms: int = 0,
    cluster_id: str | None = None,
    directory_of: int | None = None,
    life: int = 0,
    process: bytes = b"",
) -> Registration:
    return Registration(
        node_id=NodeId(number),
        directory=directory(number if directory_of is None else directory_of, generation),
        endpoints=ENDPOINTS,
        rack="r",
        cluster_id=cluster_id,
        clock_ms=NOW_MS + skew_ms,
        life=life,
        process=process,
    )


@pytest.mark.parametrize(
    ("asked", "is_live", "expected", "match"),
    [
        pytest.param(registration(-1, directory_of=9), False, InvalidRequest, "node id is -1", id="negative"),
        pytest.param(
            registration(directory_of=0),
            False,
            InvalidRequest,
            "is that of broker 0",
            id="a copied directory",
        ),
        pytest.param(
            registration(cluster_id="other"),
            False,
            OtherCluster,
            "cluster other, this is cluster c",
            id="cluster",
        ),
        pytest.param(
            registration(skew_ms=3_600_000), False, InvalidRequest, "3600 s ahead, at most 300 s", id="ahead"
        ),
        pytest.param(registration(skew_ms=-3_600_000), False, InvalidRequest, "3600 s behind", id="behind"),
        pytest.param(
            registration(0, generation=1),
            True,
            DuplicateBroker,
            "id 0 and another data directory",
            id="twice",
        ),
    ],
)
def test_registrations_that_are_refused(
    asked: Registration, is_live: bool, expected: type[RopewalkError], match: str
) -> None:
    cluster = ImaginedCluster(1)
    with pytest.raises(expected, match=match):
        decide_register_broker(
            cluster.image, asked, settings=cluster.settings, now_ms=NOW_MS, is_live=is_live
        )


@pytest.mark.parametrize(
    ("asked", "is_refused"),
    [
        pytest.param(registration(life=4, process=b"next"), False, id="the next process"),
        pytest.param(registration(life=9, process=b"later"), False, id="after starts that came to nothing"),
        pytest.param(registration(life=3, process=b"this"), False, id="the same process asks again"),
        pytest.param(registration(life=3, process=b"next"), True, id="a copy from before its last start"),
        pytest.param(registration(life=1, process=b"next"), True, id="an old copy"),
        pytest.param(registration(life=2, process=b"ghost"), True, id="a former process is heard late"),
        pytest.param(registration(life=1, process=b"next", generation=1), False, id="another directory"),
        pytest.param(registration(), False, id="a version that does not count"),
    ],
)
def test_a_directory_that_does_not_know_who_used_it_last_is_refused(
    asked: Registration, is_refused: bool
) -> None:
    cluster = ImaginedCluster(1)

    def decide(registration: Registration) -> list[MetadataRecord]:
        return decide_register_broker(cluster.image, registration, settings=cluster.settings, now_ms=NOW_MS)

    cluster.apply(decide(registration(life=3, process=b"this")))
    if is_refused:
        with pytest.raises(DirectoryPutBack, match="the one that registered last was number 3"):
            decide(asked)
    else:
        cluster.apply(decide(asked))
        assert cluster.image.brokers[NodeId(4)].life == asked.life


@pytest.mark.parametrize(
    ("asked", "is_live"),
    [
        pytest.param(registration(0), True, id="started again before it was missed"),
        pytest.param(registration(0, generation=1), False, id="another directory after it was missed"),
        pytest.param(
            registration(cluster_id="c", skew_ms=299_000), False, id="a member with a clock of its own"
        ),
    ],
)
def test_registrations_that_are_accepted(asked: Registration, is_live: bool) -> None:
    cluster = ImaginedCluster(1)
    cluster.apply(
        decide_register_broker(
            cluster.image, asked, settings=cluster.settings, now_ms=NOW_MS, is_live=is_live
        )
    )
    broker = cluster.image.brokers[asked.node_id]
    assert (broker.rack, broker.endpoints, broker.state) == ("r", ENDPOINTS, BrokerState.FENCED)


def test_a_lone_node_is_in_service_at_once_and_leads_what_it_led() -> None:
    cluster = ImaginedCluster()
    cluster.register(0, is_lone=True)
    cluster.topic("orders", (0,))
    assert len(cluster.register(0, is_lone=True, is_clean=False)) == 1
    assert cluster.image.brokers[NodeId(0)].is_active
    assert cluster.seats("orders") == (0, (0,), ())
    assert cluster.partition("orders").leader_epoch == 0


def test_a_lone_node_with_another_directory_leads_an_empty_partition_and_says_so() -> None:
    cluster = ImaginedCluster()
    cluster.register(0, is_lone=True)
    cluster.topic("orders", (0,))
    (loss,) = losses(cluster.register(0, generation=1, is_lone=True))
    assert (loss.leader, loss.leader_epoch) == (0, 1)
    assert cluster.seats("orders") == (0, (0,), ())


@pytest.mark.parametrize(
    ("restart", "settings", "keeps"),
    [
        pytest.param({}, {}, True, id="in order"),
        pytest.param({"is_clean": False}, {}, True, id="out of order, on disk"),
        pytest.param({"is_clean": False}, {"flush": "os"}, False, id="out of order, in the page cache"),
        pytest.param(
            {"is_clean": False, "unsynced": [ORDERS]}, {"flush": "group"}, False, id="was os, is group"
        ),
        pytest.param({"is_clean": False, "unsynced": []}, {"flush": "os"}, True, id="was group, is os"),
        pytest.param({"unsynced": [ORDERS]}, {"flush": "os"}, True, id="marked, and stopped in order"),
        pytest.param({}, {"flush": "os"}, True, id="in order, from the page cache"),
        pytest.param({}, {"storage": "memory"}, False, id="in memory"),
        pytest.param({"generation": 1}, {}, False, id="another directory"),
        pytest.param({"damaged": [ORDERS]}, {}, False, id="damaged"),
        pytest.param(
            {"damaged": [(TopicId(b"orders".ljust(16, b".")), 1)]}, {}, True, id="another is damaged"
        ),
    ],
)
def test_what_a_broker_holds_after_a_restart(
    restart: dict[str, Any], settings: dict[str, str], keeps: bool
) -> None:
    """The last of its ISR, which would lead again if it were trusted."""
    cluster = ImaginedCluster(3)
    cluster.topic("orders", (0, 1, 2), **settings)
    for number in (1, 2, 0):
        cluster.fence(number)
    before = cluster.partition("orders").eligible
    assert 0 in before
    cluster.register(0, **restart)
    assert (NodeId(0) in cluster.partition("orders").eligible) == keeps
    cluster.check()


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20))
def test_blocks_of_producer_ids_never_overlap_and_leave_no_gap(askers: list[int]) -> None:
    image, end = Image(), 0
    for asker in askers:
        (record,) = decide_allocate_producer_ids(image, NodeId(asker))
        image.apply(record)
        assert isinstance(record, ProducerIdsAllocated)
        block = allocated_block(record)
        assert (block.start, block.end) == (end, end + 1000)
        end = block.end


def test_producer_ids_can_run_out() -> None:
    image = Image()
    image.apply(ProducerIdsAllocated(NodeId(0), ProducerId(2**63 - 1000)))
    with pytest.raises(InvalidRequest, match="every producer id"):
        decide_allocate_producer_ids(image, NodeId(0))


def test_a_single_replica_that_forgot_gives_way_to_a_newcomer_in_sync() -> None:
    """While a topic with one replica is moved, the newcomer may be the only one left who has everything."""
    cluster = ImaginedCluster(3)
    topic_id = cluster.topic("moving", (0,), flush="os")
    both = nodes(1, 0)
    cluster.apply([PartitionChanged(topic_id, 0, both, both, NodeId(0), LeaderEpoch(0), 1, adding=nodes(1))])
    cluster.register(0, is_clean=False)
    assert cluster.seats("moving") == (1, (1,), ())
