"""Somebody who makes, grows, moves and deletes topics while everything else goes on, and notes what was answered."""

from collections.abc import Callable
from typing import Final, TypeAlias

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.controller.leadership import (
    decide_balance_leaders,
    decide_elect_any,
    decide_elect_preferred,
    decide_elect_unclean,
)
from ropewalk.controller.reassignment import decide_reassign
from ropewalk.controller.settings import (
    Alteration,
    Operation,
    decide_alter_broker_settings,
    decide_alter_topic_settings,
)
from ropewalk.controller.topics import (
    CreatePartitions,
    CreateTopic,
    decide_create_partitions,
    decide_create_topic,
    decide_delete_topic,
)
from ropewalk.metadata.image import Image, Partition, Topic
from ropewalk.metadata.records import MetadataRecord
from ropewalk.sim.runs.cores.clients import Crowd
from ropewalk.sim.runs.cores.judge import Violation
from ropewalk.sim.runs.cores.network import CLIENTS
from ropewalk.sim.runs.cores.process import Process
from ropewalk.sim.runs.cores.seat import Indefinite

TIMEOUT_US: Final = 3_000_000
TOPICS_MAX: Final = 4

Command: TypeAlias = Callable[[Process, Image], list[MetadataRecord]]


class Administrator:
    def __init__(self, crowd: Crowd, *, pause_us: int) -> None:
        self._crowd = crowd
        self._address = CLIENTS - 1
        self._pause_us = pause_us
        self._attempt = 0
        self._made_count = 0
        self._refused_names: set[str] = set()
        """Topics of which somebody was told that they are not made."""
        crowd.around.queue.after(crowd.rng.randrange(pause_us), self._act)

    def check(self) -> None:
        """S3: what was refused for good has not happened."""
        for name in self._crowd.around.home.image.topics:
            if name in self._refused_names:
                raise Violation("S3", f"topic {name} is there, and its creation was refused")

    def create(
        self,
        name: str,
        *,
        replicas: int,
        minimum: int | None,
        flush: str | None,
        observers: int = 0,
        is_tried_again: bool = False,
    ) -> None:
        """With `is_tried_again` a refusal may be about an earlier attempt that did succeed. Where nothing is said, the cluster's
        settings hold."""
        settings: dict[str, str | None] = {}
        if minimum is not None:
            settings |= {"min.insync.replicas": str(minimum), "unclean.leader.election.enable": "false"}
        if flush is not None:
            settings["flush"] = flush
        command = CreateTopic(name=name, partition_count=1, replication_factor=replicas, settings=settings)

        def decide(process: Process, image: Image) -> list[MetadataRecord]:
            return decide_create_topic(
                image, command, process.settings.of_broker, process.rng, now_ms=process.wall_ms
            )

        def answered(error: RopewalkError | None) -> None:
            if error is None:
                self._note("a topic was created")
                if observers:
                    self._note("a topic was created with an observer")
                if name not in self._crowd.around.home.image.topics:
                    raise Violation("M6", f"topic {name} was created and is not there")
            elif not is_tried_again and not isinstance(error, Indefinite):
                self._refused_names.add(name)
                self.check()

        self._ask(decide, answered)

    def force(self) -> None:
        """Elect somebody wherever nobody is left who is known to have everything. No topic that can do without may need it."""
        image = self._crowd.around.home.image
        for topic in image.topics.values():
            for partition in topic.partitions:
                if partition.leader is None and not partition.isr and not partition.eligible:
                    self._force(topic, partition)

    def _force(self, topic: Topic, partition: Partition) -> None:
        truth = self._crowd.around.judge.truth((topic.topic_id, partition.index))
        if not truth.is_loose and partition.replication_factor > 1 and truth.promised:
            raise Violation("P2", f"{truth.name} has lost everybody who held what was promised: {partition}")
        self._note("an election was forced")
        self._ask(
            lambda process, image: decide_elect_unclean(
                image, topic.name, partition.index, settings=process.settings, now_ms=process.wall_ms
            ),
            _heard,
        )

    def _act(self) -> None:
        crowd = self._crowd
        crowd.around.queue.after(self._pause_us // 2 + crowd.rng.randrange(self._pause_us), self._act)
        image = crowd.around.home.image
        topics = list(image.topics.values())
        if not topics or not crowd.is_writing:
            return
        topic = crowd.rng.choice(topics)
        if crowd.rng.random() < 0.3 and self._flush_what_is_at_risk(topics):
            return
        crowd.rng.choice(
            (
                self._create,
                self._grow,
                self._move,
                self._move,
                self._give_up,
                self._elect,
                self._elect_any,
                self._balance,
                self._alter,
                self._alter,
                self._alter_all,
            )
            if len(topics) < TOPICS_MAX
            else (self._delete, self._move, self._balance, self._alter, self._alter_all)
        )(topic)

    def juggle(self) -> None:
        """Hand a partition from one replica to the next, several times within a moment."""
        crowd = self._crowd
        topics = list(crowd.around.home.image.topics.values())
        if not topics or not crowd.is_writing:
            return
        topic = crowd.rng.choice(topics)
        index = crowd.rng.randrange(len(topic.partitions))
        delay_us = 1
        for _ in range(crowd.rng.randrange(2, 6)):
            crowd.around.queue.after(delay_us, self._hand_over, topic, index)
            delay_us += crowd.rng.choice((3_000, 30_000, 300_000))
        crowd.around.queue.after(crowd.rng.randrange(500_000, 3_000_000), self.juggle)

    def _hand_over(self, topic: Topic, index: int) -> None:
        node_number = self._crowd.rng.randrange(10)

        def put_first(process: Process, image: Image) -> list[MetadataRecord]:
            partition = image.partition(topic.name, index)
            if partition.is_moving or not partition.isr:
                return []
            first = partition.isr[node_number % len(partition.isr)]
            replicas = (first, *(other for other in partition.replicas if other != first))
            return decide_reassign(
                image, topic.name, index, replicas, settings=process.settings, now_ms=process.wall_ms
            )

        def elect(process: Process, image: Image) -> list[MetadataRecord]:
            return decide_elect_preferred(
                image, topic.name, index, settings=process.settings, now_ms=process.wall_ms
            )

        self._ask(put_first, _heard)
        self._ask(elect, _heard)

    def _create(self, _: Topic) -> None:
        rng = self._crowd.rng
        self._made_count += 1
        replicas = rng.choice((1, 2, 3, 3))
        self.create(
            f"made-{self._made_count}",
            replicas=replicas,
            minimum=rng.choice((1, 2)),
            flush=rng.choice(("group", "os")),
            observers=rng.choice((0, 0, 1)),
        )

    def _delete(self, topic: Topic) -> None:
        def answered(error: RopewalkError | None) -> None:
            if error is None:
                self._note("a topic was deleted")
                if topic.topic_id in self._crowd.around.home.image.topics_by_id:
                    raise Violation("M6", f"topic {topic.name} was deleted and is there")

        self._ask(
            lambda process, image: decide_delete_topic(image, topic, process.settings.of_broker), answered
        )

    def _grow(self, topic: Topic) -> None:
        if len(topic.partitions) >= 2:
            return
        command = CreatePartitions(name=topic.name, partition_count=len(topic.partitions) + 1)

        def answered(error: RopewalkError | None) -> None:
            if error is None:
                self._note("a topic grew")

        self._ask(
            lambda process, image: decide_create_partitions(
                image, command, process.settings.of_broker, process.rng, now_ms=process.wall_ms
            ),
            answered,
        )

    def _move(self, topic: Topic) -> None:
        rng = self._crowd.rng
        partition = rng.choice(topic.partitions)
        nodes = list(self._crowd.around.home.image.brokers)
        count = min(len(nodes), rng.choice((partition.replication_factor, 2, 3)))
        self._reassign(topic, partition.index, tuple(rng.sample(nodes, count)))

    def _give_up(self, topic: Topic) -> None:
        moving = [partition for partition in topic.partitions if partition.is_moving]
        if moving:
            self._reassign(topic, moving[0].index, None)

    def _reassign(self, topic: Topic, index: int, replicas: tuple[NodeId, ...] | None) -> None:
        def answered(error: RopewalkError | None) -> None:
            if error is None and replicas is not None:
                self._note("a move was begun")

        self._ask(
            lambda process, image: decide_reassign(
                image, topic.name, index, replicas, settings=process.settings, now_ms=process.wall_ms
            ),
            answered,
        )

    def _elect(self, topic: Topic) -> None:
        index = self._crowd.rng.randrange(len(topic.partitions))

        def answered(error: RopewalkError | None) -> None:
            if error is None:
                self._note("a preferred leader was elected")

        self._ask(
            lambda process, image: decide_elect_preferred(
                image, topic.name, index, settings=process.settings, now_ms=process.wall_ms
            ),
            answered,
        )

    def _alter(self, topic: Topic) -> None:
        """Another setting of a topic; one of them keeps what it was made with."""
        if topic.name == "sturdy":
            return
        alteration = self._alteration()

        def answered(error: RopewalkError | None) -> None:
            if error is None:
                self._note("a topic's settings were changed")

        self._ask(
            lambda process, image: decide_alter_topic_settings(
                image, process.view, topic.name, [alteration], now_ms=process.wall_ms
            ),
            answered,
        )

    def _flush_what_is_at_risk(self, topics: list[Topic]) -> bool:
        """As an operator would who hears that replicas are down: set to group what is acknowledged from the page cache."""
        for topic in topics:
            is_short = any(len(partition.isr) < len(partition.replicas) for partition in topic.partitions)
            if is_short and topic.settings.get("flush") == "os":
                self._set_flush(topic, "group")
                self._crowd.around.queue.after(
                    self._crowd.rng.randrange(4_000_000, 12_000_000), self._set_flush, topic, "os"
                )
                return True
        return False

    def _set_flush(self, topic: Topic, flush: str) -> None:
        alteration = Alteration("flush", Operation.SET, flush)
        self._ask(
            lambda process, image: decide_alter_topic_settings(
                image, process.view, topic.name, [alteration], now_ms=process.wall_ms
            ),
            _heard,
        )

    def _alter_all(self, _: Topic) -> None:
        alteration = self._alteration()

        def answered(error: RopewalkError | None) -> None:
            if error is None:
                self._note("the settings of all brokers were changed")

        self._ask(
            lambda process, image: decide_alter_broker_settings(image, process.view, None, [alteration]),
            answered,
        )

    def _alteration(self) -> Alteration:
        rng = self._crowd.rng
        name, values = rng.choice(
            (
                ("flush", ("os", "group")),
                ("min.insync.replicas", ("1", "2", "3")),
                ("unclean.leader.election.enable", ("true", "false")),
            )
        )
        if rng.random() < 0.3:
            return Alteration(name, Operation.DELETE)
        return Alteration(name, Operation.SET, rng.choice(values))

    def _elect_any(self, topic: Topic) -> None:
        index = self._crowd.rng.randrange(len(topic.partitions))
        self._ask(
            lambda process, image: decide_elect_any(
                image, topic.name, index, settings=process.settings, now_ms=process.wall_ms
            ),
            _heard,
        )

    def _balance(self, _: Topic) -> None:
        self._ask(
            lambda process, image: decide_balance_leaders(
                image, settings=process.settings, now_ms=process.wall_ms, changes_max=10
            ),
            _heard,
        )

    def _ask(self, command: Command, answered: Callable[[RopewalkError | None], None]) -> None:
        """Whoever seems to decide; an answer that comes after the time is up is as good as none."""
        crowd = self._crowd
        crowd.operation_count += 1
        self._attempt += 1
        attempt, asked_at_us = self._attempt, crowd.around.queue.now_us

        def reply(error: RopewalkError | None) -> None:
            if attempt == self._attempt and crowd.around.queue.now_us - asked_at_us < TIMEOUT_US:
                self._attempt += 1
                answered(error)

        for process in crowd.around.processes.values():
            if process.seat.is_active:
                crowd.around.call_once(
                    self._address, process.node_id, Process.on_command, self._address, command, reply
                )
                return

    def _note(self, what: str) -> None:
        self._crowd.around.sometimes.note(what)


def _heard(_: RopewalkError | None) -> None:
    """Whatever was said, the metadata says it better."""
