"""Who may do what at the SQS door: asked before an action is carried out, and again before messages leave.

What a reader could get wrong
    A caller is shown only queues that it may describe, by a desk of its own: to every handler the others are not there, whatever leads to them.
    Without signatures nobody has proved a name: whatever key a request names, rules about `User:ANONYMOUS` and everybody are what counts.
    A receive that waits ends when its caller loses the right, and what was about to be given to it is released.
    Where nothing is decided by rules nothing is asked, and the desk is the same for all.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct, structs

from ropewalk.base.flow import Waiting
from ropewalk.base.ids import OwnerId
from ropewalk.broker.access import Access, asker_of
from ropewalk.metadata.queues import MoveTask, Queue
from ropewalk.security.access import Asker, Operation, ResourceType
from ropewalk.sqs.actions import Action
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.engine import Changes, Facts, Hold, Messages
from ropewalk.sqs.errors import ACCESS_DENIED, SqsRefusal
from ropewalk.sqs.needs import Creation, Listing, OnQueue
from ropewalk.sqs.shapes import Input, Output

Q = TypeVar("Q")
R = TypeVar("R")

GROUP_PREFIX: Final = "sqs."
"""Of the group that those need a right on who receive: with the queue's name behind it."""

_SHOWN_NAME_CHARACTERS_MAX: Final = 80


class Admission:
    def __init__(self, desk: Desk, access: Access) -> None:
        self._desk = desk
        self._access = access

    @property
    def is_on(self) -> bool:
        """Whether rules decide."""
        return self._access.is_on

    def carry_out(self, action: Action, asked: Input, caller: Caller) -> Coroutine[Any, None, Output]:
        if not self._access.is_on:
            return action.handle(asked, self._desk, caller)
        return self._decided(action, asked, caller)

    async def _decided(self, action: Action, asked: Input, caller: Caller) -> Output:
        needs = action.needs
        visit = _Visit(action.name, self._desk, self._access, caller)
        match needs:
            case OnQueue(name_of=name_of):
                return await visit.on_queue(needs, name_of(asked), asked, action.handle)
            case Creation():
                visit.check_creation(needs, asked)
            case Listing():
                pass
        return await action.handle(asked, visit.desk, caller)

    async def look(
        self,
        needs: OnQueue,
        name: str,
        caller: Caller,
        handle: Callable[[None, Desk, Caller], Coroutine[Any, None, R]],
    ) -> R:
        """What is no action, and shows messages of a queue all the same."""
        if not self._access.is_on:
            return await handle(None, self._desk, caller)
        return await _Visit("ReceiveMessage", self._desk, self._access, caller).on_queue(
            needs, name, None, handle
        )


