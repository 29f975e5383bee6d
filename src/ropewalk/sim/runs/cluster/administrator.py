"""Somebody who makes, grows, moves and deletes topics while everything else goes on, and notes what was answered."""

from typing import Final

from ropewalk.base.ids import TopicId, TopicPartition
from ropewalk.metadata.image import Image
from ropewalk.sim.clients.link import Link, LinkLost
from ropewalk.sim.clients.producers import Producer
from ropewalk.sim.clients.workload import TOPIC_BY_NAME_VERSION_MAX
from ropewalk.sim.judges.checker import Violation
from ropewalk.sim.judges.history import Created, Promise
from ropewalk.sim.runs.cluster.guide import Guide
from ropewalk.sim.runs.cluster.producers import INDEFINITE
from ropewalk.sim.runs.cluster.topics import TopicSort
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    alter_partition_reassignments,
    create_partitions,
    create_topics,
    delete_topics,
    elect_leaders,
    incremental_alter_configs,
)

TIMEOUT_MS: Final = 2500
REMADE: Final = "remade"
GROWING: Final = "sturdy"
LOOSE: Final = "brisk"
PARTITIONS_MAX: Final = 4
LATE_MAX: Final = 2
UNCLEAN: Final = 1
TOPIC: Final = 2
"""The type of a topic among resources that have settings."""
LATE_S: Final = 10.0
"""Longer than a request lives on behind a client that has given up on it."""

_REFUSED_FOR_GOOD: Final = frozenset(
    {ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.NOT_CONTROLLER, ErrorCode.KAFKA_STORAGE_ERROR}
)


