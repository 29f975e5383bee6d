"""A broker of a few hundred lines, for tests of clients: it keeps records in lists and misbehaves when told.

`FakeCluster` holds the truth that its brokers share; a `FakeBroker` answers on one address. Its answers come
from `wire/`, so a client sees real bytes. What it does not know of is not offered.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, cast

from ropewalk.base.errors import ProtocolError
from ropewalk.base.ports import Listener, Network, TlsContexts
from ropewalk.client.connections.address import Address
from ropewalk.records.batch import decode_header, stamp
from ropewalk.records.record import decode_records
from ropewalk.wire.api import Api
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.frames import FrameReader, frame
from ropewalk.wire.headers import decode_request_header, encode_response_header
from ropewalk.wire.messages import (
    api_versions,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    fetch,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    produce,
    sasl_authenticate,
    sasl_handshake,
)
from ropewalk.wire.types import Message
from tests.client import fake_groups
from tests.client.fake_groups import FakeGroup
from tests.client.fake_login import FakeLogin, FakeSession

APIS: Final[tuple[Api[Any, Any], ...]] = (
    produce.API,
    fetch.API,
    list_offsets.API,
    metadata.API,
    api_versions.API,
    create_topics.API,
    delete_topics.API,
    delete_records.API,
    init_producer_id.API,
    describe_configs.API,
    create_partitions.API,
    incremental_alter_configs.API,
    describe_cluster.API,
    find_coordinator.API,
    list_groups.API,
    describe_groups.API,
    offset_fetch.API,
    offset_commit.API,
    offset_delete.API,
    delete_groups.API,
    sasl_handshake.API,
    sasl_authenticate.API,
)
_OF_LOGIN: Final = (sasl_handshake.API, sasl_authenticate.API)
TOPIC: Final = 2
"""A topic, as a resource of DescribeConfigs."""
MAX_MESSAGE_BYTES: Final = "1048588"


@dataclass
class FakePartition:
    leader: int
    leader_epoch: int = 0
    batches: list[bytes] = field(default_factory=list)
    log_start_offset: int = 0
    sequences: dict[int, tuple[int, int]] = field(default_factory=dict)
    """For each producer id the last sequence and the offset it was given."""

    @property
    def end_offset(self) -> int:
        return int(decode_header(self.batches[-1]).end_offset) if self.batches else 0

    def append(self, records: bytes) -> int:
        batch = bytearray(records)
        header = decode_header(batch)
        if header.producer_id >= 0:
            known = self.sequences.get(header.producer_id)
            if known is not None and known[0] == header.base_sequence:
                return known[1]
            self.sequences[header.producer_id] = (header.base_sequence, self.end_offset)
        base_offset = self.end_offset
        stamp(memoryview(batch), base_offset=base_offset, leader_epoch=self.leader_epoch)  # type: ignore[arg-type]
        self.batches.append(bytes(batch))
        return base_offset

    def values(self) -> list[bytes | None]:
        return [record.value for batch in self.batches for record in decode_records(batch)]


@dataclass
class FakeTopic:
    topic_id: bytes
    partitions: list[FakePartition]
    configs: dict[str, str] = field(default_factory=dict)


@dataclass
class Fault:
    """What happens to the next requests of one API instead of, or after, their proper handling."""

    count: int
    code: ErrorCode | None = None
    hang_up: bool = False
    is_silent: bool = False
    is_garbled: bool = False
    is_misnumbered: bool = False
    """Answered as it should be, under another request's correlation id."""
    handled_first: bool = False


