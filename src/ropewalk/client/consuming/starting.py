"""Where reading begins: at the group's offset, or where the settings say, if there is none or it is gone.

What a reader could get wrong
    Looking up happens in the background, one round at a time; the partitions are read as soon as they have a position.
    `auto_offset_reset=none` is for those who would rather stop than read from a place they did not choose: `NoOffset`, and
    `HistoryChanged` where the log was cut below what they have read. All others go back to where the two histories part, and
    a warning says so.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.group_offsets import Committed
from ropewalk.client.calls.list_offsets import OffsetQuery
from ropewalk.client.consuming.assignment import Assignment, Held
from ropewalk.client.consuming.histories import Agreement
from ropewalk.client.consuming.settings import ConsumerSettings
from ropewalk.client.errors import HistoryChanged, NoOffset, RemoteError, is_retriable
from ropewalk.runtime.tasks import Supervisor
from ropewalk.wire.error_code import ErrorCode

CommittedOf = Callable[[Iterable[TopicPartition], float], Awaitable[dict[TopicPartition, Committed]]]

_LOG: Final = logging.getLogger("ropewalk.client")

_OF_MEMBERSHIP: Final = frozenset(
    {ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID}
)

_RESETS: Final = {"earliest": OffsetQuery.EARLIEST, "latest": OffsetQuery.LATEST}


class Positions:
    def __init__(
        self,
        client: Client,
        assignment: Assignment,
        settings: ConsumerSettings,
        tasks: Supervisor,
        on_news: Callable[[], None],
        committed_of: CommittedOf,
    ) -> None:
        self._client = client
        self._session = client.session
        self._assignment = assignment
        self._reset = _RESETS.get(settings.auto_offset_reset)
        self._settings = settings
        self._tasks = tasks
        self._on_news = on_news
        self._committed_of = committed_of
        self._is_looking = False
        self._round = 0
        self._error: RopewalkError | None = None

    def look_up_missing(self) -> None:
        """Begin, unless it has begun, to find positions for the partitions that have none."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        missing = [] if self._is_looking else self._assignment.without_position()
        if missing:
            self._is_looking = True
            self._round += 1
            versions = [(held, held.version) for held in missing]
            self._tasks.start(f"positions, round {self._round}", self._look_up(versions))

    def on_out_of_range(self, held: Held) -> None:
        """The offset it is at is no longer there, or not yet."""
        if self._reset is None:
            self._error = NoOffset(
                f"{held.partition} has no offset {held.position}, and auto_offset_reset is none"
            )
        held.lose_position(self._reset)

    def on_other_history(self, held: Held, agreement: Agreement, reason: str) -> RopewalkError | None:
        """The log is not the one that was read: go back to where it is the same, unless the application wants to decide."""
        assert held.position is not None, "what has no position was not read"
        changed = HistoryChanged(held.partition, held.position, agreement.end_offset, reason)
        if self._reset is None:
            return changed
        _LOG.warning("%s; reading goes on from there", changed)
        if agreement.leader_epoch >= 0:
            held.go_back(agreement.end_offset, agreement.leader_epoch)
        else:
            held.seek(agreement.end_offset)
        return None

    async def _look_up(self, wanted: list[tuple[Held, int]]) -> None:
        try:
            await self._find(wanted)
            if any(held.position is None and held.version == version for held, version in wanted):
                # Nobody leads it at the moment: without a pause we would ask in a circle.
                await asyncio.sleep(self._settings.retry_backoff_ms / 1000)
        except RopewalkError as error:
            if not is_retriable(error) and not _is_of_membership(error):
                self._error = error
            await asyncio.sleep(self._settings.retry_backoff_ms / 1000)
        finally:
            self._is_looking = False
        self._on_news()

    async def _find(self, wanted: list[tuple[Held, int]]) -> None:
        deadline_ms = self._session.deadline_ms(self._settings.request_timeout_ms)
        by_group = [held.partition for held, _ in wanted if held.reset_to is None]
        committed = await self._committed_of(by_group, deadline_ms) if by_group else {}
        queries: dict[TopicPartition, int] = {}
        for held, _ in wanted:
            if held.reset_to is not None:
                queries[held.partition] = held.reset_to
            elif held.partition not in committed:
                if self._reset is None:
                    raise NoOffset(f"{held.partition} has no committed offset, and auto_offset_reset is none")
                queries[held.partition] = self._reset
        listed = (
            await self._client.list_known_offsets(
                queries, isolation=self._settings.isolation, deadline_ms=deadline_ms
            )
            if queries
            else {}
        )
        for held, version in wanted:
            if held.version != version:
                continue  # the application has set a position meanwhile
            if held.partition in listed:
                held.seek(listed[held.partition].offset)
            elif held.partition in committed and held.partition not in queries:
                found = committed[held.partition]
                held.seek(found.offset, found.leader_epoch)


def _is_of_membership(error: RopewalkError) -> bool:
    """The member has gone on to another epoch, or is none any more: it will hear so itself, and the partitions with it."""
    return isinstance(error, RemoteError) and error.code in _OF_MEMBERSHIP
