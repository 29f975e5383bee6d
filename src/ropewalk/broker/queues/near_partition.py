"""A partition of a queue that is led here, asked in the same words as one that another node leads (`broker/dispatch/far_queues.py`)."""

import asyncio
from collections.abc import Sequence

from ropewalk.base.errors import PurgeInProgress, RopewalkError
from ropewalk.base.ids import Offset
from ropewalk.base.limits import QUEUE_PURGE_REST_MS
from ropewalk.base.ports import Pool
from ropewalk.broker.queues.figures import totals_of
from ropewalk.broker.queues.hosted_queue import Asked, HostedQueue
from ropewalk.broker.queues.looking import look_at, peek
from ropewalk.broker.queues.tasks import share_of
from ropewalk.queues.answers import Done, Received
from ropewalk.queues.commands import ChangeVisibility, Delete, Handle, Receive, Rewind, VisibilityChange
from ropewalk.queues.messages import Delivered, Outgoing, Receipt, Seen, Sent, Totals
from ropewalk.queues.state import TaskShare


class NearPartition:
    __slots__ = ("_hosted", "_pool")

    def __init__(self, hosted: HostedQueue, pool: Pool) -> None:
        self._hosted = hosted
        self._pool = pool

    @property
    def is_serving(self) -> bool:
        return self._hosted.is_serving

    @property
    def pending_bytes(self) -> int:
        return self._hosted.pending_bytes

    @property
    def is_far(self) -> bool:
        return False

    def send(self, messages: Sequence[Outgoing]) -> "asyncio.Future[list[Sent | RopewalkError]]":
        return self._hosted.send(messages)

    def delete(self, receipts: Sequence[Receipt]) -> "asyncio.Future[Done]":
        return self._hosted.ask(
            Delete(tuple([Handle(each.offset, each.attempt) for each in receipts]))
        ).answer

    def change(self, changes: Sequence[tuple[Receipt, int]]) -> "asyncio.Future[Done]":
        asked = [VisibilityChange(_handle(receipt), visibility_ms) for receipt, visibility_ms in changes]
        return self._hosted.ask(ChangeVisibility(tuple(asked))).answer

    def receive(self, command: Receive) -> Asked[Received]:
        return self._hosted.receive(command)

    def forget(self, token: int) -> None:
        self._hosted.forget(token)

    def release(self, received: Received) -> None:
        self._hosted.release(received)

    def at_hand(self, received: Received) -> list[Delivered] | None:
        return self._hosted.at_hand(received)

    async def deliver(self, received: Received) -> list[Delivered]:
        return await self._hosted.deliver(received)

    async def check_may_purge(self) -> None:
        """The log of the first partition remembers when it was purged, for all of them and whoever leads."""
        hosted = self._hosted
        since_ms = hosted.now_ms() - hosted.serving().state.purged_at_ms
        if hosted.index == 0 and 0 <= since_ms < QUEUE_PURGE_REST_MS:
            raise PurgeInProgress(f"queue {hosted.queue.name} was purged within the last minute")

    async def purge(self) -> None:
        await self.check_may_purge()
        await self._hosted.purge().answer

    async def rewind(self, to_ms: int) -> None:
        """As if nothing that was sent since had been received or deleted, as far as it is in the log; what was sent before is gone."""
        partition = self._hosted.partition
        limit_offset = partition.last_stable_offset

        def find() -> int:
            found = partition.log.offset_for_timestamp(to_ms, limit_offset=limit_offset)
            return limit_offset if found is None else found.offset

        offset = await self._pool.run(find)
        await self._hosted.ask(Rewind(max(offset, partition.log.start_offset))).answer

    async def totals(self) -> Totals:
        return totals_of([self._hosted])

    async def share(self) -> TaskShare | None:
        return share_of(self._hosted)

    async def peek(self, count_max: int) -> list[Seen]:
        return await peek(self._hosted, self._pool, count_max=count_max)

    async def look_at(self, offset: int) -> list[Seen]:
        """One, or none."""
        seen = await look_at(self._hosted, self._pool, Offset(offset))
        return [] if seen is None else [seen]


def _handle(receipt: Receipt) -> Handle:
    return Handle(receipt.offset, receipt.attempt)