class _Visit:
    """One request of one caller, where rules decide."""

    def __init__(self, action: str, desk: Desk, access: Access, caller: Caller) -> None:
        self._action = action
        self._facts = desk.engine.facts
        self._access = access
        self._caller = caller
        self._asker: Asker = asker_of(caller.identity, caller.host)
        self._rules = desk.rules
        self.desk: Desk = _OwnDesk(desk, self)

    def allows(self, operation: Operation, topic: str) -> bool:
        return self._access.allows(self._asker, operation, ResourceType.TOPIC, topic)

    def denied(self, name: str) -> SqsRefusal:
        """In the words of AWS."""
        self._access.on_denied(self._asker, f"sqs:{self._action}", ResourceType.TOPIC, name)
        caller, account = self._caller, self.desk.account
        arn = self.desk.arn(caller, name[:_SHOWN_NAME_CHARACTERS_MAX])
        who = f"arn:aws:iam::{account}:user/{caller.identity.name}"
        what = f"sqs:{self._action.lower()}"
        return SqsRefusal(
            ACCESS_DENIED, f"User: {who} is not authorized to perform: {what} on resource: {arn}"
        )

    async def on_queue(
        self,
        needs: OnQueue,
        name: str | None,
        asked: Q,
        handle: Callable[[Q, Desk, Caller], Coroutine[Any, None, R]],
    ) -> R:
        queue = None if name is None else self.desk.engine.facts.get(name)
        if queue is None:
            # There is none for this caller: the handler looks for it at the same desk, before anything else happens, and says so in its own words.
            return await handle(asked, self.desk, self._caller)
        self._check(needs, queue, asked)
        if not needs.is_asked_again:
            return await handle(asked, self.desk, self._caller)
        version = self._access.version
        hold = _Revocable(self._caller.hold, self._access, lambda: self._has_all(needs, queue))
        answer = await handle(asked, self.desk, structs.replace(self._caller, hold=hold))
        if self._access.version != version:
            self._check(needs, queue, asked)
        return answer

    def check_creation(self, needs: Creation, asked: Any) -> None:
        name = needs.name_of(asked) or ""
        if not (
            self.allows(Operation.CREATE, name) or self._access.on_cluster(self._asker, Operation.CREATE)
        ):
            raise self.denied(name)
        if needs.besides is not None:
            for operation, topic in needs.besides(asked, None, self._facts):
                if not self.allows(operation, topic):
                    raise self.denied(topic)

    def _check(self, needs: OnQueue, queue: Queue, asked: Any) -> None:
        """Raises `SqsRefusal`."""
        may = self._has_all(needs, queue)
        if may and needs.besides is not None:
            may = all(self.allows(*each) for each in needs.besides(asked, queue, self._facts))
        if may and needs.is_deletion and self._rules.deletes_need_admin:
            may = self._access.on_cluster(self._asker, Operation.ALTER)
        if not may:
            raise self.denied(queue.name)

    def _has_all(self, needs: OnQueue, queue: Queue) -> bool:
        return all(
            self._access.allows(
                self._asker,
                right.operation,
                right.resource_type,
                queue.topic if right.resource_type is ResourceType.TOPIC else GROUP_PREFIX + queue.name,
            )
            for right in needs.rights
        )


class _OwnFacts:
    """The queues that one caller may describe."""

    __slots__ = ("_facts", "_visit")

    def __init__(self, facts: Facts, visit: _Visit) -> None:
        self._facts = facts
        self._visit = visit

    def get(self, name: str, /) -> Queue | None:
        queue = self._facts.get(name)
        return queue if queue is not None and self._visit.allows(Operation.DESCRIBE, queue.topic) else None

    def names(self, prefix: str = "") -> Sequence[str]:
        return self._seen(self._facts.names(prefix))

    def sources_of(self, name: str, /) -> Sequence[str]:
        return self._seen(self._facts.sources_of(name))

    def moves_of(self, queue_id: OwnerId, /) -> Sequence[MoveTask]:
        return [
            task
            if task.target is None or self.get(task.target) is not None
            else structs.replace(task, target=None)
            for task in self._facts.moves_of(queue_id)
        ]

    def _seen(self, names: Sequence[str]) -> Sequence[str]:
        return [name for name in names if self.get(name) is not None]


class _OwnEngine(Struct, frozen=True):
    facts: Facts
    changes: Changes
    messages: Messages


class _OwnDesk(Desk):
    """What one caller has at hand."""

    def __init__(self, desk: Desk, visit: _Visit) -> None:
        engine = desk.engine
        rules = desk.rules
        super().__init__(
            _OwnEngine(_OwnFacts(engine.facts, visit), engine.changes, engine.messages),
            desk.clock,
            desk.receipts,
            lambda: rules,
        )
        self._visit = visit

    def target(self, name: str) -> Queue | None:
        queue = super().target(name)
        if queue is not None and not self._visit.allows(Operation.WRITE, queue.topic):
            raise self._visit.denied(name)
        return queue


class _Revocable:
    """Holds a client that waits, as long as it has the right to what it waits for."""

    def __init__(self, hold: Hold, access: Access, may: Callable[[], bool]) -> None:
        self._hold = hold
        self._access = access
        self._may = may
        self._watching: dict[Waiting, Callable[[], None]] = {}

    def begin_wait(self, waiting: Waiting) -> None:
        def on_change() -> None:
            if not self._may():
                waiting.abandon()

        self._watching[waiting] = on_change
        self._access.watch(on_change)
        self._hold.begin_wait(waiting)

    def end_wait(self, waiting: Waiting) -> None:
        self._hold.end_wait(waiting)
        self._access.unwatch(self._watching.pop(waiting))
