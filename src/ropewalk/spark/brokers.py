"""Questions to brokers from a thread that has no event loop of its own: Spark's driver, or a task."""

from collections.abc import Awaitable, Mapping
from concurrent.futures import Future
from random import SystemRandom
from typing import NamedTuple, TypeVar

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TOPIC_ID_NONE, TopicPartition, format_id
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.list_offsets import OffsetQuery
from ropewalk.client.errors import RemoteError
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.loop_thread import LoopThread
from ropewalk.runtime.network import TcpNetwork
from ropewalk.spark.options import EARLIEST, LATEST, AtOffsets, Bound, SourceOptions
from ropewalk.spark.ranges import Offsets, TopicIds
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.weights import Weights
from ropewalk.wire.error_code import ErrorCode

T = TypeVar("T")


class Brokers:
    """Connects on the first question. Not to be handed from process to process."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._loop: LoopThread | None = None
        """A thread, so that what was started goes on while its caller decodes: it does so without Python's lock."""
        self._client: Client | None = None

    def __enter__(self) -> "Brokers":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """What was started and has not been answered fails with `ConnectionLost`."""
        if self._loop is None:
            return
        if self._client is not None:
            self._loop.call(self._client.close)
            self._client = None
        self._loop.stop()
        self._loop = None

    @property
    def client(self) -> Client:
        if self._client is None:
            made = Client(
                TcpNetwork(), SystemClock(), SystemRandom(), self._options.bootstrap, self._options.client
            )
            try:
                self._client = self.wait(made.__aenter__())
            except RopewalkError as error:
                addresses = ", ".join(map(str, self._options.bootstrap))
                raise WrongUse(f"no broker answers at {addresses}: {error}") from None
        return self._client

    def wait(self, question: Awaitable[T]) -> T:
        return self._thread.run(_as_coroutine(question))

    def start(self, question: Awaitable[T]) -> "Future[T]":
        """It is asked and answered while the caller does something else."""
        return self._thread.start(_as_coroutine(question))

    @property
    def _thread(self) -> LoopThread:
        if self._loop is None:
            self._loop = LoopThread()
        return self._loop

    def partitions(self) -> list[TopicPartition]:
        return self.look().partitions

    def look(self) -> "Subscribed":
        """All that the subscription comes to at the moment."""
        subscription = self._options.subscription
        wanted = None if subscription.pattern is not None else subscription.topics
        if subscription.assigned:
            wanted = tuple(dict.fromkeys(each.topic for each in subscription.assigned))
        view = self.wait(self.client.metadata(wanted))
        found = [
            TopicPartition(topic.name, partition.index)
            for topic in view.topics
            for partition in topic.partitions
            if subscription.assigned or subscription.takes(topic.name)
            if subscription.pattern is None or not topic.is_internal
        ]
        if subscription.assigned:
            missing = [str(each) for each in subscription.assigned if each not in set(found)]
            found = list(subscription.assigned)
        else:
            missing = sorted(set(wanted or ()) - {each.topic for each in found})
        if missing:
            raise WrongUse(f"there is no {', '.join(missing)}; create it first, or subscribe by pattern")
        names = {each.topic for each in found}
        ids = {
            topic.name: format_id(topic.topic_id)
            for topic in view.topics
            if topic.name in names and topic.topic_id != TOPIC_ID_NONE
        }
        return Subscribed(sorted(found), ids)

    def resolve(self, bound: Bound, partitions: list[TopicPartition], *, is_start: bool) -> Offsets:
        """Where the bound lies in each partition by now."""
        if isinstance(bound, AtOffsets):
            said = {each: bound.offsets.get(each, bound.default) for each in partitions}
            self._refuse_others(bound.offsets, partitions)
            asked = {each: offset for each, offset in said.items() if offset in (EARLIEST, LATEST)}
            return {**said, **self.ask(asked)}
        self._refuse_others(bound.timestamps, partitions)
        times = {each: bound.timestamps.get(each, bound.default) for each in partitions}
        asked = {each: time for each, time in times.items() if time is not None}
        unsaid = EARLIEST if is_start else LATEST
        found = {
            **self.ask(asked),
            **self.ask({each: unsaid for each, time in times.items() if time is None}),
        }
        late = sorted(each for each, offset in found.items() if offset < 0)
        if late and is_start and not self._options.late_start_is_latest:
            raise WrongUse(
                f"no record of {', '.join(map(str, late))} is that young;"
                " startingOffsetsByTimestampStrategy=latest begins at the end instead"
            )
        return {**found, **self.ask(dict.fromkeys(late, LATEST))}

    def ask(self, queries: Mapping[TopicPartition, int]) -> Offsets:
        """By timestamp, or one of `EARLIEST` and `LATEST`; -1 where no record is as young."""
        by_topic: dict[str, dict[int, int]] = {}
        for partition, query in queries.items():
            by_topic.setdefault(partition.topic, {})[partition.partition] = query
        answers: Offsets = {}
        for topic, wanted in by_topic.items():
            listed = self.wait(self.client.list_offsets(topic, wanted, isolation=self._options.isolation))
            answers |= {TopicPartition(topic, index): found.offset for index, found in listed.items()}
        return answers

    def weights(self, partitions: list[TopicPartition]) -> Weights:
        """How large offsets of these are, about."""
        sizes = self.wait(self.client.log_sizes(partitions))
        first, end = (self.ask(dict.fromkeys(partitions, query)) for query in (EARLIEST, LATEST))
        return Weights.of(sizes, first, end)

    def earliest(self, partition: TopicPartition) -> int:
        return self.ask({partition: OffsetQuery.EARLIEST})[partition]

    def _refuse_others(self, said: Mapping[TopicPartition, int], partitions: list[TopicPartition]) -> None:
        others = sorted(set(said) - set(partitions))
        if others:
            raise WrongUse(f"offsets are given for {', '.join(map(str, others))}, which is not subscribed to")


class Subscribed(NamedTuple):
    partitions: list[TopicPartition]
    ids: TopicIds


async def _as_coroutine(question: Awaitable[T]) -> T:
    return await question


def is_out_of_range(error: RopewalkError) -> bool:
    return isinstance(error, RemoteError) and error.code is ErrorCode.OFFSET_OUT_OF_RANGE
