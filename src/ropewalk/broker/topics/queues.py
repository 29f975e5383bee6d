"""Making, changing, tagging and deleting queues, as any door may ask for it: decided by the controller, wherever that is.

What a reader could get wrong
    A change is answered when the image of this node has it and the node has followed; a queue that was made has leaders by then.
    `ControllerUnavailable` and `QueueNotReady` mean that nothing was changed; `TimedOut` that nobody knows. Every change here may be
    asked for again: it comes to the same.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from ropewalk.base.errors import TimedOut
from ropewalk.base.limits import MOVE_TASK_ID_BYTES
from ropewalk.base.ports import Clock, Rng
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.forwarding import Forwarding
from ropewalk.broker.cluster.mandate import Mandate
from ropewalk.broker.peers.calls.change_queue import change_queue
from ropewalk.broker.peers.calls.forward import ITSELF
from ropewalk.controller.queues import (
    CancelMoveTask,
    ChangeQueue,
    CreateQueue,
    DeleteQueue,
    EndMoveTask,
    QueueCommand,
    StartMoveTask,
    check_queues_level,
    decide_queue,
)
from ropewalk.metadata.image import Image, Topic
from ropewalk.metadata.queues import MoveTask, Queue
from ropewalk.metadata.records import MetadataRecord
from ropewalk.metadata.settings.applied import AppliedSettings


class QueueChanges:
    def __init__(
        self,
        cluster: Cluster,
        settings: AppliedSettings,
        forwarding: Forwarding | None,
        find_ends: Callable[[Topic], Awaitable[tuple[int, ...]]],
        rng: Rng,
        clock: Clock,
    ) -> None:
        """Without `forwarding` on a node that is alone. `find_ends` asks the leaders of a topic where its partitions end."""
        self._cluster = cluster
        self._settings = settings
        self._forwarding = forwarding
        self._find_ends = find_ends
        self._rng = rng
        self._clock = clock

    async def create(
        self,
        name: str,
        *,
        attributes: Mapping[str, str],
        tags: Mapping[str, str],
        owner: str | None,
        partition_count: int = 1,
        topic: str | None = None,
        from_latest: bool = False,
        mandate: Mandate | None = None,
    ) -> Queue:
        """The queue there is, where the attributes that are named agree. Raises `QueueExists` where one does not,
        `QueueDeletedRecently`, `InvalidQueue`. With `topic` a topic that exists is adopted, all of it or from its end on."""
        image = self._cluster.image
        adopted = None if topic is None or not from_latest else image.topics.get(topic)
        starts: tuple[int, ...] = ()
        if adopted is not None and image.queues.get(name) is None:
            starts = await self._find_ends(adopted)
        await self._change(
            CreateQueue(
                name=name,
                attributes=attributes,
                tags=tags,
                owner=owner,
                partition_count=partition_count,
                topic=topic,
                starts=starts,
            ),
            mandate,
        )
        queue = image.queues.get(name)
        if queue is None:
            raise TimedOut(
                f"{name} was made, and this node has not heard of it yet, or of its deletion already"
            )
        return queue

    async def change(
        self, name: str, attributes: Mapping[str, str | None], *, mandate: Mandate | None = None
    ) -> None:
        """None takes an attribute away. Others stay as they are. Raises `UnknownQueue`, `InvalidQueue`."""
        await self._change(ChangeQueue(name=name, attributes=attributes), mandate)

    async def tag(self, name: str, tags: Mapping[str, str | None], *, mandate: Mandate | None = None) -> None:
        """As `change`, for tags."""
        await self._change(ChangeQueue(name=name, tags=tags), mandate)

    async def delete(self, name: str, *, mandate: Mandate | None = None) -> None:
        """And the topic, unless it was adopted. Raises `UnknownQueue`."""
        await self._change(DeleteQueue(name), mandate)

    async def start_move_task(
        self,
        name: str,
        *,
        target: str | None = None,
        messages_per_second_max: int | None = None,
        to_move_count: int = 0,
        mandate: Mandate | None = None,
    ) -> MoveTask:
        """Of a dead-letter queue, to `target` or to where each message came from. Whoever leads its partitions sees the task in the
        image and moves. Raises `UnknownQueue`, `InvalidQueue`, `MoveTaskRunning`."""
        task_id = self._rng.randbytes(MOVE_TASK_ID_BYTES)
        await self._change(
            StartMoveTask(
                name=name,
                task_id=task_id,
                target=target,
                messages_per_second_max=messages_per_second_max,
                to_move_count=to_move_count,
            ),
            mandate,
        )
        queues = self._cluster.image.queues
        queue = queues.get(name)
        for task in queues.moves_of(queue.queue_id) if queue is not None else ():
            if task.task_id == task_id:
                return task
        raise TimedOut(f"moving messages of {name} was begun, and this node has not heard of it yet")

    async def cancel_move_task(self, name: str, task_id: bytes, *, mandate: Mandate | None = None) -> None:
        """It ends when those have heard so who move. Raises `UnknownQueue`, `UnknownMoveTask`, `MoveTaskOver`."""
        await self._change(CancelMoveTask(name=name, task_id=task_id), mandate)

    async def end_move_task(
        self, name: str, task_id: bytes, *, status: str, moved_count: int, reason: str | None = None
    ) -> None:
        """COMPLETED, CANCELLED or FAILED; what has ended stays as it ended. Raises `UnknownQueue`, `UnknownMoveTask`."""
        await self._change(
            EndMoveTask(name=name, task_id=task_id, status=status, moved_count=moved_count, reason=reason),
            None,
        )

    async def decide(self, command: QueueCommand, mandate: Mandate | None) -> int:
        """For other nodes: where the metadata ends that has it. Raises `NotController` where this node does not decide."""

        def decide(image: Image) -> Sequence[MetadataRecord]:
            return decide_queue(image, command, self._settings, self._rng, now_ms=self._clock.now_ms())

        await self._cluster.propose(decide, mandate)
        return self._cluster.image.settled_offset

    async def _change(self, command: QueueCommand, mandate: Mandate | None) -> None:
        check_queues_level(self._cluster.image)  # others would not know what is asked of them
        if self._forwarding is not None and self._forwarding.is_needed():
            await self._forwarding.forward(
                change_queue(command, ITSELF if mandate is None else mandate.sender, _operation(mandate))
            )
        else:
            await self.decide(command, mandate)


def _operation(mandate: Mandate | None) -> str:
    return "" if mandate is None else mandate.operation
