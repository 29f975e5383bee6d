"""What the door needs of a node: the facts about queues, the way to change them, and the way to the leaders of their partitions.

What a reader could get wrong
    Everything here may be awaited where there is no task (`runtime/steps.py`): it waits for futures and nothing else.
    What is refused for one message of several is in the answer; what is refused for all is raised. Both are `RopewalkError`s.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.base.flow import Waiting
from ropewalk.base.ids import OwnerId
from ropewalk.broker.cluster.mandate import Mandate
from ropewalk.metadata.queues import MoveTask, Queue
from ropewalk.queues.messages import Delivered, Outgoing, Receipt, Seen, Sent, Totals


class Facts(Protocol):
    """The queues there are."""

    def get(self, name: str, /) -> Queue | None: ...

    def names(self, prefix: str = "") -> Sequence[str]:
        """In their order."""

    def sources_of(self, name: str, /) -> Sequence[str]:
        """The names of the queues whose dead letters go there, in their order."""

    def moves_of(self, queue_id: OwnerId, /) -> Sequence[MoveTask]:
        """Move tasks of a dead-letter queue, the latest last."""


class Changes(Protocol):
    """Decided by the controller, wherever that is; done when this node sees it. `mandate` says whose wish it is."""

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
        mandate: Mandate | None,
    ) -> Queue:
        """Answers with the one there is, where its attributes agree. Raises `QueueExists` where they do not (it names the attribute), `QueueDeletedRecently`, `InvalidQueue`.

        With `topic` a topic that exists is adopted.
        """

    async def change(
        self, name: str, attributes: Mapping[str, str | None], *, mandate: Mandate | None
    ) -> None:
        """None takes an attribute away. Others stay as they are. Raises `UnknownQueue`, `InvalidQueue`."""

    async def tag(self, name: str, tags: Mapping[str, str | None], *, mandate: Mandate | None) -> None: ...

    async def delete(self, name: str, *, mandate: Mandate | None) -> None: ...

    async def start_move_task(
        self,
        name: str,
        *,
        target: str | None = None,
        messages_per_second_max: int | None = None,
        to_move_count: int = 0,
        mandate: Mandate | None,
    ) -> MoveTask:
        """Without a target each message goes to where it came from. Raises `UnknownQueue`, `InvalidQueue`, `MoveTaskRunning`."""

    async def cancel_move_task(self, name: str, task_id: bytes, *, mandate: Mandate | None) -> None:
        """Raises `UnknownQueue`, `UnknownMoveTask`, `MoveTaskOver`."""


class Messages(Protocol):
    """To the leaders of a queue's partitions, and back."""

    async def send(self, queue: Queue, messages: Sequence[Outgoing]) -> Sequence[Sent | RopewalkError]:
        """Of a FIFO queue those of one group keep their order."""

    async def receive(
        self,
        queue: Queue,
        *,
        count_max: int,
        visibility_ms: int,
        wait_ms: int,
        request_id: bytes = b"",
        hold: "Hold",
    ) -> Sequence[Delivered]:
        """Empty where nothing came in time. What was taken for a client that has gone meanwhile is released."""

    async def delete(self, queue: Queue, receipts: Sequence[Receipt]) -> Sequence[RopewalkError | None]: ...

    async def change_visibility(
        self, queue: Queue, changes: Sequence[tuple[Receipt, int]]
    ) -> Sequence[RopewalkError | None]:
        """Each with the new visibility in milliseconds."""

    async def purge(self, queue: Queue) -> None:
        """Raises `PurgeInProgress` within a minute of the last."""

    async def rewind(self, queue: Queue, *, to_ms: int) -> None: ...

    async def totals(self, queue: Queue) -> Totals: ...

    async def moved_count(self, queue: Queue, task_id: bytes) -> int:
        """For a move task that has not ended, as far as those can be asked who move."""

    async def peek(self, queue: Queue, *, count_max: int) -> Sequence[Seen]:
        """The first ones that are not settled."""

    async def look_at(self, queue: Queue, partition: int, offset: int) -> Seen | None:
        """One message, whatever has become of it; None where it is no longer in the log."""


class Hold(Protocol):
    """Of `http1.message.Visitor`: tells whoever waits when the client goes."""

    def begin_wait(self, waiting: Waiting) -> None: ...

    def end_wait(self, waiting: Waiting) -> None: ...


class Engine(Protocol):
    @property
    def facts(self) -> Facts: ...

    @property
    def changes(self) -> Changes: ...

    @property
    def messages(self) -> Messages: ...
