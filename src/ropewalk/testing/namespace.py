"""The topics, queues and groups of one test, kept apart from those of all others on a node they share.

What a reader could get wrong
    Whatever carries the namespace's token in its name is deleted at the end, so topics that the code under test
    derives from a name it was given (`orders-5f1c0d9e.retry`) go as well; queues likewise, since each has a topic of its name.
    A group that still has members, because the test left a consumer open, is left to the node: it disturbs nobody,
    and ends when that consumer does and its offsets have gone with their topics.
"""

import json
import random
from typing import Final

from msgspec import Struct

from ropewalk.metadata.queues import FIFO_SUFFIX
from ropewalk.records.record import Record
from ropewalk.testing.cluster import Cluster
from ropewalk.testing.settings import SettingValue

_TOKEN_BYTES: Final = 4


class TestQueue(Struct, frozen=True):
    """A queue that only one test uses."""

    __test__ = False

    name: str
    url: str


class Namespace:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._token = random.SystemRandom().randbytes(_TOKEN_BYTES).hex()
        self._created: set[str] = set()
        self._queues: dict[str, TestQueue] = {}

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for `bootstrap.servers`."""
        return self._cluster.bootstrap

    @property
    def sqs_endpoint(self) -> str:
        """http://HOST:PORT of the SQS API."""
        return self._cluster.sqs

    def topic(self, name: str, *, partitions: int = 1, **settings: SettingValue) -> str:
        """The name of a topic that only this test uses, created empty the first time it is asked for."""
        full_name = self._own(name)
        if full_name not in self._created:
            self._cluster.create_topic(full_name, partitions=partitions, replicas=None, **settings)
            self._created.add(full_name)
        return full_name

    def queue(
        self,
        name: str,
        *,
        fifo: bool = False,
        dead_letters: TestQueue | None = None,
        max_receives: int = 3,
        **attributes: SettingValue,
    ) -> TestQueue:
        """A queue that only this test uses, created empty the first time it is asked for: its name and its address.

        Attributes are those of SQS, with underscores: `visibility_timeout=5`. What was received `max_receives` times in vain goes to
        `dead_letters`.
        """
        is_fifo = fifo or name.endswith(FIFO_SUFFIX)
        full_name = self._own(name.removesuffix(FIFO_SUFFIX)) + (FIFO_SUFFIX if is_fifo else "")
        if full_name not in self._queues:
            if dead_letters is not None:
                attributes["redrive_policy"] = _redrive_policy(dead_letters, max_receives)
            url = self._cluster.create_queue(full_name, **attributes)
            self._queues[full_name] = TestQueue(full_name, url)
        return self._queues[full_name]

    def group(self, name: str) -> str:
        """A name for a consumer group that only this test uses; also good for transactional ids."""
        return self._own(name)

    def records(self, topic: str, *, partition: int | None = None) -> list[Record]:
        """All that a topic holds, by the name that `topic` answered."""
        return self._cluster.records(topic, partition=partition)

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, ms: float = 0
    ) -> None:
        """So much time has passed for the node, which all tests of the session share: what others left is as much older."""
        self._cluster.advance(days=days, hours=hours, minutes=minutes, seconds=seconds, ms=ms)

    def close(self) -> None:
        """Delete the groups that nobody is in any more, the queues and the topics."""
        groups = [name for name in self._cluster.groups() if self._token in name]
        if groups:
            self._cluster.delete_groups(groups)
        if self._queues:
            self._cluster.delete_queues([name for name in self._cluster.queues() if self._token in name])
        topics = [name for name in self._cluster.topics() if self._token in name]
        if topics:
            self._cluster.delete_topics(topics)

    def _own(self, name: str) -> str:
        return f"{name}-{self._token}"


def _redrive_policy(target: TestQueue, max_receives: int) -> str:
    arn = f"arn:aws:sqs:us-east-1:000000000000:{target.name}"
    return json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": max_receives})