class FakeCluster:
    def __init__(self) -> None:
        self.topics: dict[str, FakeTopic] = {}
        self.groups: dict[str, FakeGroup] = {}
        self.addresses: dict[int, Address] = {}
        self.auto_create = True
        self.uses_topic_ids = True
        self._topic_count = 0
        self._producer_count = 0

    def add_topic(self, name: str, *leaders: int, configs: dict[str, str] | None = None) -> FakeTopic:
        self._topic_count += 1
        topic_id = self._topic_count.to_bytes(16, "big") if self.uses_topic_ids else bytes(16)
        topic = FakeTopic(topic_id, [FakePartition(leader) for leader in leaders], dict(configs or {}))
        self.topics[name] = topic
        return topic

    def draw_producer_id(self) -> int:
        self._producer_count += 1
        return 1000 + self._producer_count

    def find(self, name: str, topic_id: bytes) -> tuple[str, FakeTopic] | None:
        if name:
            return (name, self.topics[name]) if name in self.topics else None
        return next(
            ((name, topic) for name, topic in self.topics.items() if topic.topic_id == topic_id), None
        )


class FakeBroker:
    def __init__(
        self,
        cluster: FakeCluster,
        node_id: int,
        *,
        version_max: dict[int, int] | None = None,
        login: FakeLogin | None = None,
        tls: TlsContexts | None = None,
    ) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.requests: list[Message] = []
        """Everything that was asked, in order, but for ApiVersions."""
        self.versions_used: dict[str, int] = {}
        self.connection_count = 0
        self.cut_off_count = 0
        """Connections that asked for something without a login, or after its end."""
        self.disowned: list[FakePartition] = []
        """Partitions that this broker does not lead, whatever the metadata says."""
        self.login = login
        self.tls = tls
        self._version_max = dict(version_max or {})
        if login is None:
            self._version_max |= {api.key: -1 for api in _OF_LOGIN}
        self._faults: dict[int, list[Fault]] = {}
        self._listener: Listener | None = None
        self._connections: list[asyncio.Transport] = []

    async def start(self, network: Network, host: str = "127.0.0.1", port: int = 0) -> Address:
        self._listener = await network.listen(lambda: _Connection(self), host, port, tls=self.tls)
        address = Address(*self._listener.address)
        self.cluster.addresses[self.node_id] = address
        return address

    def stop(self) -> None:
        assert self._listener is not None
        self._listener.stop()
        for transport in self._connections:
            transport.abort()

    def fail(self, api: Api[Any, Any], fault: Fault) -> None:
        self._faults.setdefault(api.key, []).append(fault)

    def asked(self, kind: type[Message]) -> int:
        return sum(isinstance(request, kind) for request in self.requests)

    def newest(self, api: Api[Any, Any]) -> int:
        return self._version_max.get(api.key, api.version_max)

    def take_fault(self, api: Api[Any, Any]) -> Fault | None:
        faults = self._faults.get(api.key, [])
        while faults:
            if faults[0].count > 0:
                faults[0].count -= 1
                return faults[0]
            faults.pop(0)
        return None

    def leads(self, partition: FakePartition) -> bool:
        return partition.leader == self.node_id and not any(partition is each for each in self.disowned)


