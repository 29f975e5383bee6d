"""Large answers to Metadata, encoded in turns and only once: a cluster has thousands of clients, and all ask for the same.

What a reader could get wrong
    A topic is known by the object that describes it: while `handlers/metadata.py` answers with the same object, nothing about the
    topic has changed, and its bytes are what they were. So a change costs what it touches, however many topics there are.
    Answers at several listeners differ in the addresses of brokers alone: topics are encoded once for all of them.
    Small answers are left to the connection, which encodes them as it does any other API's.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct, structs

from ropewalk.base.limits import METADATA_VERSIONS_ENCODED_MAX, REQUEST_PARTITIONS_PER_TURN
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.encoded import Encoded
from ropewalk.kafka.served import Handle
from ropewalk.runtime.steps import Pace
from ropewalk.wire.compile import compile_encoder, compile_errors_of
from ropewalk.wire.messages import metadata
from ropewalk.wire.messages.metadata import MetadataResponse, MetadataResponseTopic
from ropewalk.wire.types import Message
from ropewalk.wire.varint import encode_varint

_THROTTLE_SINCE: Final = 3


class EncodedMetadata:
    """Wraps the handler of Metadata."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._by_version: dict[int, _Version] = {}

    async def handle(self, request: Any, caller: Caller) -> Message | None:
        caller.keep_back()  # what it sends meanwhile is not begun as well: it would be as large
        try:
            return await self._encoded(await self._handle(request, caller), caller)
        finally:
            caller.let_go()

    async def _encoded(self, response: Message | None, caller: Caller) -> Message | None:
        if not isinstance(response, MetadataResponse):
            return response
        version = self._by_version.get(caller.version)
        known = None if version is None else version.answers.get(caller.listener)
        if known is not None and known.response is response:
            return known.encoded
        if sum([len(topic.partitions) for topic in response.topics]) <= REQUEST_PARTITIONS_PER_TURN:
            return response
        if version is None:
            if len(self._by_version) >= METADATA_VERSIONS_ENCODED_MAX:
                del self._by_version[next(iter(self._by_version))]
            version = self._by_version[caller.version] = _Version(caller.version)
        return await version.encode(response, caller.listener)


class _Topic(Struct, frozen=True):
    described: MetadataResponseTopic
    data: bytes
    error_codes: tuple[int, ...]


class _Answer(Struct, frozen=True):
    response: MetadataResponse
    encoded: Encoded


class _Version:
    def __init__(self, version: int) -> None:
        self._is_flexible = metadata.API.is_flexible(version)
        self._tells_throttle = version >= _THROTTLE_SINCE
        self._encode = self._encoder(MetadataResponse, version)
        self._encode_topic = self._encoder(MetadataResponseTopic, version)
        self._errors_of = compile_errors_of(MetadataResponseTopic)
        self._after_topics_bytes = len(self._encoder(metadata.AfterTopics, version)(metadata.AfterTopics()))
        self._after_partitions_bytes = len(
            self._encoder(metadata.AfterPartitions, version)(metadata.AfterPartitions())
        )
        self._topics: dict[tuple[str | None, int], _Topic] = {}
        self.answers: dict[str, _Answer] = {}
        """The last one at each listener."""

    def _encoder(self, message: type[Any], version: int) -> Callable[[Any], bytes]:
        encode = compile_encoder(message, version, flexible=self._is_flexible)
        return lambda value: b"".join(encode(value))

    async def encode(self, response: MetadataResponse, listener: str) -> Encoded:
        pace = Pace(REQUEST_PARTITIONS_PER_TURN)
        topics = [await self._topic(topic, pace) for topic in response.topics]
        empty = self._encode(structs.replace(response, topics=()))
        start = 4 if self._tells_throttle else 0
        before, after = self._around(empty, self._after_topics_bytes)
        encoded = Encoded(
            chunks=(
                b"".join(
                    (before[start:], self._count(len(topics)), *[topic.data for topic in topics], after)
                ),
            ),
            error_codes=tuple([code for topic in topics for code in topic.error_codes]),
            tells_throttle=self._tells_throttle,
        )
        if len(self._topics) > 2 * len(topics):  # some have been deleted, or this is about a few of many
            self._topics = {_key(topic.described): topic for topic in topics}
        self.answers[listener] = _Answer(response, encoded)
        return encoded

    async def _topic(self, described: MetadataResponseTopic, pace: Pace) -> _Topic:
        known = self._topics.get(_key(described))
        if known is not None and known.described is described:
            return known
        pieces: list[bytes] = []
        error_codes: list[int] = []
        before, after = self._around(
            self._encode_topic(structs.replace(described, partitions=())), self._after_partitions_bytes
        )
        partitions = described.partitions
        for start in range(0, len(partitions), REQUEST_PARTITIONS_PER_TURN):
            part = partitions[start : start + REQUEST_PARTITIONS_PER_TURN]
            await pace.next(len(part))
            piece = structs.replace(described, partitions=part)
            data = self._encode_topic(piece)
            pieces.append(data[len(before) + len(self._count(len(part))) : len(data) - len(after)])
            error_codes += self._errors_of(piece)
        topic = _Topic(
            described,
            b"".join((before, self._count(len(partitions)), *pieces, after)),
            tuple(error_codes),
        )
        self._topics[_key(described)] = topic
        return topic

    def _around(self, empty: bytes, after_bytes: int) -> tuple[bytes, bytes]:
        """What lies before and after an array, by a message in which it is empty."""
        end = len(empty) - after_bytes
        return empty[: end - len(self._count(0))], empty[end:]

    def _count(self, count: int) -> bytes:
        return bytes(encode_varint(count + 1)) if self._is_flexible else count.to_bytes(4, "big")


def _key(topic: MetadataResponseTopic) -> tuple[str | None, int]:
    """The same topic may be told of with the operations that are authorized, and without."""
    return topic.name, topic.topic_authorized_operations