class Administrator:
    def __init__(self, guide: Guide, node_count: int, *, may_move: bool) -> None:
        self._guide = guide
        self._workload = guide.workload
        self._node_count = node_count
        self._may_move = may_move
        self._producer = Producer(
            guide, acks=-1, version_min=TOPIC_BY_NAME_VERSION_MAX + 1, indefinite=INDEFINITE
        )
        self._made_count = 0
        self._flush = "os"
        self._late_count = 0
        self._refused: dict[str, None] = {}
        """Topics of which it was said that they are not made."""
        self._made: dict[str, bytes] = {}
        self._is_gone = True
        """Whether the topic that is made again and again is not there, by what was answered."""
        self._doubtful_until_s = 0.0
        """Until when a creation whose outcome nobody knows may still take effect."""
        self._findings: list[Violation] = []

    async def run(self) -> None:
        guide = self._guide
        while not self._workload.is_over:
            await guide.pause(2.0)
            deeds = [self._remake, self._remake, self._make_late, self._grow, self._elect, self._set_flush]
            if self._may_move:
                deeds += [self._move, self._move]
            try:
                await guide.rng.choice(deeds)()
            except LinkLost:
                guide.doubt()
        guide.close()

    def complaints(self, image: Image) -> list[Violation]:
        """What was refused for good has not happened, and what was acknowledged has."""
        found = self._findings + [
            Violation("S3", f"topic {name} is there, and its creation was refused")
            for name in self._refused
            if name in image.topics
        ]
        for name, topic_id in self._made.items():
            if TopicId(topic_id) not in image.topics_by_id:
                found.append(Violation("M6", f"topic {name} was acknowledged and is not there"))
        return found

    async def create(self, name: str, *, partitions: int, flush: str | None) -> ErrorCode:
        """One attempt. Raises `LinkLost` where nobody answers. Without `flush` the cluster's settings hold, which promise as much."""
        settings = {"segment.ms": "3000"}
        if flush is not None:
            settings |= {"min.insync.replicas": "2", "flush": flush}
        return await self.make(TopicSort(name, settings, partitions=partitions))

    async def make(self, sort: TopicSort) -> ErrorCode:
        """As `create`."""
        link = await self._any_link()
        name, settings = sort.name, sort.settings
        if sort.promise.retention_ms is None:
            # A node that starts with a clock of next week takes what is there for old: nothing is owed then but by topics without an age.
            settings = {**settings, "retention.ms": "-1"}
        topic = create_topics.CreatableTopic(
            name=name,
            num_partitions=sort.partitions,
            replication_factor=sort.replicas,
            configs=tuple(create_topics.CreatableTopicConfig(key, value) for key, value in settings.items()),
        )
        code, topic_id = await self._create(link, topic)
        if code == ErrorCode.NONE:
            self._made[name] = topic_id
            self._workload.journal.note(Created(name, sort.promise))
            self._workload.topics.add(name, TopicId(topic_id), sort.partitions, sort.promise)
        elif code in _REFUSED_FOR_GOOD:
            self._refused[name] = None
        return code

    async def create_silent(self, name: str, *, partitions: int) -> None:
        """A topic that nobody writes to, so that nobody reads it either."""
        link = await self._any_link()
        topic = create_topics.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=3,
            configs=(create_topics.CreatableTopicConfig("flush", "os"),),
        )
        code, _ = await self._create(link, topic)
        assert code == ErrorCode.NONE, f"{name} cannot be made in a cluster without faults: {code.name}"

    async def force(self, partition: TopicPartition) -> None:
        """Let whoever is there lead, whatever it lacks."""
        await self._ask_to_elect(partition, UNCLEAN)

    async def _make_late(self) -> None:
        if self._late_count >= LATE_MAX:
            return
        self._late_count += 1
        flush = self._guide.rng.choice(["group", "group", "os"])
        name = f"late-{flush}-{self._late_count}"
        if await self.create(name, partitions=1, flush=flush) == ErrorCode.NONE:
            self._workload.sometimes.note("a topic was created under fire")

    async def _grow(self) -> None:
        count = sum(partition.topic == GROWING for partition in self._workload.topics.partitions) + 1
        if count > PARTITIONS_MAX:
            return
        link = await self._any_link()
        self._workload.operation_count += 1
        wanted = create_partitions.CreatePartitionsTopic(name=GROWING, count=count, assignments=None)
        response = await link.send(
            create_partitions.API,
            link.newest_version(create_partitions.API),
            create_partitions.CreatePartitionsRequest(
                topics=(wanted,), timeout_ms=TIMEOUT_MS, validate_only=False
            ),
        )
        # An attempt of which nothing was heard may have taken effect; then there are as many already.
        if response.results[0].error_code in (ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS):
            self._workload.sometimes.note("a topic grew")
            self._workload.topics.partitions.append(TopicPartition(GROWING, count - 1))

    async def _set_flush(self) -> None:
        """Of the topic that is written to the page cache alone, to group and back, whoever is down meanwhile."""
        self._flush = "os" if self._flush == "group" else "group"
        link = await self._any_link()
        self._workload.operation_count += 1
        config = incremental_alter_configs.AlterableConfig("flush", 0, self._flush)
        resource = incremental_alter_configs.AlterConfigsResource(TOPIC, LOOSE, (config,))
        response = await link.send(
            incremental_alter_configs.API,
            link.newest_version(incremental_alter_configs.API),
            incremental_alter_configs.IncrementalAlterConfigsRequest((resource,), validate_only=False),
        )
        if response.responses[0].error_code == ErrorCode.NONE:
            self._workload.sometimes.note("flush was changed while nodes were down")

    async def _elect(self) -> None:
        await self._ask_to_elect(None, 0)
        self._workload.sometimes.note("a preferred leader was asked for")

    async def _ask_to_elect(self, partition: TopicPartition | None, election_type: int) -> None:
        link = await self._any_link()
        self._workload.operation_count += 1
        wanted = (
            None
            if partition is None
            else (elect_leaders.TopicPartitions(partition.topic, (partition.partition,)),)
        )
        await link.send(
            elect_leaders.API,
            link.newest_version(elect_leaders.API),
            elect_leaders.ElectLeadersRequest(
                election_type=election_type, topic_partitions=wanted, timeout_ms=TIMEOUT_MS
            ),
        )

    async def _move(self) -> None:
        rng = self._guide.rng
        partition = rng.choice(self._workload.topics.partitions)
        replicas = None if rng.random() < 0.1 else tuple(rng.sample(range(self._node_count), 3))
        link = await self._any_link()
        self._workload.operation_count += 1
        wanted = alter_partition_reassignments.ReassignablePartition(
            index=partition.partition, replicas=replicas
        )
        topic = alter_partition_reassignments.ReassignableTopic(name=partition.topic, partitions=(wanted,))
        response = await link.send(
            alter_partition_reassignments.API,
            link.newest_version(alter_partition_reassignments.API),
            alter_partition_reassignments.AlterPartitionReassignmentsRequest(
                timeout_ms=TIMEOUT_MS, topics=(topic,)
            ),
        )
        if response.topics and response.topics[0].partitions[0].error_code == ErrorCode.NONE:
            self._workload.sometimes.note("a move was begun")

    async def _remake(self) -> None:
        """A topic from its creation to its end. In the history each of that name has a name of its own."""
        topic = create_topics.CreatableTopic(name=REMADE, num_partitions=1, replication_factor=3)
        link = await self._any_link()
        now_s = self._workload.world.now_s
        was_gone, self._is_gone = self._is_gone and now_s > self._doubtful_until_s, False
        doubtful_until_s, self._doubtful_until_s = self._doubtful_until_s, now_s + LATE_S
        code, topic_id = await self._create(link, topic)
        if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS, *_REFUSED_FOR_GOOD):
            self._doubtful_until_s = doubtful_until_s
        if was_gone and code in _REFUSED_FOR_GOOD:
            self._is_gone = True
        elif was_gone and code == ErrorCode.TOPIC_ALREADY_EXISTS:
            self._findings.append(
                Violation("S3", f"{REMADE} is there, and every attempt to make it was refused")
            )
        name = f"{REMADE} {self._made_count}"
        if code == ErrorCode.NONE:
            self._made_count += 1
            partition = TopicPartition(name, 0)
            self._workload.journal.note(Created(name, Promise()))
            self._workload.topics.add(name, TopicId(topic_id), 0, Promise())
            self._guide.doubt()
            for _ in range(self._guide.rng.randrange(0, 4)):
                link = await self._guide.connect_to_leader(partition)
                sending = self._producer.send(link, self._producer.draw_batch(partition))
                assert sending is not None
                await self._producer.settle(sending)
            self._workload.topics.forget(name)
        elif code != ErrorCode.TOPIC_ALREADY_EXISTS:
            return
        if await self._delete():
            self._is_gone = True
            self._workload.sometimes.note("a topic was deleted")

    async def _create(self, link: Link, topic: create_topics.CreatableTopic) -> tuple[ErrorCode, bytes]:
        self._workload.operation_count += 1
        response = await link.send(
            create_topics.API,
            link.newest_version(create_topics.API),
            create_topics.CreateTopicsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS),
        )
        (result,) = response.topics
        return ErrorCode(result.error_code), bytes(result.topic_id)

    async def _delete(self) -> bool:
        link = await self._any_link()
        self._workload.operation_count += 1
        state = delete_topics.DeleteTopicState(name=REMADE)
        request = delete_topics.DeleteTopicsRequest(
            topics=(state,), topic_names=(REMADE,), timeout_ms=TIMEOUT_MS
        )
        response = await link.send(delete_topics.API, link.newest_version(delete_topics.API), request)
        return bool(response.topics[0].error_code == ErrorCode.NONE)

    async def _any_link(self) -> Link:
        link = await self._guide.connect()
        if link is None:
            raise LinkLost("the run is over")
        return link