class _Connection(asyncio.Protocol):
    def __init__(self, broker: FakeBroker) -> None:
        self._broker = broker
        self._frames = FrameReader(frame_bytes_max=1 << 24)
        self._transport: asyncio.Transport | None = None
        self._session = None if broker.login is None else FakeSession(broker.login)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._broker.connection_count += 1
        self._broker._connections.append(self._transport)

    def data_received(self, data: bytes) -> None:
        try:
            for payload in self._frames.feed(data):
                self._on_request(payload)
        except ProtocolError:
            assert self._transport is not None
            self._transport.close()

    def _on_request(self, payload: memoryview) -> None:
        assert self._transport is not None
        flexible = {api.key: api.flexible_since for api in APIS}
        header, position = decode_request_header(payload, 0, len(payload), flexible)
        api = next(api for api in APIS if api.key == header.api_key)
        version = header.version
        if api is api_versions.API:
            self._discover(header.version, header.correlation_id)
            return
        assert version <= self._broker.newest(api), f"{api.name} v{version} was not offered"
        request = api.decode_request(version, payload, position, len(payload))
        if self._session is not None and (api in _OF_LOGIN or not self._session.may_ask):
            self._on_login(self._session, api, version, header.correlation_id, request)
            return
        assert self._session is None or not self._session.is_in_login, "a request in the middle of a login"
        self._broker.requests.append(request)
        self._broker.versions_used[api.name] = version
        fault = self._broker.take_fault(api)
        if fault is not None and not fault.handled_first and fault.code is None:
            self._misbehave(fault, header.correlation_id)
            return
        code = None if fault is None else fault.code
        response = HANDLERS[api.key](self._broker, request, code)
        if fault is not None and fault.is_misnumbered:
            self._answer(api, version, header.correlation_id + 1, response)
        elif fault is not None and fault.code is None:
            self._misbehave(fault, header.correlation_id)
        elif isinstance(request, fetch.FetchRequest) and _is_empty(response) and request.max_wait_ms > 0:
            loop = asyncio.get_running_loop()
            loop.call_later(
                request.max_wait_ms / 1000, self._answer_poll, request, version, header.correlation_id
            )
        elif not (isinstance(request, produce.ProduceRequest) and request.acks == 0):
            self._answer(api, version, header.correlation_id, response)

    def _on_login(
        self, session: FakeSession, api: Api[Any, Any], version: int, correlation_id: int, request: Message
    ) -> None:
        assert self._transport is not None
        assert self._broker.login is not None
        if isinstance(request, sasl_handshake.SaslHandshakeRequest):
            self._answer(api, version, correlation_id, session.shake(request))
        elif isinstance(request, sasl_authenticate.SaslAuthenticateRequest):
            if not self._broker.login.is_silent:
                self._answer(api, version, correlation_id, session.authenticate(request))
        else:
            self._broker.cut_off_count += 1
            self._transport.close()

    def _answer_poll(self, request: fetch.FetchRequest, version: int, correlation_id: int) -> None:
        self._answer(fetch.API, version, correlation_id, handle_fetch(self._broker, request, None))

    def _discover(self, version: int, correlation_id: int) -> None:
        newest = self._broker.newest(api_versions.API)
        code = ErrorCode.UNSUPPORTED_VERSION if version > newest else ErrorCode.NONE
        offers = tuple(
            api_versions.ApiVersion(api.key, api.version_min, self._broker.newest(api))
            for api in APIS
            if self._broker.newest(api) >= api.version_min
        )
        response = api_versions.ApiVersionsResponse(code, offers)
        self._answer(api_versions.API, 0 if code else version, correlation_id, response)

    def _misbehave(self, fault: Fault, correlation_id: int) -> None:
        assert self._transport is not None
        if fault.is_garbled:
            self._transport.writelines(frame([(correlation_id + 7).to_bytes(4, "big"), b"\xff\xff\xff"]))
        if fault.hang_up:
            self._transport.close()

    def _answer(self, api: Api[Any, Any], version: int, correlation_id: int, response: Message) -> None:
        assert self._transport is not None
        header = encode_response_header(api, version, correlation_id)
        self._transport.writelines(frame([header, *api.encode_response(version, response)]))


def _is_empty(response: Message) -> bool:
    assert isinstance(response, fetch.FetchResponse)
    return not any(
        partition.records or partition.error_code
        for topic in response.topics
        for partition in topic.partitions
    )


def handle_metadata(
    broker: FakeBroker, request: metadata.MetadataRequest, code: ErrorCode | None
) -> metadata.MetadataResponse:
    cluster = broker.cluster
    names = list(cluster.topics) if request.topics is None else [topic.name or "" for topic in request.topics]
    answers = []
    for name in names:
        may_create = request.allow_auto_topic_creation and cluster.auto_create
        if code is None and name not in cluster.topics and may_create:
            cluster.add_topic(name, broker.node_id)
        topic = cluster.topics.get(name)
        if code is not None or topic is None:
            answers.append(metadata.MetadataResponseTopic(code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name))
            continue
        partitions = tuple(
            metadata.MetadataResponsePartition(
                error_code=0,
                index=index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=(partition.leader,),
                isr_nodes=(partition.leader,),
            )
            for index, partition in enumerate(topic.partitions)
        )
        answers.append(
            metadata.MetadataResponseTopic(0, name, topic.topic_id, name.startswith("__"), partitions)
        )
    brokers = tuple(
        metadata.MetadataResponseBroker(node, address.host, address.port)
        for node, address in cluster.addresses.items()
    )
    return metadata.MetadataResponse(
        brokers=brokers, cluster_id="fake", controller_id=min(cluster.addresses), topics=tuple(answers)
    )


