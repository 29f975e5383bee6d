"""Which requests a front end passes on, and to whom: the leader of each partition, the coordinator of each group or transaction.

Every API that a front end advertises is in one of three tables: `ROUTES` here, `ANSWERED_HERE` with the reason, or those that any node
forwards to the controller (`kafka/refusals.py`). What is in none would be answered by a node that holds nothing and coordinates nobody.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, structs

from ropewalk.base.ids import NodeId, TopicId
from ropewalk.broker.cluster.whereabouts import leader, shard_leader
from ropewalk.metadata.image import Image, Topic
from ropewalk.metadata.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ropewalk.wire.api import AnyApi
from ropewalk.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_replica_log_dirs,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    delete_records,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)
from ropewalk.wire.types import UUID_ZERO, Message

Parts = Mapping[NodeId | None, Message]
"""Of a request, by the node that each is for; None stands for nobody."""

Split = Callable[[Any, Image], Parts]
"""Takes the API's own request class."""

Merge = Callable[[Sequence[Any]], Message]
"""One answer of several. Takes the API's own response class."""


class Route(Struct, frozen=True):
    api: AnyApi
    split: Split
    merge: Merge
    is_repeatable: bool = False
    """Whether the client may be told to ask again where a node was lost under the request: nothing is done by asking."""
    wait_ms: Callable[[Any], int] = lambda _: 0
    """How long the request itself says that its answer may take."""


def _coordinator(image: Image, key: str, topic_name: str = OFFSETS_TOPIC) -> NodeId | None:
    return shard_leader(image, topic_name, key)


def _by_partition(field: str = "partitions") -> Split:
    def split(request: Any, image: Image) -> Parts:
        found: dict[NodeId | None, list[Any]] = {}
        for asked in request.topics:
            topic = _topic(asked, image)
            for node_id, partitions in _grouped(getattr(asked, field), topic).items():
                found.setdefault(node_id, []).append(structs.replace(asked, **{field: tuple(partitions)}))
        return {node_id: structs.replace(request, topics=tuple(topics)) for node_id, topics in found.items()}

    return split


def _topic(asked: Any, image: Image) -> Topic | None:
    topic_id = getattr(asked, "topic_id", UUID_ZERO)
    if topic_id != UUID_ZERO:
        return image.topics_by_id.get(TopicId(bytes(topic_id)))
    return image.topics.get(asked.name)


def _grouped(partitions: Iterable[Any], topic: Topic | None) -> dict[NodeId | None, list[Any]]:
    grouped: dict[NodeId | None, list[Any]] = {}
    for partition in partitions:
        index = partition if isinstance(partition, int) else partition.index
        grouped.setdefault(leader(topic, index), []).append(partition)
    return grouped


def merge_topics(answers: Sequence[Any]) -> Any:
    """Each topic once, with the partitions that every answer has of it."""
    if len(answers) == 1:
        return answers[0]
    topics: dict[tuple[str, bytes], Any] = {}
    for answer in answers:
        for topic in answer.topics:
            key = (topic.name, bytes(getattr(topic, "topic_id", b"")))
            known = topics.get(key)
            topics[key] = (
                topic
                if known is None
                else structs.replace(known, partitions=(*known.partitions, *topic.partitions))
            )
    return structs.replace(answers[0], topics=tuple(topics.values()))


def _split_fetch(request: fetch.FetchRequest, image: Image) -> Parts:
    """Sessions are between a client and a leader; whoever passes on fetches has all partitions named every time."""
    whole = structs.replace(
        request, session_id=0, session_epoch=-1, forgotten_topics=(), rack_id=""
    )  # no rack: nobody but the leader can be reached
    return _by_partition()(whole, image)


def _to_coordinator(request: Any, image: Image) -> Parts:
    return {_coordinator(image, request.group_id): request}


def _to_transaction_coordinator(request: Any, image: Image) -> Parts:
    return {_coordinator(image, request.transactional_id, TRANSACTIONS_TOPIC): request}


def _split_init_producer_id(request: init_producer_id.InitProducerIdRequest, image: Image) -> Parts:
    """Without a transactional id anybody can answer, this node too."""
    return {} if request.transactional_id is None else _to_transaction_coordinator(request, image)


def _split_add_partitions(request: add_partitions_to_txn.AddPartitionsToTxnRequest, image: Image) -> Parts:
    """Of clients; what only nodes may ask is refused here."""
    if request.transactions:
        return {}
    return {_coordinator(image, request.v3_and_below_transactional_id, TRANSACTIONS_TOPIC): request}


def _split_describe_transactions(
    request: describe_transactions.DescribeTransactionsRequest, image: Image
) -> Parts:
    found: dict[NodeId | None, list[str]] = {}
    for transactional_id in request.transactional_ids:
        found.setdefault(_coordinator(image, transactional_id, TRANSACTIONS_TOPIC), []).append(
            transactional_id
        )
    return {
        node_id: structs.replace(request, transactional_ids=tuple(each)) for node_id, each in found.items()
    }


def _split_markers(request: write_txn_markers.WriteTxnMarkersRequest, image: Image) -> Parts:
    found: dict[NodeId | None, list[write_txn_markers.WritableTxnMarker]] = {}
    for marker in request.markers:
        for node_id, part in _by_partition("partition_indexes")(marker, image).items():
            assert isinstance(part, write_txn_markers.WritableTxnMarker)
            found.setdefault(node_id, []).append(part)
    return {node_id: structs.replace(request, markers=tuple(each)) for node_id, each in found.items()}


