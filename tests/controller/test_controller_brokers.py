"""Clusters, brokers and producer ids: first starts, restarts, and what must never be given twice."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import CorruptMetadata, InvalidRequest
from ropewalk.base.ids import NodeId, ProducerId
from ropewalk.controller.brokers import decide_create_cluster, decide_register_broker
from ropewalk.controller.producer_ids import allocated_block, decide_allocate_producer_ids
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import BrokerRegistered, ClusterCreated, Endpoint, ProducerIdsAllocated

ENDPOINTS = (Endpoint("PLAINTEXT", "localhost", 9092),)


def register(image: Image, node_id: int, directory: bytes) -> None:
    for record in decide_register_broker(image, NodeId(node_id), directory=directory, endpoints=ENDPOINTS):
        image.apply(record)


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
    image = Image()
    image.apply(ClusterCreated("c"))
    for node_id, generation in starts:
        before = image.brokers.get(NodeId(node_id))
        register(image, node_id, bytes([node_id, generation] * 8))
        after = image.brokers[NodeId(node_id)]
        assert before is None or after.epoch > before.epoch
        assert after.directory == bytes([node_id, generation] * 8)


def test_a_copied_data_directory_is_found_out() -> None:
    image = Image()
    register(image, 0, b"d" * 16)
    with pytest.raises(InvalidRequest, match="is that of broker 0"):
        register(image, 1, b"d" * 16)


def test_a_negative_node_id_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="node id is -1"):
        register(Image(), -1, b"d" * 16)


def test_registration_carries_endpoints_and_rack() -> None:
    (record,) = decide_register_broker(Image(), NodeId(4), directory=b"d" * 16, endpoints=ENDPOINTS, rack="r")
    assert record == BrokerRegistered(NodeId(4), 0, b"d" * 16, ENDPOINTS, "r")


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
