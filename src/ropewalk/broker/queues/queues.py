"""All partitions of queues that this node hosts: one for every partition it leads of a queue's topic.

`follow` keeps them in step with the image and the partitions; `run` loads what has to be read; `run_upkeep` shortens their logs.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import structlog

from ropewalk.base.errors import NodeStopping, QueueNotReady, RopewalkError
from ropewalk.base.ids import NodeId, OwnerId, TopicId, TopicPartition
from ropewalk.base.limits import QUEUE_LOADS_TOGETHER, QUEUE_REST_MS, QUEUE_WRITE_DOWN_MS_MAX
from ropewalk.base.ports import Clock, Pool
from ropewalk.broker.cluster.whereabouts import leader as leader_of
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.queues.arrivals import Arrivals
from ropewalk.broker.queues.hosted_queue import HostedQueue
from ropewalk.broker.queues.moves import Moves, ProducerIds
from ropewalk.broker.queues.read_ahead import ReadAheadRoom
from ropewalk.broker.queues.settings import lacks_target, settings_of
from ropewalk.broker.queues.tasks import Tasks
from ropewalk.broker.queues.time import Time
from ropewalk.metadata.image import Image, Topic
from ropewalk.metadata.queues import Queue
from ropewalk.metadata.records import (
    Fact,
    MoveTaskCancelling,
    MoveTaskEnded,
    MoveTaskStarted,
    PartitionChanged,
    PartitionCreated,
    QueueChanged,
    QueueCreated,
    QueueDeleted,
    TopicChanged,
    TopicCreated,
    TopicDeleted,
    TopicSettingsChanged,
)
from ropewalk.metadata.settings.applied import AppliedSettings
from ropewalk.queues.messages import Arrived, Shipment
from ropewalk.runtime.bell import Bell
from ropewalk.runtime.errands import Errands

_log = structlog.get_logger()


class Queues:
    def __init__(
        self,
        *,
        image: Image,
        settings: AppliedSettings,
        partitions: Partitions,
        pool: Pool,
        clock: Clock,
        time: Time,
        producer_ids: ProducerIds,
        errands: Errands,
    ) -> None:
        self._image = image
        self._settings = settings
        self._partitions = partitions
        self._pool = pool
        self._clock = clock
        self._time = time
        self.room = ReadAheadRoom()
        self.arrivals = Arrivals(partitions, self._commit_timeout_ms)
        self._ship_elsewhere: Callable[[NodeId, Shipment], Coroutine[Any, Any, Arrived]] | None = None
        self.moves = Moves(
            image,
            producer_ids,
            self._ship,
            pool=pool,
            begin=errands.begin,
            remembered_ms=lambda: settings.of_broker.producer_id_expiration_ms,
        )
        self.tasks = Tasks(image, pool=pool, begin=errands.begin)
        self._hosted: dict[TopicId, dict[int, HostedQueue]] = {}
        self._to_load: dict[HostedQueue, float] = {}
        """Not before which time, on the monotonic clock."""
        self._wake = Bell()
        self._awaiting: list[asyncio.Future[Any]] = []
        """Those who wait for a queue to be served here."""
        self._is_stopped = False
        self.load_count = 0
        self.load_ms = 0.0
        """Of all loads together."""

    def __iter__(self) -> Iterator[HostedQueue]:
        for hosted in list(self._hosted.values()):
            yield from list(hosted.values())

    @property
    def is_loaded(self) -> bool:
        return not self._to_load

    @property
    def image(self) -> Image:
        return self._image

    def now_ms(self) -> int:
        return self._time.now_ms()

    def of_queue(self, queue: Queue) -> list[HostedQueue]:
        """Its partitions that are hosted here, loaded or not."""
        return [
            each
            for each in self._hosted.get(queue.topic_id, {}).values()
            if each.queue.queue_id == queue.queue_id and not each.has_ended
        ]

    def find(self, queue: Queue, index: int) -> HostedQueue:
        """Raises `QueueNotReady` where this node does not lead the partition, and names who does."""
        hosted = self._hosted.get(queue.topic_id, {}).get(index)
        if hosted is None or hosted.queue.queue_id != queue.queue_id:
            name = TopicPartition(queue.topic, index)
            topic = self._image.topics_by_id.get(queue.topic_id)
            if topic is None or not 0 <= index < len(topic.partitions):
                raise QueueNotReady(f"{name} does not exist")
            raise QueueNotReady(f"{name} is led by node {topic.partitions[index].leader}")
        return hosted

    def here(self, queue: Queue, index: int) -> HostedQueue | None:
        """None where this node does not lead the partition, as far as the image says."""
        of_topic = self._hosted.get(queue.topic_id)
        hosted = None if of_topic is None else of_topic.get(index)
        if hosted is None or hosted.queue.queue_id != queue.queue_id or hosted.has_ended:
            return None
        return hosted

    def by_id(self, queue_id: OwnerId, index: int) -> HostedQueue:
        """As `find`, for another node, which may know of a queue before this one does."""
        queue = self._image.queues.by_id(queue_id)
        if queue is None:
            raise QueueNotReady("no such queue is known here")
        return self.find(queue, index)

    def erases(self, hosted: HostedQueue) -> bool:
        """Whether what is deleted of it leaves the log."""
        topic = self._image.topics_by_id.get(hosted.queue.topic_id)
        return topic is not None and self._settings.of_topic(topic).queue_delete == "erase"

    async def follow(self, records: Sequence[Fact]) -> None:
        """The image, or the partitions, may have changed: host what is led here, let go of the rest. Without records all is looked at."""
        for topic_id in self._touched(records):
            await self._follow(topic_id)
            self._tell_changed()  # it may be led by somebody else, which those want to know who wait for it here

    async def run(self) -> None:
        """Load what has to be read."""
        while True:
            now_ms = self._clock.monotonic_ms()
            due = [hosted for hosted, due_ms in self._to_load.items() if due_ms <= now_ms]
            if due:
                await asyncio.gather(*map(self._load, due[:QUEUE_LOADS_TOGETHER]))
            else:
                due_ms = min(self._to_load.values(), default=None)
                await self._wake.wait(None if due_ms is None else due_ms - now_ms)

    def ship_with(self, elsewhere: "Callable[[NodeId, Shipment], Coroutine[Any, Any, Arrived]]") -> None:
        """From now on dead letters go to leaders on other nodes as well."""
        self._ship_elsewhere = elsewhere

    def on_clock_moved(self) -> None:
        for hosted in self:
            hosted.on_clock_moved()

    async def write_down(self, *, whole: bool) -> None:
        """The node stops, and others are to lead: nothing is in memory alone from here on. Returns when what was is committed, or cannot be."""
        for hosted in self:
            hosted.write_down(whole=whole)
        for committed in [hosted.committed(QUEUE_WRITE_DOWN_MS_MAX) for hosted in self]:
            if committed is not None:
                with suppress(RopewalkError):  # somebody else leads by now, or nobody is in sync
                    await committed

    def stop(self) -> None:
        """Send everyone away; call after `run` has been cancelled."""
        self._is_stopped = True
        for hosted in self:
            hosted.end(QueueNotReady(f"{hosted.partition.name}: the node is shutting down"))
        self._tell_changed()

    def tell_when_changed(self, waiting: "asyncio.Future[Any]") -> None:
        """Done, with None, when a queue is served here that was not, or no longer is."""
        self._awaiting = [each for each in self._awaiting if not each.done()]
        self._awaiting.append(waiting)

    async def _ship(self, shipment: Shipment) -> Arrived:
        topic = self._image.topics_by_id.get(shipment.topic_id)
        leader = None if topic is None else leader_of(topic, shipment.partition)
        if leader is None:
            raise QueueNotReady("nobody leads the target of dead letters at the moment")
        if (
            self._partitions.led(shipment.topic_id, shipment.partition) is None
            and self._ship_elsewhere is not None
        ):
            return await self._ship_elsewhere(leader, shipment)
        return await self.arrivals.take(shipment)

    def _tell_changed(self) -> None:
        awaiting, self._awaiting = self._awaiting, []
        for each in awaiting:
            if not each.done():
                each.set_result(None)

    def _touched(self, records: Sequence[Fact]) -> Iterable[TopicId]:
        touched: dict[TopicId, None] = {}
        queues = self._image.queues
        for record in records:
            match record:
                case (
                    PartitionCreated()
                    | PartitionChanged()
                    | TopicCreated()
                    | TopicChanged()
                    | TopicDeleted()
                    | TopicSettingsChanged()
                    | QueueCreated()
                ):
                    queue = queues.by_topic(record.topic_id)
                    if queue is not None or record.topic_id in self._hosted:
                        touched[record.topic_id] = None
                case QueueChanged():
                    queue = queues.by_id(record.queue_id)
                    if queue is not None:
                        touched[queue.topic_id] = None
                case MoveTaskStarted() | MoveTaskCancelling() | MoveTaskEnded():
                    source = queues.by_id(record.queue_id)
                    if source is not None:
                        touched[source.topic_id] = None
                    continue
                case QueueDeleted():
                    touched.update(dict.fromkeys(self._topics_of(record.queue_id)))
                    touched.update(dict.fromkeys(self._sources_of(record.name)))
                    continue
                case _:
                    return self._all_topics()
            if isinstance(record, TopicDeleted):  # and whatever queue it was
                touched.update(dict.fromkeys(self._bound_for(record.topic_id)))
            if queue is not None:  # where their dead letters go may have come, or grown
                touched.update(dict.fromkeys(self._sources_of(queue.name)))
        return touched if records else self._all_topics()

    def _all_topics(self) -> Iterable[TopicId]:
        return dict.fromkeys([*(queue.topic_id for queue in self._image.queues), *self._hosted])

    def _topics_of(self, queue_id: OwnerId) -> Iterator[TopicId]:
        for topic_id, hosted in self._hosted.items():
            if any(each.queue.queue_id == queue_id for each in hosted.values()):
                yield topic_id

    def _sources_of(self, name: str) -> Iterator[TopicId]:
        """The topics of queues whose dead letters go to the one of that name, or went there."""
        queues = self._image.queues
        for source_name in queues.sources_of(name):
            source = queues.get(source_name)
            if source is not None:
                yield source.topic_id

    def _bound_for(self, target_id: TopicId) -> Iterator[TopicId]:
        """The topics of queues here whose dead letters go to that topic."""
        for topic_id, hosted in self._hosted.items():
            targets = [each.settings.dead_letters for each in hosted.values()]
            if any(target is not None and target.topic_id == target_id for target in targets):
                yield topic_id

    async def _follow(self, topic_id: TopicId) -> None:
        queue = self._image.queues.by_topic(topic_id)
        topic = self._image.topics_by_id.get(topic_id)
        if queue is None or topic is None or self._is_stopped:
            self._let_go_of(topic_id, queue)
            return
        hosted = self._hosted.setdefault(topic_id, {})
        for index, each in list(hosted.items()):
            led = self._partitions.led(topic_id, index)
            if led is not each.partition or each.has_ended or each.queue.queue_id != queue.queue_id:
                self._end(hosted, index, is_gone=each.queue.queue_id != queue.queue_id)
        topic_settings = self._settings.of_topic(topic)
        for index in range(len(topic.partitions)):
            settings = settings_of(queue, index, self._image, topic_settings)
            partition = self._partitions.led(topic_id, index)
            if index in hosted:
                self._warn_of_lost_target(hosted[index], queue)
                hosted[index].change(queue, settings)
                self.tasks.look(hosted[index])
            elif partition is not None and not partition.has_ended:
                await self._host(queue, topic, index, partition)
        if not hosted:
            self._hosted.pop(topic_id, None)

    def _warn_of_lost_target(self, hosted: HostedQueue, queue: Queue) -> None:
        if hosted.settings.dead_letters is not None and lacks_target(queue, self._image):
            _log.warning(
                "the queue that dead letters go to is gone; messages stay, however often they are received in vain",
                partition=str(hosted.partition.name),
            )

    def _let_go_of(self, topic_id: TopicId, queue: Queue | None) -> None:
        hosted = self._hosted.pop(topic_id, {})
        for index in list(hosted):
            self._end(hosted, index, is_gone=queue is None)

    def _end(self, hosted: dict[int, HostedQueue], index: int, *, is_gone: bool) -> None:
        each = hosted.pop(index)
        self._to_load.pop(each, None)
        if is_gone:
            each.say_farewell()
        each.end(QueueNotReady(f"{each.partition.name} is not hosted here any more"))
        self._tell_changed()

    async def _host(self, queue: Queue, topic: Topic, index: int, partition: Partition) -> None:
        settings = settings_of(queue, index, self._image, self._settings.of_topic(topic))
        hosted = self._hosted[queue.topic_id][index] = HostedQueue(
            queue,
            settings,
            partition,
            time=self._time,
            pool=self._pool,
            room=self.room,
            commit_timeout_ms=self._commit_timeout_ms,
            on_thrown_away=self._load_again,
            on_producer_wanted=self.moves.provide,
        )
        self._load_at(hosted, self._clock.monotonic_ms())
        if partition.log.places.last_of(queue.queue_id) is None:
            await self._load(hosted)  # there is nothing to read, so it serves at once

    async def _load(self, hosted: HostedQueue) -> None:
        began_ms = self._clock.monotonic_ms()
        try:
            await hosted.load()
        except NodeStopping:
            self._to_load.pop(hosted, None)
        except RopewalkError as error:
            if hosted.partition.has_ended:  # deleted, or led elsewhere: `follow` lets go of it
                self._to_load.pop(hosted, None)
                return
            _log.error(
                "a queue's state cannot be read; what it holds is refused, and it is tried again",
                partition=str(hosted.partition.name),
                reason=str(error),
            )
            if hosted in self._to_load:
                self._load_again(hosted)
        else:
            self.load_count += 1
            self.load_ms += self._clock.monotonic_ms() - began_ms
            if self._to_load.pop(hosted, None) is not None:
                self.moves.begin(hosted)
                self.tasks.look(hosted)
                self._tell_changed()

    def _load_again(self, hosted: HostedQueue) -> None:
        self._load_at(hosted, self._clock.monotonic_ms() + QUEUE_REST_MS)

    def _load_at(self, hosted: HostedQueue, due_ms: float) -> None:
        self._to_load[hosted] = due_ms
        self._wake.ring()

    def _commit_timeout_ms(self) -> int:
        return self._settings.of_broker.offsets_commit_timeout_ms