def _split_offset_fetch(request: offset_fetch.OffsetFetchRequest, image: Image) -> Parts:
    if not request.groups:
        return _to_coordinator(request, image)
    found: dict[NodeId | None, list[offset_fetch.OffsetFetchRequestGroup]] = {}
    for group in request.groups:
        found.setdefault(_coordinator(image, group.group_id), []).append(group)
    return {node_id: structs.replace(request, groups=tuple(groups)) for node_id, groups in found.items()}


def _by_group(field: str) -> Split:
    def split(request: Any, image: Image) -> Parts:
        found: dict[NodeId | None, list[str]] = {}
        for group_id in getattr(request, field):
            found.setdefault(_coordinator(image, group_id), []).append(group_id)
        return {
            node_id: structs.replace(request, **{field: tuple(groups)}) for node_id, groups in found.items()
        }

    return split


def _to_all_coordinators(topic_name: str) -> Split:
    def split(request: Any, image: Image) -> Parts:
        topic = image.topics.get(topic_name)
        leaders = {partition.leader for partition in topic.partitions} if topic is not None else set()
        return dict.fromkeys(sorted(leaders, key=lambda node_id: -1 if node_id is None else node_id), request)

    return split


def _merge_list(field: str) -> Merge:
    def merge(answers: Sequence[Any]) -> Message:
        together = [each for answer in answers for each in getattr(answer, field)]
        failed = next((answer for answer in answers if getattr(answer, "error_code", 0)), answers[0])
        merged: Message = structs.replace(failed, **{field: tuple(together)})
        return merged

    return merge


def _merge_one(answers: Sequence[Any]) -> Message:
    (answer,) = answers
    assert isinstance(answer, Message)
    return answer


ROUTES: Final[tuple[Route, ...]] = (
    Route(produce.API, _by_partition(), merge_topics, wait_ms=lambda request: request.timeout_ms),
    Route(
        fetch.API, _split_fetch, merge_topics, is_repeatable=True, wait_ms=lambda request: request.max_wait_ms
    ),
    Route(list_offsets.API, _by_partition(), merge_topics, is_repeatable=True),
    Route(offset_for_leader_epoch.API, _by_partition(), merge_topics, is_repeatable=True),
    Route(delete_records.API, _by_partition(), merge_topics, wait_ms=lambda request: request.timeout_ms),
    Route(describe_producers.API, _by_partition("partition_indexes"), merge_topics, is_repeatable=True),
    Route(offset_commit.API, _to_coordinator, _merge_one),
    Route(offset_fetch.API, _split_offset_fetch, _merge_list("groups"), is_repeatable=True),
    Route(join_group.API, _to_coordinator, _merge_one, wait_ms=lambda request: request.rebalance_timeout_ms),
    Route(sync_group.API, _to_coordinator, _merge_one, wait_ms=lambda _: 300_000),
    Route(heartbeat.API, _to_coordinator, _merge_one, is_repeatable=True),
    Route(leave_group.API, _to_coordinator, _merge_one),
    Route(offset_delete.API, _to_coordinator, _merge_one),
    Route(describe_groups.API, _by_group("groups"), _merge_list("groups"), is_repeatable=True),
    Route(consumer_group_heartbeat.API, _to_coordinator, _merge_one),
    Route(consumer_group_describe.API, _by_group("group_ids"), _merge_list("groups"), is_repeatable=True),
    Route(delete_groups.API, _by_group("groups_names"), _merge_list("results")),
    Route(list_groups.API, _to_all_coordinators(OFFSETS_TOPIC), _merge_list("groups"), is_repeatable=True),
    Route(init_producer_id.API, _split_init_producer_id, _merge_one),
    Route(add_partitions_to_txn.API, _split_add_partitions, _merge_one),
    Route(add_offsets_to_txn.API, _to_transaction_coordinator, _merge_one),
    Route(txn_offset_commit.API, _to_coordinator, _merge_one),
    Route(end_txn.API, _to_transaction_coordinator, _merge_one),
    Route(write_txn_markers.API, _split_markers, _merge_list("markers")),
    Route(
        describe_transactions.API,
        _split_describe_transactions,
        _merge_list("transaction_states"),
        is_repeatable=True,
    ),
    Route(
        list_transactions.API,
        _to_all_coordinators(TRANSACTIONS_TOPIC),
        _merge_list("transaction_states"),
        is_repeatable=True,
    ),
)

ROUTED: Final = frozenset(route.api.key for route in ROUTES)
"""API keys that brokers take from front ends."""

_FROM_THE_IMAGE: Final = "every node knows it from the metadata"
_IN_ITS_OWN_NAME: Final = "the front end names itself for every node that a client would connect to"
ANSWERED_HERE: Final[Mapping[int, str]] = {
    api_versions.API.key: "it is about the connection",
    sasl_handshake.API.key: "it is about the connection",
    sasl_authenticate.API.key: "it is about the connection",
    metadata.API.key: _IN_ITS_OWN_NAME,
    describe_cluster.API.key: _IN_ITS_OWN_NAME,
    describe_topic_partitions.API.key: _IN_ITS_OWN_NAME,
    find_coordinator.API.key: _IN_ITS_OWN_NAME,
    list_partition_reassignments.API.key: _FROM_THE_IMAGE,
    describe_client_quotas.API.key: _FROM_THE_IMAGE,
    describe_configs.API.key: "topics are in the metadata, and the node that a client sees is this one",
    describe_log_dirs.API.key: "it is about the disk of the node that a client sees, which is this one",
    alter_replica_log_dirs.API.key: "it is about the directories of the node that a client sees, which is this one",
    list_config_resources.API.key: _FROM_THE_IMAGE,
    describe_acls.API.key: _FROM_THE_IMAGE,
    describe_user_scram_credentials.API.key: _FROM_THE_IMAGE,
}
"""By API key, why a front end is as good as any node to answer it."""
