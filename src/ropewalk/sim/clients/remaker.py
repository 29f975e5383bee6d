"""A client that makes a topic, uses it by its id, deletes it, and makes another of the same name, over and over.

In the history each of these topics has a name of its own. So whatever a later one holds of an earlier one is a record
that was never sent there, and an id whose deletion was acknowledged must not be heard of again.
"""

from typing import Final

from ropewalk.base.ids import TopicId, TopicPartition
from ropewalk.sim.clients.consumers import fetch_once
from ropewalk.sim.clients.link import Link, LinkLost
from ropewalk.sim.clients.producers import Producer
from ropewalk.sim.clients.workload import TOPIC_BY_NAME_VERSION_MAX, Caller
from ropewalk.sim.judges.history import Created, Promise, Returned
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import create_topics, delete_topics, fetch

NAME: Final = "remade"
_BY_ID_SINCE: Final = TOPIC_BY_NAME_VERSION_MAX + 1
_DELETE_BY_ID_SINCE: Final = 6


class Remaker:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._workload = caller.workload
        self._producer = Producer(caller, acks=-1, version_min=_BY_ID_SINCE)
        self._made_count = 0
        self._deleted: list[TopicPartition] = []

    async def run(self) -> None:
        caller = self._caller
        while (link := await caller.connect()) is not None:
            if not link.offers(delete_topics.API):
                link.close()
                return
            try:
                while link.is_open and not self._workload.is_over:
                    await self._live_once(link)
                    await caller.pause(1.0)
            except LinkLost:
                await caller.pause(0.3)
            link.close()

    async def _live_once(self, link: Link) -> None:
        """One topic from its creation to its end; where that is lost sight of, the next one clears it away."""
        partition = await self._make(link)
        if partition is None:
            await self._delete(link, None)
            return
        for _ in range(self._caller.rng.randrange(1, 5)):
            sending = self._producer.send(link, self._producer.draw_batch(partition))
            assert sending is not None
            await self._producer.settle(sending)
            await fetch_once(self._caller, link, {partition: 0}, version_min=_BY_ID_SINCE)
            await self._caller.pause(0.5)
        if await self._delete(link, partition):
            self._workload.sometimes.note("a topic was deleted")
            self._deleted.append(partition)
        if self._deleted:
            await self._look_for(link, self._caller.rng.choice(self._deleted))

    async def _make(self, link: Link) -> TopicPartition | None:
        self._workload.operation_count += 1
        topic = create_topics.CreatableTopic(name=NAME, num_partitions=1, replication_factor=1)
        response = await link.send(
            create_topics.API,
            link.newest_version(create_topics.API),
            create_topics.CreateTopicsRequest(topics=(topic,), timeout_ms=3000),
        )
        (result,) = response.topics
        if result.error_code != ErrorCode.NONE:
            return None
        if self._deleted:
            self._workload.sometimes.note("a topic was made again")
        self._made_count += 1
        partition = TopicPartition(f"{NAME} {self._made_count}", 0)
        self._workload.journal.note(Created(partition.topic, Promise()))
        self._workload.topics.add(partition.topic, TopicId(bytes(result.topic_id)), 0, Promise())
        return partition

    async def _delete(self, link: Link, partition: TopicPartition | None) -> bool:
        """The one of this partition, or, if it is not known which there is, the one of this name."""
        self._workload.operation_count += 1
        version = self._caller.draw_version(link, delete_topics.API)
        if version >= _DELETE_BY_ID_SINCE and partition is not None:
            state = delete_topics.DeleteTopicState(
                name=None, topic_id=self._workload.topics.id_of(partition.topic)
            )
        else:
            state = delete_topics.DeleteTopicState(name=NAME)
        request = delete_topics.DeleteTopicsRequest(topics=(state,), topic_names=(NAME,), timeout_ms=3000)
        response = await link.send(delete_topics.API, version, request)
        return bool(response.topics[0].error_code == ErrorCode.NONE)

    async def _look_for(self, link: Link, partition: TopicPartition) -> None:
        self._workload.operation_count += 1
        wanted = fetch.FetchTopic(
            topic_id=self._workload.topics.id_of(partition.topic),
            partitions=(fetch.FetchPartition(index=0, fetch_offset=0, partition_max_bytes=1 << 20),),
        )
        response = await link.send(
            fetch.API,
            link.newest_version(fetch.API),
            fetch.FetchRequest(max_wait_ms=0, min_bytes=0, topics=(wanted,)),
        )
        for topic in response.topics:
            for answer in topic.partitions:
                if answer.error_code == ErrorCode.NONE:
                    self._workload.journal.note(Returned(partition, "it was deleted, and is served"))
