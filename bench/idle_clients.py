"""Clients at the level of sockets: thousands that are connected and say nothing, and one that writes at a steady pace."""

import random
import socket
import threading
import time
from collections.abc import Iterable
from typing import Final, TypeVar

from bench.brokers import Broker
from bench.client_load import LoadFailed
from ropewalk.records.record import Record, build
from ropewalk.wire.api import Api
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.frames import LENGTH, frame
from ropewalk.wire.headers import decode_response_header, encode_request_header
from ropewalk.wire.messages import api_versions, create_topics, metadata, produce
from ropewalk.wire.types import Message

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

CONNECTIONS_PER_ADDRESS: Final = 5_000
"""A loopback address has some 28,000 ports for clients, and others want some."""

_TOGETHER: Final = 500
_TIMEOUT_SECONDS: Final = 120.0
_API_VERSIONS_VERSION: Final = 3
_CREATE_TOPICS_VERSION: Final = 7
_METADATA_VERSION: Final = 12
_PRODUCE_VERSION: Final = 9


class RawConnection:
    """A connection on which one request is answered before the next is sent, unless the caller knows better."""

    def __init__(self, broker: Broker, source_host: str = "127.0.0.1") -> None:
        self._socket = socket.create_connection(
            (broker.host, broker.port), _TIMEOUT_SECONDS, source_address=(source_host, 0)
        )
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, api: Api[Q, R], version: int, request: Q, *, correlation_id: int = 0) -> None:
        header = encode_request_header(api, version, correlation_id, "bench")
        self._socket.sendall(b"".join(frame([header, *api.encode_request(version, request)])))

    def receive(self, api: Api[Q, R], version: int) -> tuple[int, R]:
        """The correlation id and the answer of the earliest request that has none yet."""
        (size,) = LENGTH.unpack(self._exactly(LENGTH.size))
        view = memoryview(self._exactly(size))
        correlation_id, position = decode_response_header(api, version, view, 0, size)
        return correlation_id, api.decode_response(version, view, position, size)

    def call(self, api: Api[Q, R], version: int, request: Q) -> R:
        self.send(api, version, request)
        return self.receive(api, version)[1]

    def close(self) -> None:
        self._socket.close()

    def _exactly(self, size: int) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            taken = self._socket.recv_into(view)
            if not taken:
                raise LoadFailed("the broker closed a connection")
            view = view[taken:]
        return data


def connect_many(broker: Broker, count: int) -> list[RawConnection]:
    """So many connections, each of which has asked for the versions, as every client does, and says nothing more."""
    request = api_versions.ApiVersionsRequest(client_software_name="bench", client_software_version="1")
    connections: list[RawConnection] = []
    while len(connections) < count:
        together = [
            RawConnection(broker, f"127.0.0.{1 + index // CONNECTIONS_PER_ADDRESS}")
            for index in range(len(connections), min(count, len(connections) + _TOGETHER))
        ]
        for connection in together:
            connection.send(api_versions.API, _API_VERSIONS_VERSION, request)
        for connection in together:
            connection.receive(api_versions.API, _API_VERSIONS_VERSION)
        connections += together
    return connections


def create_topics_in(broker: Broker, names: Iterable[str], *, partition_count: int, together: int) -> None:
    """Make the topics with a replica on every node, so many with each request, one request after the other."""
    connection = RawConnection(broker)
    waiting = list(names)
    while waiting:
        asked, waiting = waiting[:together], waiting[together:]
        request = create_topics.CreateTopicsRequest(
            tuple(create_topics.CreatableTopic(name, partition_count, broker.node_count) for name in asked)
        )
        answer = connection.call(create_topics.API, _CREATE_TOPICS_VERSION, request)
        for topic in answer.topics:
            if topic.error_code != ErrorCode.NONE:
                raise LoadFailed(
                    f"{topic.name} was refused with code {topic.error_code}: {topic.error_message}"
                )
    connection.close()


def all_metadata_ms(broker: Broker, *, topic_count: int, rounds: int) -> list[float]:
    """How long an answer about all topics takes, sorted."""
    connection = RawConnection(broker)
    request = metadata.MetadataRequest(topics=None)
    durations = []
    for _ in range(rounds):
        began = time.perf_counter()
        answer = connection.call(metadata.API, _METADATA_VERSION, request)
        durations.append((time.perf_counter() - began) * 1000)
        if len(answer.topics) < topic_count:
            raise LoadFailed(f"{len(answer.topics)} topics are told of, {topic_count} were made")
    connection.close()
    return sorted(durations)


def spread_latency_ms(
    broker: Broker, topics: list[str], *, partition_count: int, records_per_second: int, seconds: int
) -> list[float]:
    """From sending a record of 100 bytes to its acknowledgement, sorted; every record to another partition, acks=all.

    The pace does not wait for the broker. The first second is warm-up.
    """
    connection = RawConnection(broker)
    batch = memoryview(build([Record(timestamp=time.time_ns() // 1_000_000, value=bytes(100))]))
    places = [(name, index) for name in topics for index in range(partition_count)]
    random.Random(0).shuffle(places)
    record_count = records_per_second * (seconds + 1)
    sent_at = [0.0] * record_count
    acknowledged_at = [0.0] * record_count
    failures: list[str] = []

    def take_answers() -> None:
        for _ in range(record_count):
            correlation_id, answer = connection.receive(produce.API, _PRODUCE_VERSION)
            acknowledged_at[correlation_id] = time.perf_counter()
            code = answer.topics[0].partitions[0].error_code
            if code != ErrorCode.NONE:
                failures.append(f"code {code}")

    taker = threading.Thread(target=take_answers)
    taker.start()
    started_at = time.perf_counter()
    for number in range(record_count):
        ahead = started_at + number / records_per_second - time.perf_counter()
        if ahead > 0:
            time.sleep(ahead)
        name, index = places[number % len(places)]
        data = produce.TopicProduceData(name, partitions=(produce.PartitionProduceData(index, batch),))
        sent_at[number] = time.perf_counter()
        connection.send(
            produce.API,
            _PRODUCE_VERSION,
            produce.ProduceRequest(acks=-1, timeout_ms=30_000, topics=(data,)),
            correlation_id=number,
        )
    taker.join(_TIMEOUT_SECONDS)
    connection.close()
    if failures or taker.is_alive():
        raise LoadFailed(f"{record_count} records were sent, {len(failures)} failed {failures[:1]}")
    return sorted(
        (late - early) * 1000
        for early, late in zip(
            sent_at[records_per_second:], acknowledged_at[records_per_second:], strict=True
        )
    )
