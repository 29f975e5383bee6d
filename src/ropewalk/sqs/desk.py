"""What every handler has at hand: the engine, the time, who asks, and how a queue is found by its address."""

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from ropewalk.base.ports import Clock
from ropewalk.broker.cluster.mandate import Mandate, mandate
from ropewalk.broker.peers.calls.forward import Sender
from ropewalk.metadata.queues import Queue
from ropewalk.metadata.records import SQS_LISTENER
from ropewalk.security.identity import ANONYMOUS_IDENTITY, Identity
from ropewalk.sqs import urls
from ropewalk.sqs.engine import Engine, Hold
from ropewalk.sqs.errors import ACCESS_DENIED, INVALID_PARAMETER_VALUE, SqsRefusal, no_such_queue
from ropewalk.sqs.receipts import Receipts

_QUEUE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")
_FIFO_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,75}\.fifo")
_NAME_TEXT: Final = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
_FIFO_NAME_TEXT: Final = (
    "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with "
    ".fifo suffix and be 1 to 80 in length."
)


class Caller(Struct, frozen=True):
    """Who asks, and from where."""

    access_key: str
    """Empty where nobody said."""
    region: str
    origin: str
    """Scheme and authority that queues' addresses begin with."""
    hold: Hold
    is_admin: bool = True
    identity: Identity = ANONYMOUS_IDENTITY
    """Whose rights count, where rules decide."""
    host: str = ""

    def mandate(self, action: str) -> Mandate | None:
        """Whose wish a change is that this request asks for."""
        identity = self.identity
        sender = Sender(
            identity.principal,
            self.access_key or None,
            self.host,
            groups=identity.groups,
            method=identity.method,
            listener=SQS_LISTENER,
        )
        return mandate(sender, action)


class DeskRules(Struct, frozen=True):
    """What is set for the whole cluster, and may change while the door is open."""

    account: str
    fifo_partition_count: int = 1
    """Of a FIFO queue that is made for high throughput."""
    deletes_need_admin: bool = False


class Desk:
    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        receipts: Receipts,
        rules: Callable[[], DeskRules],
    ) -> None:
        self.engine = engine
        self.clock = clock
        self.receipts = receipts
        self._rules = rules

    @property
    def rules(self) -> DeskRules:
        return self._rules()

    @property
    def account(self) -> str:
        return self._rules().account

    def queue(self, url: str) -> Queue:
        """Raises `SqsRefusal` where there is none."""
        queue = self.engine.facts.get(urls.name_in_url(url))
        if queue is None:
            raise no_such_queue()
        return queue

    def target(self, name: str) -> Queue | None:
        """A queue that messages are to go to. Raises `SqsRefusal` where the caller may not send them there."""
        return self.engine.facts.get(name)

    def url(self, caller: Caller, name: str) -> str:
        return urls.queue_url(caller.origin, self.account, name)

    def arn(self, caller: Caller, name: str) -> str:
        return urls.arn(caller.region, self.account, name)

    def require_admin(self, caller: Caller, what: str) -> None:
        """Raises `SqsRefusal`."""
        if not caller.is_admin:
            raise SqsRefusal(ACCESS_DENIED, f"{what} takes a key that has admin = true")


def check_queue_name(name: str, *, wants_fifo: bool) -> None:
    """Raises `SqsRefusal`."""
    if wants_fifo:
        if _FIFO_NAME.fullmatch(name) is None:
            raise SqsRefusal(INVALID_PARAMETER_VALUE, _FIFO_NAME_TEXT)
    elif _QUEUE_NAME.fullmatch(name) is None:
        raise SqsRefusal(INVALID_PARAMETER_VALUE, _NAME_TEXT)
