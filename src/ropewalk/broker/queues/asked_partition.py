"""What can be asked of one partition of a queue, wherever it is led."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.broker.queues.hosted_queue import Asked
from ropewalk.queues.answers import Done, Received
from ropewalk.queues.commands import Receive
from ropewalk.queues.messages import Delivered, Outgoing, Receipt, Seen, Sent, Totals
from ropewalk.queues.state import TaskShare


class AskedPartition(Protocol):
    """Everything may raise at once what it is refused with, or when it is awaited. All of it can be awaited where there is no task."""

    @property
    def is_serving(self) -> bool: ...

    @property
    def pending_bytes(self) -> int: ...

    @property
    def is_far(self) -> bool:
        """Whether an answer may be long in coming, since it comes from another node."""

    def send(self, messages: Sequence[Outgoing]) -> "asyncio.Future[list[Sent | RopewalkError]]": ...

    def delete(self, receipts: Sequence[Receipt]) -> "asyncio.Future[Done]": ...

    def change(self, changes: Sequence[tuple[Receipt, int]]) -> "asyncio.Future[Done]": ...

    def receive(self, command: Receive) -> Asked[Received]: ...

    def forget(self, token: int) -> None:
        """Whoever asked has gone, and is not answered."""

    def release(self, received: Received) -> None:
        """It was given to somebody who has gone: visible at once, and not counted."""

    def at_hand(self, received: Received) -> list[Delivered] | None:
        """What `deliver` would hand out, if that waits for nothing; else None."""

    def deliver(self, received: Received) -> Awaitable[list[Delivered]]: ...

    def check_may_purge(self) -> Awaitable[None]:
        """Raises `PurgeInProgress` where the first partition remembers a purge of the last minute. Nothing is done."""

    def purge(self) -> Awaitable[None]: ...

    def rewind(self, to_ms: int) -> Awaitable[None]: ...

    def totals(self) -> Awaitable[Totals]: ...

    def share(self) -> Awaitable[TaskShare | None]:
        """Of the latest move task that came there; None: none did."""

    def peek(self, count_max: int) -> Awaitable[list[Seen]]: ...

    def look_at(self, offset: int) -> Awaitable[list[Seen]]:
        """One, or none."""
