"""A receive that waits at one partition of a queue or at several, for one client: the first that gives something is the answer.

What a reader could get wrong
    What comes after the answer, or after the client has gone, is released at once and not counted.
    That the client has gone is heard as long as the hold lasts, also while what was given is read from the disk.
"""

import asyncio
from collections.abc import Iterable
from functools import partial

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.broker.queues.asked_partition import AskedPartition
from ropewalk.broker.queues.hosted_queue import Asked
from ropewalk.queues.answers import Received
from ropewalk.queues.commands import Receive


class Taken(Struct, frozen=True):
    """What a partition has given."""

    end: AskedPartition
    received: Received


class LongPoll:
    """Satisfies `base.flow.Waiting`."""

    def __init__(self) -> None:
        self.taken: asyncio.Future[Taken | None] = asyncio.get_running_loop().create_future()
        """None: nothing came in time."""
        self._left: dict[AskedPartition, Asked[Received]] = {}
        self._failure: RopewalkError | None = None
        self.is_over = False
        """It is not to wait any longer."""
        self._is_abandoned = False

    def wait_at(self, partitions: Iterable[AskedPartition], command: Receive) -> None:
        """Raises what the only one of them refuses with; of several, one that refuses is passed over."""
        for end in partitions:
            try:
                asked = end.receive(command)
            except RopewalkError as error:
                self._failure = error
                continue
            self._left[end] = asked
            if asked.answer.done():
                self._on_answer(end, asked.answer)
            else:
                asked.answer.add_done_callback(partial(self._on_answer, end))
            if self.taken.done():
                return
        self._end_if_over()

    def has_gone(self) -> bool:
        """Nobody is there to be answered any more."""
        return self._is_abandoned

    def hurry(self) -> None:
        """The client sends no more. It may have gone, so it is answered with what there is."""
        self.is_over = True
        self._withdraw()
        if not self.taken.done():
            self.taken.set_result(None)

    def abandon(self) -> None:
        self._is_abandoned = True
        self.hurry()

    def _on_answer(self, end: AskedPartition, answer: "asyncio.Future[Received]") -> None:
        self._left.pop(end, None)
        failure = answer.exception()
        if isinstance(failure, RopewalkError):
            self._failure = failure
        elif failure is None and answer.result().messages:
            if self.taken.done():
                end.release(answer.result())
                return
            self.taken.set_result(Taken(end, answer.result()))
            self._withdraw()
        self._end_if_over()

    def _end_if_over(self) -> None:
        """All have answered, and with nothing."""
        if self._left or self.taken.done():
            return
        if self._failure is None:
            self.taken.set_result(None)
        else:
            self.taken.set_exception(self._failure)
            self.taken.exception()  # the client may have gone, and asyncio would complain of that

    def _withdraw(self) -> None:
        """Those that have answered, and wait for it to be committed, answer nevertheless: what they give is released then."""
        for end, asked in self._left.items():
            end.forget(asked.token)
        self._left = {}
