"""Fetches of a session that follows many quiet partitions and one in which there is always something to read.

A client of its own, since no ordinary one fetches record by record: what is measured is what a fetch costs beside the
bytes it carries.
"""

import socket
import statistics
import time
from typing import Final, TypeVar

from bench import client_load
from bench.brokers import Broker
from bench.client_load import LoadFailed
from bench.processes import Meter
from ropewalk.records.batch import decode_header
from ropewalk.records.record import Record, build
from ropewalk.wire.api import Api
from ropewalk.wire.frames import frame
from ropewalk.wire.headers import decode_response_header, encode_request_header
from ropewalk.wire.messages import fetch, metadata, produce
from ropewalk.wire.types import Message

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

_VERSIONS: Final = {fetch.API.key: 17, metadata.API.key: 12, produce.API.key: 9}
_RECORD_BYTES: Final = 5000
"""More than lies between two entries of an index, so that either broker finds each without a search."""

_UNANSWERED_MAX: Final = 100
_WARM_UP: Final = 0.5
"""Fetches that are not measured, for each that is: a JVM compiles what it runs often."""


def fetch_one_by_one(broker: Broker, *, partition_count: int, fetch_count: int) -> dict[str, float]:
    """Read a record at a time in a session of so many partitions, of which all but one are quiet."""
    warm_up_count = int(fetch_count * _WARM_UP)
    quiet = client_load.create_topic(broker, "quiet", partition_count - 1)
    busy = client_load.create_topic(broker, "busy", 1)
    connection = _Connection(broker)
    try:
        connection.write(busy, warm_up_count + fetch_count)
        session = _Session(connection, quiet, partition_count - 1, busy)
        for _ in range(warm_up_count):
            session.next()
        latencies = []
        with Meter(broker.pid) as meter:
            for _ in range(fetch_count):
                began_at = time.perf_counter()
                session.next()
                latencies.append(time.perf_counter() - began_at)
    finally:
        connection.close()
        client_load.delete_topic(broker, quiet)
        client_load.delete_topic(broker, busy)
    percentiles = statistics.quantiles(latencies, n=100)
    return {
        "fetches/s": fetch_count / meter.seconds,
        "CPU µs": meter.broker_cpu_seconds / fetch_count * 1e6,
        "p50 ms": percentiles[49] * 1000,
        "p99 ms": percentiles[98] * 1000,
        "foreign cores": meter.foreign_cores,
    }


class _Connection:
    def __init__(self, broker: Broker) -> None:
        self._socket = socket.create_connection((broker.host, broker.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def send(self, api: Api[Q, R], request: Q) -> None:
        version = _VERSIONS[api.key]
        header = encode_request_header(api, version, 0, "bench")
        self._socket.sendall(b"".join(frame([header, *api.encode_request(version, request)])))

    def receive(self, api: Api[Q, R]) -> R:
        size = int.from_bytes(self._file.read(4), "big")
        body = memoryview(self._file.read(size))
        _, position = decode_response_header(api, _VERSIONS[api.key], body, 0, size)
        return api.decode_response(_VERSIONS[api.key], body, position, size)

    def call(self, api: Api[Q, R], request: Q) -> R:
        self.send(api, request)
        return self.receive(api)

    def write(self, topic: str, record_count: int) -> None:
        """So many batches of one record, some of them under way at a time."""
        now_ms = time.time_ns() // 1_000_000
        batch = bytes(build([Record(timestamp=now_ms, value=bytes(_RECORD_BYTES))]))
        data = produce.TopicProduceData(topic, partitions=(produce.PartitionProduceData(0, batch),))
        request = produce.ProduceRequest(None, -1, 30_000, (data,))
        sent = answered = 0
        while answered < record_count:
            while sent < record_count and sent - answered < _UNANSWERED_MAX:
                self.send(produce.API, request)
                sent += 1
            answer = self.receive(produce.API).topics[0].partitions[0]
            if answer.error_code:
                raise LoadFailed(f"a record was refused with error {answer.error_code}")
            answered += 1

    def topic_id(self, name: str) -> bytes:
        request = metadata.MetadataRequest((metadata.MetadataRequestTopic(name=name),))
        return self.call(metadata.API, request).topics[0].topic_id


class _Session:
    """Begun with all partitions; each further fetch names the busy one, at the next offset."""

    def __init__(self, connection: _Connection, quiet: str, quiet_count: int, busy: str) -> None:
        self._connection = connection
        self._busy_id = connection.topic_id(busy)
        self._offset = 0
        partitions = tuple(
            fetch.FetchPartition(index, partition_max_bytes=1 << 20) for index in range(quiet_count)
        )
        everything = (fetch.FetchTopic("", connection.topic_id(quiet), partitions), self._busy())
        answer = connection.call(fetch.API, self._request(0, 0, everything))
        if answer.error_code or not answer.session_id:
            raise LoadFailed(f"no session was given; error {answer.error_code}")
        self._id = answer.session_id
        self._epoch = 1

    def next(self) -> None:
        self._connection.send(fetch.API, self._request(self._id, self._epoch, (self._busy(),)))
        answer = self._connection.receive(fetch.API)
        self._epoch += 1
        if answer.error_code:
            raise LoadFailed(f"a fetch was refused with error {answer.error_code}")
        ((data,),) = (topic.partitions for topic in answer.topics)
        header = decode_header(memoryview(data.records or b""))
        if header.base_offset != self._offset:
            raise LoadFailed(f"offset {self._offset} was asked for and {header.base_offset} given")
        self._offset = header.end_offset

    def _busy(self) -> fetch.FetchTopic:
        # Of the bytes asked for, one is enough for a batch.
        place = fetch.FetchPartition(0, fetch_offset=self._offset, partition_max_bytes=1)
        return fetch.FetchTopic("", self._busy_id, (place,))

    def _request(
        self, session_id: int, epoch: int, topics: tuple[fetch.FetchTopic, ...]
    ) -> fetch.FetchRequest:
        return fetch.FetchRequest(
            max_wait_ms=500, min_bytes=1, session_id=session_id, session_epoch=epoch, topics=topics
        )
