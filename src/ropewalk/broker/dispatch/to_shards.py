"""Commands for shards of one kind, wherever these are hosted: asked here, or of the node that hosts them.

What a reader could get wrong
    What is asked of another node is gathered, one request at a time. An answer that does not come is an unknown outcome: what that node
    has done is done.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from ropewalk.base.errors import NodeStopping, RopewalkError, ShardUnavailable
from ropewalk.base.ids import NodeId
from ropewalk.broker.dispatch.dispatch import Dispatch
from ropewalk.broker.dispatch.gathered_calls import GatheredCalls
from ropewalk.broker.hosting.shard import Asked
from ropewalk.broker.peers.calls.call import Call
from ropewalk.runtime.errands import Errands

A = TypeVar("A")
C = TypeVar("C")
C_contra = TypeVar("C_contra", contravariant=True)


class Hosting(Protocol[C_contra, A]):
    """Who hosts the shards of a kind, and the way to those that are hosted here."""

    def leader(self, key: str, /) -> NodeId:
        """Raises a shard's error where nobody does at present."""

    def ask(self, key: str, command: C_contra, /) -> Asked[A]: ...


class _Question(Struct, Generic[C, A], frozen=True):
    command: C
    answer: "asyncio.Future[A]"


class ToShards(Generic[C, A]):
    def __init__(
        self,
        hosting: Hosting[C, A],
        call: Callable[[Sequence[C]], Call[list[A]]],
        dispatch: Dispatch,
        errands: Errands,
        *,
        timeout_ms: float,
        items_max: int,
    ) -> None:
        """`call` puts commands of this sort to another node, which answers each of them."""
        self._hosting = hosting
        self._call = call
        self._dispatch = dispatch
        self._timeout_ms = timeout_ms
        self._calls: GatheredCalls[_Question[C, A]] = GatheredCalls(
            self._send, errands.begin, items_max=items_max
        )

    def to_shard(self, key: str, command: C) -> "asyncio.Future[A]":
        """May be awaited where there is no task, as by a handler. Raises a shard's error where nobody hosts it."""
        host = self._hosting.leader(key)
        if host == self._dispatch.node_id:
            return self._hosting.ask(key, command).answer
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_forget)
        self._calls.add(host, _Question(command, answer))
        return answer

    async def _send(self, node_id: NodeId, questions: "list[_Question[C, A]]") -> None:
        try:
            call = self._call([each.command for each in questions])
            answers = await self._dispatch.over_link(node_id, call, timeout_ms=self._timeout_ms)
        except RopewalkError as error:
            _refuse(
                questions, ShardUnavailable(f"node {node_id}, which hosts the shard, was not heard: {error}")
            )
        except asyncio.CancelledError:
            _refuse(questions, NodeStopping("the node is shutting down"))
            raise
        else:
            for question, answer in zip(questions, answers, strict=True):
                if not question.answer.done():
                    question.answer.set_result(answer)


def _refuse(questions: "Sequence[_Question[C, A]]", reason: RopewalkError) -> None:
    for question in questions:
        if not question.answer.done():
            question.answer.set_exception(reason)


def _forget(answer: "asyncio.Future[A]") -> None:
    """A refusal that nobody came for, since its client has gone, is not worth asyncio's complaint."""
    if not answer.cancelled():
        answer.exception()
