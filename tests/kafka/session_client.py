"""A consumer's side of a fetch session: it sends what it changed, applies what it is told, and knows the sum of both."""

from dataclasses import dataclass
from typing import TypeAlias

from ropewalk.records.batch import iterate
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch
from ropewalk.wire.types import UUID_ZERO
from tests.kafka.door import Door

Key: TypeAlias = tuple[str | bytes, int]
"""Topic, by name or by id, and partition."""

BY_ID, BY_NAME = 17, 12


@dataclass
class View:
    """What the consumer last heard of a partition."""

    error_code: int
    high_watermark: int
    log_start_offset: int
    records: bytes

    @classmethod
    def of(cls, data: fetch.PartitionData) -> "View":
        return cls(data.error_code, data.high_watermark, data.log_start_offset, bytes(data.records or b""))

    @property
    def end_offset(self) -> int:
        """Behind the records it was given."""
        *_, (_, header) = iterate(memoryview(self.records))
        return header.end_offset


class SessionClient:
    def __init__(self, version: int = BY_ID, *, max_bytes: int = 1 << 20) -> None:
        self.version = version
        self.max_bytes = max_bytes
        self.session_id = 0
        self.epoch = 0
        self.offsets: dict[Key, int] = {}
        self.views: dict[Key, View] = {}
        self._changed: dict[Key, None] = {}
        self._forgotten: dict[Key, None] = {}

    def follow(self, topic: str | bytes, index: int = 0, offset: int = 0) -> None:
        self.offsets[topic, index] = offset
        self._changed[topic, index] = None
        self._forgotten.pop((topic, index), None)

    def forget(self, topic: str | bytes, index: int = 0) -> None:
        del self.offsets[topic, index]
        self._changed.pop((topic, index), None)
        self.views.pop((topic, index), None)
        self._forgotten[topic, index] = None

    def request(self, *, wait_ms: int = 0, min_bytes: int = 1) -> fetch.FetchRequest:
        """The next fetch; what it says counts as said."""
        named = list(self._changed) if self.session_id else list(self.offsets)
        request = fetch.FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=min_bytes,
            max_bytes=self.max_bytes,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=tuple(self._topic(key, self.offsets[key]) for key in named),
            forgotten_topics=tuple(
                fetch.ForgottenTopic(*_words(topic), partitions=(index,)) for topic, index in self._forgotten
            ),
        )
        self._changed.clear()
        self._forgotten.clear()
        return request

    def apply(self, response: fetch.FetchResponse) -> dict[Key, View]:
        """What the answer brought, also taken into `views`."""
        assert response.error_code == ErrorCode.NONE
        self.session_id = response.session_id
        self.epoch = self.epoch + 1 if response.session_id else 0
        told = {
            ((topic.name or topic.topic_id), data.index): View.of(data)
            for topic in response.topics
            for data in topic.partitions
        }
        self.views.update(told)
        return told

    async def poll(self, door: Door, *, wait_ms: int = 0, min_bytes: int = 1) -> dict[Key, View]:
        request = self.request(wait_ms=wait_ms, min_bytes=min_bytes)
        return self.apply(await door.call(fetch.API, self.version, request))

    async def poll_whole(self, door: Door) -> dict[Key, View]:
        """The truth about all that is followed, by a fetch that knows of no session."""
        request = fetch.FetchRequest(
            session_epoch=-1, topics=tuple(self._topic(key, offset) for key, offset in self.offsets.items())
        )
        response = await door.call(fetch.API, self.version, request)
        assert (response.error_code, response.session_id) == (ErrorCode.NONE, 0)
        return {
            ((topic.name or topic.topic_id), data.index): View.of(data)
            for topic in response.topics
            for data in topic.partitions
        }

    def start_over(self) -> None:
        """As a client does whose session was refused, or whose connection broke: the next fetch names everything."""
        self.epoch = 0
        self._changed = dict.fromkeys(self.offsets)
        self._forgotten.clear()
        self.views.clear()

    def _topic(self, key: Key, offset: int) -> fetch.FetchTopic:
        topic, index = key
        asked = fetch.FetchPartition(index, fetch_offset=offset, partition_max_bytes=1 << 20)
        return fetch.FetchTopic(*_words(topic), partitions=(asked,))


def _words(topic: str | bytes) -> tuple[str, bytes]:
    """Name and id as a request has them: one of them is empty."""
    return (topic, UUID_ZERO) if isinstance(topic, str) else ("", topic)
