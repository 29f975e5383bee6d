"""Wait for several calls at once; the first failure cancels the others and is raised as it is."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TypeVar

from ropewalk.base.errors import RopewalkError

T = TypeVar("T")


async def together(calls: Sequence[Coroutine[object, object, T]]) -> list[T]:
    """The results, in the order of the calls. One call alone costs no task."""
    if len(calls) == 1:
        return [await calls[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as failures:
        # One leader's refusal is what the caller asked about; that others failed too adds nothing to act on.
        refused = failures.subgroup(RopewalkError)
        if refused is None:
            raise
        raise _first(refused) from None
    return [task.result() for task in tasks]


def _first(failures: BaseExceptionGroup[RopewalkError]) -> RopewalkError:
    failure = failures.exceptions[0]
    return _first(failure) if isinstance(failure, BaseExceptionGroup) else failure
