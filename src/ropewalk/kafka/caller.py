"""Who sent a request, as far as a handler may know, and what it may ask of the connection."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from ropewalk.base.flow import Waiting
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import REQUEST_ITEMS_PER_TURN
from ropewalk.broker.cluster.mandate import Mandate, mandate
from ropewalk.broker.peers.calls.forward import Sender
from ropewalk.runtime.steps import turn
from ropewalk.security.identity import ANONYMOUS_IDENTITY, Identity


class Disconnect(Exception):
    """Raised by a handler where Kafka's answer is to close the connection: acks=0 has no other way to say no."""


class Metered(Protocol):
    """What a request may ask about its client's quotas."""

    def fetch_bytes_max(self, bytes_max: int) -> int: ...

    def check_mutations(self) -> None: ...

    def charge_mutations(self, partition_count: int) -> None: ...


class Holdable(Protocol):
    peer_id: NodeId | None

    def hold(self) -> None: ...

    def release(self) -> None: ...

    def begin_wait(self, waiting: Waiting) -> None: ...

    def end_wait(self, waiting: Waiting) -> None: ...

    def watch_end(self, on_end: Callable[[], None]) -> None: ...

    def unwatch_end(self, on_end: Callable[[], None]) -> None: ...

    def end_input(self) -> None: ...

    def report(self, reason: str) -> None: ...


class Caller:
    """One request's view of its connection."""

    __slots__ = (
        "_connection",
        "_item_count",
        "_keeps_back",
        "_meter",
        "client_id",
        "host",
        "identity",
        "listener",
        "measured_ms",
        "version",
        "waited_ms",
    )

    def __init__(
        self,
        connection: Holdable,
        *,
        client_id: str | None,
        host: str,
        version: int,
        meter: Metered | None = None,
        identity: Identity = ANONYMOUS_IDENTITY,
        listener: str = "",
    ) -> None:
        self._connection = connection
        self._item_count = 0
        self._keeps_back = False
        self._meter = meter
        self.identity = identity
        self.listener = listener
        """By which of a node's addresses it came, by the name under which that is registered; empty between nodes."""
        self.client_id = client_id
        self.host = host
        self.version = version
        """Of the API being called: a few answers are spelled differently for older clients."""
        self.waited_ms: float | None = None
        """How long the request waited on purpose, where its API may: a fetch for records."""
        self.measured_ms: float | None = None
        """What the handler measured besides: a Produce how long it waited for its acknowledgement, a Fetch how old its records are."""

    @property
    def peer_id(self) -> NodeId | None:
        """Which node of the cluster this is; None for a client."""
        return self._connection.peer_id

    @property
    def principal(self) -> str:
        return self.identity.principal

    @property
    def groups(self) -> tuple[str, ...]:
        return self.identity.groups

    @property
    def connection(self) -> object:
        """To tell one connection from another, and nothing else."""
        return self._connection

    def on_behalf(
        self, *, identity: Identity, listener: str, client_id: str | None, host: str, version: int
    ) -> "Caller":
        """The same connection, which carries another's requests and no others."""
        return Caller(
            self._connection,
            client_id=client_id,
            host=host,
            version=version,
            identity=identity,
            listener=listener,
        )

    def sender(self, *, throttled: str | None = None) -> Sender:
        """In whose name another node carries the request out; `throttled` is why it may not change anything."""
        identity = self.identity
        return Sender(
            identity.principal,
            self.client_id,
            self.host,
            throttled,
            groups=identity.groups,
            method=identity.method,
            listener=self.listener,
        )

    def mandate(self, operation: str) -> Mandate | None:
        """Whose wish a change is that this request asks for; None where another node wants it for itself."""
        return mandate(self.sender(), operation, self.peer_id)

    def watch_end(self, on_end: Callable[[], None]) -> None:
        """`on_end` is called when the connection ends, however long this request is over by then."""
        self._connection.watch_end(on_end)

    def report(self, reason: str) -> None:
        """Say in the log that something was asked that no honest client asks."""
        self._connection.report(reason)

    def close_when_answered(self) -> None:
        """Nothing more is wanted from this connection."""
        self._connection.end_input()

    def fetch_bytes_max(self, bytes_max: int) -> int:
        """How much may be read for this client at once: what it must wait for long is not worth reading."""
        return bytes_max if self._meter is None else self._meter.fetch_bytes_max(bytes_max)

    def check_mutations(self) -> None:
        """Raise `Throttled` if the client has changed the cluster too often for another change."""
        if self._meter is not None:
            self._meter.check_mutations()

    def charge_mutations(self, partition_count: int) -> None:
        """The client has made or deleted so many partitions."""
        if self._meter is not None:
            self._meter.charge_mutations(partition_count)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep the connection's next request back: this one has to wait before it takes effect.

        The request's record batches stay as they are until this is over, and no longer.
        """
        self._connection.hold()
        try:
            yield
        finally:
            self._connection.release()

    async def next_item(self) -> None:
        """Await before each item of a list that a client may make long, so that it keeps nobody else waiting."""
        self._item_count += 1
        if self._item_count % REQUEST_ITEMS_PER_TURN == 0:
            with self.hold():
                await turn()

    @contextmanager
    def hold_while(self, waiting: Waiting) -> Iterator[None]:
        """As `hold` for a request that has no record batches, and `waiting` hears when the client goes away."""
        self._connection.begin_wait(waiting)
        try:
            yield
        finally:
            self._connection.end_wait(waiting)

    def keep_back(self) -> None:
        """As `hold`, until `let_go`; asking twice is asking once."""
        if not self._keeps_back:
            self._keeps_back = True
            self._connection.hold()

    def let_go(self) -> None:
        """End what `keep_back` began, if anything."""
        if self._keeps_back:
            self._keeps_back = False
            self._connection.release()

    @contextmanager
    def watched(self, on_end: Callable[[], None]) -> Iterator[None]:
        """While this lasts, `on_end` is called if the connection ends: nobody will take the answer."""
        self._connection.watch_end(on_end)
        try:
            yield
        finally:
            self._connection.unwatch_end(on_end)
