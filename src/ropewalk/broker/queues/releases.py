"""Answers that leave when the high watermark has passed what they depend on.

What a reader could get wrong
    A commit that is late is no failure: what was appended is in the log, and whoever asks next waits for it as well.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

from msgspec import Struct

from ropewalk.base.errors import RopewalkError, ShardUnavailable
from ropewalk.base.ids import Offset
from ropewalk.broker.partitions.partition import Partition

Due: TypeAlias = "list[tuple[asyncio.Future[Any], object]]"
"""Who is to be told what; an error is raised to them. What a command is answered with is between the core and whoever asks."""


class Releases:
    def __init__(self, partition: Partition, *, commit_timeout_ms: Callable[[], int]) -> None:
        self._partition = partition
        self._commit_timeout_ms = commit_timeout_ms
        self._latest: _Release | None = None

    def release(self, due: Due, end_offset: Offset) -> None:
        """Tell them when everything below `end_offset` is committed; at once, if it is."""
        if not due:
            return
        if self._latest is not None and self._latest.end_offset == end_offset:
            self._latest.due += due
            return
        if self._partition.has_ended:
            # Another node may lead and know more, though what this one knows is committed.
            refuse((answer for answer, _ in due), outcome_unknown(self._partition, "its partition has ended"))
            return
        committed = self._partition.expect(end_offset, self._commit_timeout_ms())
        if committed is None:
            tell(due)
            return
        self._latest = release = _Release(end_offset, due)
        committed.add_done_callback(partial(self._on_committed, release))

    def _on_committed(self, release: "_Release", committed: "asyncio.Future[None]") -> None:
        if self._latest is release:
            self._latest = None
        failure = committed.exception()
        if failure is None:
            tell(release.due)
        else:
            refuse((answer for answer, _ in release.due), outcome_unknown(self._partition, str(failure)))


class _Release(Struct):
    """Answers that wait for one place in the log."""

    end_offset: Offset
    due: "list[tuple[asyncio.Future[Any], object]]"


def tell(due: Due) -> None:
    for answer, reply in due:
        if isinstance(reply, RopewalkError):
            fail(answer, reply)
        elif not answer.done():
            answer.set_result(reply)


def refuse(answers: "Iterable[asyncio.Future[Any]]", reason: RopewalkError) -> None:
    for answer in answers:
        fail(answer, reason)


def fail(answer: "asyncio.Future[Any]", reason: RopewalkError) -> None:
    if not answer.done():
        answer.set_exception(reason)
        answer.exception()  # whoever asked may be gone with its connection, and asyncio would complain of that


def outcome_unknown(partition: Partition, reason: str) -> ShardUnavailable:
    return ShardUnavailable(f"{partition.name}: the outcome is not known: {reason}")
