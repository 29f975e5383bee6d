"""A node small enough to be believed at a glance, on simulated ports: what the simulator itself is tried on.

It keeps one file per partition, syncs before it answers, and reads everything back at start. `Vice` names the
ways in which it can be made to cheat, so that a test can show that cheating is found.
"""

import asyncio
import errno
from contextlib import suppress
from enum import Enum

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import LeaderEpoch, Offset, TopicPartition
from ropewalk.base.ports import Disk, File, Ports, read_whole
from ropewalk.records.batch import BatchHeader, decode_header, iterate, stamp, verify_crc
from ropewalk.wire.api import Api
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.frames import frame
from ropewalk.wire.headers import decode_request_header, encode_response_header
from ropewalk.wire.messages import (
    api_versions,
    create_topics,
    delete_records,
    fetch,
    init_producer_id,
    list_offsets,
    produce,
)
from ropewalk.wire.types import Message

PORT = 9092
DIRECTORY = "/data"


class Vice(Enum):
    NONE = "none"
    ACKNOWLEDGES_BEFORE_SYNC = "acknowledges before it syncs"
    SHOWS_WHAT_IS_NOT_SYNCED = "shows consumers what is not synced"
    FORGETS_NAMES = "does not sync its directory"
    FORGETS_PRODUCERS = "does not rebuild its producers"
    SURVIVES_FAILED_SYNCS = "goes on after a failed sync"
    BELIEVES_ITS_CACHE = "takes what it finds at start as durable"


class Partition:
    def __init__(self, file: File) -> None:
        self.file = file
        self.batches: list[tuple[int, BatchHeader]] = []
        self.end_offset = 0
        self.durable_offset = 0
        self.producers: dict[int, list[BatchHeader]] = {}

    def note(self, position: int, header: BatchHeader) -> None:
        self.batches.append((position, header))
        self.end_offset = header.end_offset
        if header.producer_id >= 0:
            self.producers.setdefault(header.producer_id, []).append(header)

    def refusal(self, header: BatchHeader) -> tuple[ErrorCode, int] | None:
        """For an idempotent producer: a duplicate with its offset, or a gap; None if the batch is next."""
        known = self.producers.get(header.producer_id)
        if header.producer_id < 0 or not known:
            return None
        for former in known[-5:]:
            if former.base_sequence == header.base_sequence:
                return ErrorCode.NONE, former.base_offset
        if header.base_sequence != known[-1].last_sequence + 1:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        return None