def handle_produce(
    broker: FakeBroker, request: produce.ProduceRequest, code: ErrorCode | None
) -> produce.ProduceResponse:
    def append(topic: produce.TopicProduceData, data: produce.PartitionProduceData) -> Any:
        found = broker.cluster.find(topic.name, topic.topic_id)
        if code is not None:
            return produce.PartitionProduceResponse(data.index, code, -1)
        if found is None or data.index >= len(found[1].partitions):
            return produce.PartitionProduceResponse(data.index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
        partition = found[1].partitions[data.index]
        if not broker.leads(partition):
            return produce.PartitionProduceResponse(data.index, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        assert data.records is not None
        return produce.PartitionProduceResponse(data.index, 0, partition.append(bytes(data.records)))

    return produce.ProduceResponse(
        tuple(
            produce.TopicProduceResponse(
                topic.name, topic.topic_id, tuple(append(topic, data) for data in topic.partitions)
            )
            for topic in request.topics
        )
    )


def handle_fetch(
    broker: FakeBroker, request: fetch.FetchRequest, code: ErrorCode | None
) -> fetch.FetchResponse:
    def read(topic: fetch.FetchTopic, wanted: fetch.FetchPartition) -> fetch.PartitionData:
        found = broker.cluster.find(topic.name, topic.topic_id)
        if code is not None:
            return fetch.PartitionData(wanted.index, code, -1)
        if found is None:
            return fetch.PartitionData(wanted.index, ErrorCode.UNKNOWN_TOPIC_ID, -1)
        partition = found[1].partitions[wanted.index]
        if not broker.leads(partition):
            return fetch.PartitionData(wanted.index, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        if not partition.log_start_offset <= wanted.fetch_offset <= partition.end_offset:
            return fetch.PartitionData(wanted.index, ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        records = b"".join(b for b in partition.batches if decode_header(b).end_offset > wanted.fetch_offset)
        return fetch.PartitionData(
            wanted.index,
            0,
            partition.end_offset,
            partition.end_offset,
            partition.log_start_offset,
            records=records,
        )

    return fetch.FetchResponse(
        throttle_ms=0,
        topics=tuple(
            fetch.FetchableTopicResponse(
                topic.name, topic.topic_id, tuple(read(topic, wanted) for wanted in topic.partitions)
            )
            for topic in request.topics
        ),
    )


def handle_list_offsets(
    broker: FakeBroker, request: list_offsets.ListOffsetsRequest, code: ErrorCode | None
) -> list_offsets.ListOffsetsResponse:
    def look_up(name: str, wanted: list_offsets.ListOffsetsPartition) -> Any:
        partition = broker.cluster.topics[name].partitions[wanted.index]
        refusal = code or (None if broker.leads(partition) else ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if refusal is not None:
            return list_offsets.ListOffsetsPartitionResponse(wanted.index, refusal)
        records = [record for batch in partition.batches for record in decode_records(batch)]
        later = [record.offset for record in records if record.timestamp >= wanted.timestamp]
        offset = {-1: partition.end_offset, -2: partition.log_start_offset}.get(
            wanted.timestamp, later[0] if later else -1
        )
        return list_offsets.ListOffsetsPartitionResponse(wanted.index, 0, -1, offset, partition.leader_epoch)

    return list_offsets.ListOffsetsResponse(
        topics=tuple(
            list_offsets.ListOffsetsTopicResponse(
                topic.name, tuple(look_up(topic.name, wanted) for wanted in topic.partitions)
            )
            for topic in request.topics
        )
    )


def handle_init_producer_id(
    broker: FakeBroker, _: init_producer_id.InitProducerIdRequest, code: ErrorCode | None
) -> init_producer_id.InitProducerIdResponse:
    if code is not None:
        return init_producer_id.InitProducerIdResponse(0, code)
    return init_producer_id.InitProducerIdResponse(0, 0, broker.cluster.draw_producer_id(), 0)


def handle_create_topics(
    broker: FakeBroker, request: create_topics.CreateTopicsRequest, code: ErrorCode | None
) -> create_topics.CreateTopicsResponse:
    def create(topic: create_topics.CreatableTopic) -> create_topics.CreatableTopicResult:
        if code is not None:
            return create_topics.CreatableTopicResult(topic.name, error_code=code)
        if topic.name in broker.cluster.topics:
            text = f"topic {topic.name} exists"
            return create_topics.CreatableTopicResult(
                topic.name, error_code=ErrorCode.TOPIC_ALREADY_EXISTS, error_message=text
            )
        if not request.validate_only:
            leaders = [broker.node_id] * max(1, topic.num_partitions)
            configs = {config.name: config.value or "" for config in topic.configs}
            broker.cluster.add_topic(topic.name, *leaders, configs=configs)
        return create_topics.CreatableTopicResult(topic.name)

    return create_topics.CreateTopicsResponse(0, tuple(map(create, request.topics)))


def handle_delete_topics(
    broker: FakeBroker, request: delete_topics.DeleteTopicsRequest, code: ErrorCode | None
) -> delete_topics.DeleteTopicsResponse:
    names = [topic.name or "" for topic in request.topics] or list(request.topic_names)
    answers = []
    for name in names:
        missing = broker.cluster.topics.pop(name, None) is None
        refusal = code or (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if missing else ErrorCode.NONE)
        answers.append(delete_topics.DeletableTopicResult(name, error_code=refusal))
    return delete_topics.DeleteTopicsResponse(0, tuple(answers))


def handle_create_partitions(
    broker: FakeBroker, request: create_partitions.CreatePartitionsRequest, code: ErrorCode | None
) -> create_partitions.CreatePartitionsResponse:
    def grow(
        wanted: create_partitions.CreatePartitionsTopic,
    ) -> create_partitions.CreatePartitionsTopicResult:
        topic = broker.cluster.topics.get(wanted.name)
        refusal = code or (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else ErrorCode.NONE)
        if topic is not None and code is None:
            missing_count = wanted.count - len(topic.partitions)
            if missing_count <= 0:
                refusal = ErrorCode.INVALID_PARTITIONS
            elif not request.validate_only:
                topic.partitions += [FakePartition(broker.node_id) for _ in range(missing_count)]
        return create_partitions.CreatePartitionsTopicResult(wanted.name, refusal)

    return create_partitions.CreatePartitionsResponse(0, tuple(map(grow, request.topics)))


def handle_describe_configs(
    broker: FakeBroker, request: describe_configs.DescribeConfigsRequest, code: ErrorCode | None
) -> describe_configs.DescribeConfigsResponse:
    def describe(asked: describe_configs.DescribeConfigsResource) -> describe_configs.DescribeConfigsResult:
        kind, name = asked.resource_type, asked.resource_name
        topic = broker.cluster.topics.get(name)
        refusal = code or (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if kind == TOPIC and topic is None else ErrorCode.NONE
        )
        own = topic.configs if kind == TOPIC and topic is not None else {}
        values = {"max.message.bytes": MAX_MESSAGE_BYTES, "retention.ms": "604800000", **own}
        configs = tuple(
            describe_configs.DescribeConfigsResourceResult(
                key,
                value,
                read_only=False,
                config_source=1 if key in own else 5,
                documentation=f"What {key} is.",
            )
            for key, value in sorted(values.items())
        )
        return describe_configs.DescribeConfigsResult(refusal, None, kind, name, () if refusal else configs)

    return describe_configs.DescribeConfigsResponse(0, tuple(map(describe, request.resources)))


def handle_incremental_alter_configs(
    broker: FakeBroker,
    request: incremental_alter_configs.IncrementalAlterConfigsRequest,
    code: ErrorCode | None,
) -> incremental_alter_configs.IncrementalAlterConfigsResponse:
    answers = []
    for resource in request.resources:
        topic = broker.cluster.topics.get(resource.resource_name)
        refusal = code or (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else ErrorCode.NONE)
        if topic is not None and not refusal and not request.validate_only:
            for config in resource.configs:
                if config.config_operation == 1:
                    topic.configs.pop(config.name, None)
                else:
                    topic.configs[config.name] = config.value or ""
        answers.append(
            incremental_alter_configs.AlterConfigsResourceResponse(
                refusal, None, resource.resource_type, resource.resource_name
            )
        )
    return incremental_alter_configs.IncrementalAlterConfigsResponse(0, tuple(answers))


def handle_delete_records(
    broker: FakeBroker, request: delete_records.DeleteRecordsRequest, code: ErrorCode | None
) -> delete_records.DeleteRecordsResponse:
    def trim(name: str, wanted: delete_records.DeleteRecordsPartition) -> Any:
        partition = broker.cluster.topics[name].partitions[wanted.index]
        offset = partition.end_offset if wanted.offset == -1 else wanted.offset
        refusal = code or (None if offset <= partition.end_offset else ErrorCode.OFFSET_OUT_OF_RANGE)
        if refusal is not None:
            return delete_records.DeleteRecordsPartitionResult(wanted.index, -1, refusal)
        partition.log_start_offset = max(partition.log_start_offset, offset)
        return delete_records.DeleteRecordsPartitionResult(wanted.index, partition.log_start_offset, 0)

    return delete_records.DeleteRecordsResponse(
        0,
        tuple(
            delete_records.DeleteRecordsTopicResult(
                topic.name, tuple(trim(topic.name, wanted) for wanted in topic.partitions)
            )
            for topic in request.topics
        ),
    )


def handle_describe_cluster(
    broker: FakeBroker, _: describe_cluster.DescribeClusterRequest, code: ErrorCode | None
) -> describe_cluster.DescribeClusterResponse:
    brokers = tuple(
        describe_cluster.DescribeClusterBroker(node, address.host, address.port)
        for node, address in broker.cluster.addresses.items()
    )
    return describe_cluster.DescribeClusterResponse(
        0,
        code or 0,
        cluster_id="fake",
        controller_id=min(broker.cluster.addresses),
        brokers=brokers,
    )


HANDLERS: Final[dict[int, Callable[[FakeBroker, Any, ErrorCode | None], Message]]] = {
    metadata.API.key: handle_metadata,
    produce.API.key: handle_produce,
    fetch.API.key: handle_fetch,
    list_offsets.API.key: handle_list_offsets,
    init_producer_id.API.key: handle_init_producer_id,
    create_topics.API.key: handle_create_topics,
    delete_topics.API.key: handle_delete_topics,
    create_partitions.API.key: handle_create_partitions,
    describe_configs.API.key: handle_describe_configs,
    incremental_alter_configs.API.key: handle_incremental_alter_configs,
    delete_records.API.key: handle_delete_records,
    describe_cluster.API.key: handle_describe_cluster,
    find_coordinator.API.key: fake_groups.handle_find_coordinator,
    list_groups.API.key: fake_groups.handle_list_groups,
    describe_groups.API.key: fake_groups.handle_describe_groups,
    offset_fetch.API.key: fake_groups.handle_offset_fetch,
    offset_commit.API.key: fake_groups.handle_offset_commit,
    offset_delete.API.key: fake_groups.handle_offset_delete,
    delete_groups.API.key: fake_groups.handle_delete_groups,
}
