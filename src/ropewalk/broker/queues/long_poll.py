"""A receive that waits at one partition of a queue or at several, for one client: the first that gives something is the answer.

What a reader could get wrong
    What comes after the answer, or after the client has gone, is released at once and not counted.
    That the client has gone is heard as long as the hold lasts, also while what was given is read from the disk.
    A partition whose leader is not there, or no longer leads, ends nothing: whoever drives the poll asks again, at whoever leads by then.
"""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import QueueNotReady, RopewalkError, ShardUnavailable
from ropewalk.broker.queues.asked_partition import AskedPartition
from ropewalk.broker.queues.hosted_queue import Asked
from ropewalk.queues.answers import Received
from ropewalk.queues.commands import Receive

LEADERLESS: Final = (QueueNotReady, ShardUnavailable)
"""Somebody else may lead by now, or soon."""


class Taken(Struct, frozen=True):
    """What a partition has given."""

    end: AskedPartition
    received: Received


class LongPoll:
    """Satisfies `base.flow.Waiting`."""

    def __init__(self) -> None:
        self.taken: asyncio.Future[Taken | None] = asyncio.get_running_loop().create_future()
        """None: nothing came in time."""
        self.leaderless: dict[int, RopewalkError] = {}
        """Partitions that are to be asked again, and what was heard of them."""
        self._left: dict[AskedPartition, Asked[Received]] = {}
        self._failure: RopewalkError | None = None
        self._stirred: asyncio.Future[None] | None = None
        self._heeds_refusals = True
        self._is_asking = False
        self.is_over = False
        """It is not to wait any longer."""
        self._is_abandoned = False

    def wait_at(self, ends: Iterable[tuple[int, AskedPartition]], command: Receive) -> None:
        """At each partition of those numbers. What one of them refuses with is told when nobody is left who could give something."""
        self._is_asking = True
        for index, end in ends:
            try:
                asked = end.receive(command)
            except RopewalkError as error:
                self.refuse(index, error)
                continue
            self._left[end] = asked
            if asked.answer.done():
                self._on_answer(index, end, asked.answer)
            else:
                asked.answer.add_done_callback(partial(self._on_answer, index, end))
            if self.taken.done():
                break
        self._is_asking = False
        self._end_if_over()

    def refuse(self, index: int, error: RopewalkError) -> None:
        """The partition of that number gives nothing: for now, if the error says so."""
        if isinstance(error, LEADERLESS):
            self.leaderless[index] = error
        else:
            self._failure = error

    def give_up(self) -> None:
        """There is no time to ask anybody again."""
        for error in self.leaderless.values():
            self._failure = error
        self.leaderless = {}
        self._end_if_over()

    def end_unheard(self) -> None:
        """Somebody has not answered in time, so nobody knows whether there is anything."""
        self._withdraw()
        if not self.taken.done():
            self._failure = ShardUnavailable("a leader of the queue did not answer in time")
            self.leaderless = {}
            self._end_if_over()

    def stirred(self, *, by_refusals: bool = True) -> "asyncio.Future[None]":
        """Done when it has ended, or when a partition is found to be leaderless unless that is not `by_refusals`. There is one at a time."""
        self._stirred = asyncio.get_running_loop().create_future()
        self._heeds_refusals = by_refusals
        if self.taken.done():
            self._stir()
        return self._stirred

    def has_gone(self) -> bool:
        """Nobody is there to be answered any more."""
        return self._is_abandoned

    def hurry(self) -> None:
        """The client sends no more. It may have gone, so it is answered with what there is."""
        self.is_over = True
        self._withdraw()
        if not self.taken.done():
            self.taken.set_result(None)
        self._stir()

    def abandon(self) -> None:
        self._is_abandoned = True
        self.hurry()

    def _on_answer(self, index: int, end: AskedPartition, answer: "asyncio.Future[Received]") -> None:
        is_awaited = self._left.pop(end, None) is not None
        failure = answer.exception()
        if isinstance(failure, RopewalkError):
            if is_awaited:
                self.refuse(index, failure)
        elif failure is None and answer.result().messages:
            if self.taken.done():
                end.release(answer.result())
                return
            self.taken.set_result(Taken(end, answer.result()))
            self._withdraw()
        self._end_if_over()

    def _end_if_over(self) -> None:
        """Somebody has given something, or all have answered with nothing."""
        if self.taken.done() or (self.leaderless and self._heeds_refusals):
            self._stir()
        if self.taken.done() or self.leaderless or self._left or self._is_asking:
            return
        if self._failure is None:
            self.taken.set_result(None)
        else:
            self.taken.set_exception(self._failure)
            self.taken.exception()  # the client may have gone, and asyncio would complain of that
        self._stir()

    def _stir(self) -> None:
        if self._stirred is not None and not self._stirred.done():
            self._stirred.set_result(None)

    def _withdraw(self) -> None:
        """Those that have answered, and wait for it to be committed, answer nevertheless: what they give is released then."""
        for end, asked in self._left.items():
            end.forget(asked.token)
        self._left = {}