class ToyNode:
    def __init__(self, ports: Ports, vice: Vice) -> None:
        self._ports = ports
        self._vice = vice
        self._partitions: dict[TopicPartition, Partition] = {}
        self._producer_id_next = 0

    @classmethod
    async def start(cls, ports: Ports, vice: Vice) -> "ToyNode":
        node = cls(ports, vice)
        await ports.pool.run(node._load, ports.disk)
        await asyncio.start_server(node._serve, "node", PORT)
        return node

    async def stop(self) -> None:
        pass

    def _load(self, disk: Disk) -> None:
        disk.make_directory(DIRECTORY)
        disk.sync_directory("/")
        disk.lock(f"{DIRECTORY}/lock")
        for name in disk.list(DIRECTORY):
            topic, dash, index = name.rpartition("-")
            if name == "producers":
                self._producer_id_next = disk.open(f"{DIRECTORY}/{name}").size()
            elif dash:
                self._partitions[TopicPartition(topic, int(index))] = self._recover(
                    disk, f"{DIRECTORY}/{name}"
                )
        if self._vice is not Vice.FORGETS_NAMES:
            disk.sync_directory(DIRECTORY)

    def _recover(self, disk: Disk, path: str) -> Partition:
        partition = Partition(disk.open(path))
        content = memoryview(read_whole(disk, path))
        size = 0
        with suppress(RopewalkError):  # torn, or never written: the log ends here
            for position, header in iterate(content):
                end = position + header.size_bytes
                if header.base_offset != partition.end_offset or not verify_crc(content[position:end]):
                    break
                partition.note(position, header)
                size = end
        if self._vice is Vice.FORGETS_PRODUCERS:
            partition.producers.clear()
        partition.file.truncate(size)
        if self._vice is not Vice.BELIEVES_ITS_CACHE:
            partition.file.sync()
        partition.durable_offset = partition.end_offset
        return partition

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                payload = memoryview(bytearray(await reader.readexactly(size)))
                flexible = {api.key: api.flexible_since for api in _APIS.values()}
                header, position = decode_request_header(payload, 0, size, flexible)
                api = _APIS[header.api_key]
                request = api.decode_request(header.version, payload, position, size)
                response = await self._handle(request)
                if response is not None:
                    head = encode_response_header(api, header.version, header.correlation_id)
                    writer.writelines(frame([head, *api.encode_response(header.version, response)]))
                    await writer.drain()
        writer.close()

    async def _handle(self, request: Message) -> Message | None:
        match request:
            case api_versions.ApiVersionsRequest():
                versions = [
                    api_versions.ApiVersion(api.key, api.version_min, min(api.version_max, 12))
                    for api in _APIS.values()
                ]
                return api_versions.ApiVersionsResponse(error_code=0, api_keys=tuple(versions))
            case create_topics.CreateTopicsRequest():
                return await self._create(request)
            case init_producer_id.InitProducerIdRequest():
                self._producer_id_next += 1
                producer_id = self._producer_id_next
                await self._ports.pool.run(self._reserve_producer_id)
                return init_producer_id.InitProducerIdResponse(0, 0, producer_id, 0)
            case produce.ProduceRequest():
                return await self._produce(request)
            case fetch.FetchRequest():
                return await self._fetch(request)
            case list_offsets.ListOffsetsRequest():
                return self._list_offsets(request)
            case delete_records.DeleteRecordsRequest():
                (topic,) = request.topics
                result = delete_records.DeleteRecordsPartitionResult(topic.partitions[0].index, 0, 42)
                return delete_records.DeleteRecordsResponse(
                    0, (delete_records.DeleteRecordsTopicResult(topic.name, (result,)),)
                )
            case _:
                raise AssertionError(request)

    def _reserve_producer_id(self) -> None:
        file = self._ports.disk.open(f"{DIRECTORY}/producers", create=True)
        file.append(b"x" * (self._producer_id_next - file.size()))
        file.sync()
        self._ports.disk.sync_directory(DIRECTORY)

    async def _create(self, request: create_topics.CreateTopicsRequest) -> create_topics.CreateTopicsResponse:
        (topic,) = request.topics
        names = [TopicPartition(topic.name, index) for index in range(topic.num_partitions)]

        def make(disk: Disk) -> None:
            for name in names:
                if name not in self._partitions:
                    self._partitions[name] = Partition(disk.open(f"{DIRECTORY}/{name}", create=True))
            if self._vice is not Vice.FORGETS_NAMES:
                disk.sync_directory(DIRECTORY)

        code = ErrorCode.NONE
        try:
            await self._ports.pool.run(make, self._ports.disk)
        except OSError:
            code = ErrorCode.KAFKA_STORAGE_ERROR
        result = create_topics.CreatableTopicResult(topic.name, topic.name.encode().ljust(16), code)
        return create_topics.CreateTopicsResponse(0, (result,))

    async def _produce(self, request: produce.ProduceRequest) -> produce.ProduceResponse | None:
        (topic,) = request.topics
        (data,) = topic.partitions
        partition = self._partitions[TopicPartition(topic.name, data.index)]
        assert data.records is not None
        batch = memoryview(data.records)
        header = decode_header(batch)
        refusal = partition.refusal(header)
        if refusal is not None:
            code, base_offset = refusal
        else:
            code, base_offset = ErrorCode.NONE, partition.end_offset
            try:
                self._append(partition, batch)
            except OSError:  # the disk is full, and what it took was cut off again
                code, base_offset = ErrorCode.KAFKA_STORAGE_ERROR, -1
        if code == ErrorCode.NONE and self._vice is not Vice.ACKNOWLEDGES_BEFORE_SYNC:
            await self._sync(partition)
        if request.acks == 0:
            return None
        answer = produce.PartitionProduceResponse(data.index, code, base_offset)
        return produce.ProduceResponse((produce.TopicProduceResponse(topic.name, partitions=(answer,)),))

    def _append(self, partition: Partition, batch: memoryview) -> None:
        stamp(batch, base_offset=Offset(partition.end_offset), leader_epoch=LeaderEpoch(0))
        position = partition.file.size()
        try:
            taken = partition.file.append(batch)
        except OSError:
            taken = -1
        if taken != len(batch):
            partition.file.truncate(position)
            raise OSError(errno.ENOSPC, "full")
        partition.note(position, decode_header(batch))

    async def _sync(self, partition: Partition) -> None:
        end_offset = partition.end_offset
        try:
            await self._ports.pool.run(partition.file.sync)
        except OSError:
            if self._vice is not Vice.SURVIVES_FAILED_SYNCS:
                raise SystemExit(1) from None
        partition.durable_offset = max(partition.durable_offset, end_offset)

    def _visible_end(self, partition: Partition) -> int:
        shows_all = self._vice in (Vice.SHOWS_WHAT_IS_NOT_SYNCED, Vice.ACKNOWLEDGES_BEFORE_SYNC)
        return partition.end_offset if shows_all else partition.durable_offset

    async def _fetch(self, request: fetch.FetchRequest) -> fetch.FetchResponse:
        topics = []
        for topic in request.topics:
            answers = []
            for wanted in topic.partitions:
                partition = self._partitions[TopicPartition(topic.name, wanted.index)]
                end_offset = self._visible_end(partition)
                if wanted.fetch_offset > end_offset:
                    answers.append(
                        fetch.PartitionData(
                            wanted.index, ErrorCode.OFFSET_OUT_OF_RANGE, -1, log_start_offset=0
                        )
                    )
                    continue
                spans = [
                    (position, header.size_bytes)
                    for position, header in partition.batches
                    if wanted.fetch_offset < header.end_offset <= end_offset
                ][:20]
                records = b"".join([await self._read(partition.file, *span) for span in spans])
                answers.append(
                    fetch.PartitionData(wanted.index, 0, end_offset, log_start_offset=0, records=records)
                )
            topics.append(fetch.FetchableTopicResponse(topic.name, partitions=tuple(answers)))
        return fetch.FetchResponse(0, topics=tuple(topics))

    async def _read(self, file: File, position: int, size: int) -> bytes:
        cached = file.read_cached(position, size)
        return bytes(cached) if cached is not None else await self._ports.pool.run(file.read, position, size)

    def _list_offsets(self, request: list_offsets.ListOffsetsRequest) -> list_offsets.ListOffsetsResponse:
        (topic,) = request.topics
        (wanted,) = topic.partitions
        partition = self._partitions[TopicPartition(topic.name, wanted.index)]
        offset = 0 if wanted.timestamp == list_offsets.EARLIEST else self._visible_end(partition)
        answer = list_offsets.ListOffsetsPartitionResponse(wanted.index, 0, offset=offset)
        return list_offsets.ListOffsetsResponse(
            topics=(list_offsets.ListOffsetsTopicResponse(topic.name, (answer,)),)
        )


_APIS: dict[int, Api[Message, Message]] = {
    module.API.key: module.API
    for module in (
        api_versions,
        create_topics,
        delete_records,
        fetch,
        init_producer_id,
        list_offsets,
        produce,
    )
}
