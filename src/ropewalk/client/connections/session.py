"""A cluster, and the rules for trying again.

Every call ends by its deadline, an instant of `Clock.monotonic_ms`. Within it a call is repeated, with
growing pauses, while that can help and cannot do harm.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Protocol, TypeVar

from ropewalk.base.errors import ProtocolError, RopewalkError
from ropewalk.base.ids import TOPIC_ID_NONE, NodeId
from ropewalk.base.ports import Clock, Network, Rng
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.backoff import Backoff
from ropewalk.client.connections.cluster import Cluster, PartitionView, TopicView
from ropewalk.client.connections.nearby import Nearby
from ropewalk.client.connections.settings import ClientSettings
from ropewalk.client.errors import STALE_METADATA, RemoteError, is_definite, is_retriable
from ropewalk.wire.error_code import ErrorCode

T = TypeVar("T")
P = TypeVar("P", covariant=True)

_NAMED_TOPICS_VERSION_MAX: Final = 12
"""The last version of Produce and of Fetch that says a topic's name; later ones say its id."""

_MISSING: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
_MISSING_ATTEMPTS: Final = 2
"""A topic that is not there is asked for once more, since a broker may lag; then it is not there."""
_CREATING_ATTEMPTS: Final = 8
"""A topic that is made on first use may need a moment to be known and to have a leader."""


class Session:
    def __init__(
        self,
        network: Network,
        clock: Clock,
        rng: Rng,
        bootstrap: tuple[Address, ...],
        settings: ClientSettings,
    ) -> None:
        self.settings: Final = settings
        self.clock: Final = clock
        self.rng: Final = rng
        self.cluster: Final = Cluster(network, clock, rng, bootstrap, settings)
        self.nearby: Final = Nearby(settings.client_rack, copy_ms=settings.metadata_max_age_ms)
        self.on_retry: Callable[[RopewalkError], None] = _nobody
        """Hears why something is about to be tried again, for whoever waits for it."""

    def deadline_ms(self, timeout_ms: float | None = None) -> float:
        """The instant at which a call that starts now must end."""
        allowed_ms = self.settings.request_timeout_ms if timeout_ms is None else timeout_ms
        return self.clock.monotonic_ms() + allowed_ms

    def remaining_ms(self, deadline_ms: float) -> int:
        """For a broker's ears: at least one, since it takes zero as "answer at once"."""
        return max(1, min(int(deadline_ms - self.clock.monotonic_ms()), 2**31 - 1))

    async def leaders(
        self, topic: str, partitions: Iterable[int], *, deadline_ms: float
    ) -> dict[NodeId, list[PartitionView]]:
        """The given partitions by the node that leads them, in node order."""
        by_leader: defaultdict[NodeId, list[PartitionView]] = defaultdict(list)
        for index in partitions:
            _, partition = await self.cluster.partition(topic, index, deadline_ms=deadline_ms)
            by_leader[partition.leader].append(partition)
        return dict(sorted(by_leader.items()))

    async def attempt(
        self,
        topics: Sequence[str],
        once: Callable[[], Awaitable[T]],
        *,
        deadline_ms: float,
        repeatable: bool = True,
        may_create: bool = False,
    ) -> T:
        """Call `once` until it succeeds, fails for good, or the deadline is near.

        `repeatable` says that doing it twice is as good as once. `topics` are looked up anew after an error
        that may come from a change of leader.
        """
        backoff = Backoff(
            self.clock,
            self.rng,
            delay_ms=self.settings.retry_backoff_ms,
            delay_ms_max=self.settings.retry_backoff_max_ms,
            deadline_ms=deadline_ms,
        )
        missing_count_max = _CREATING_ATTEMPTS if may_create else _MISSING_ATTEMPTS
        missing_count = 0
        while True:
            try:
                return await once()
            except RopewalkError as error:
                if not is_retriable(error) or not (repeatable or is_definite(error)):
                    raise
                failure = error
            if isinstance(failure, RemoteError) and failure.code in _MISSING:
                missing_count += 1
                if missing_count >= missing_count_max:
                    raise failure
            if not isinstance(failure, RemoteError) or failure.code in STALE_METADATA:
                for topic in topics:
                    self.cluster.forget(topic)
            self.on_retry(failure)
            await backoff.wait(failure)


def _nobody(_error: RopewalkError) -> None:
    """Nobody has asked to be told."""


class _Partitioned(Protocol[P]):
    """A topic in a response."""

    @property
    def partitions(self) -> tuple[P, ...]: ...


def only_partition(topics: Sequence[_Partitioned[P]], api: str) -> P:
    """The answer to a question about one partition; refuses any other number with `ProtocolError`."""
    answers = [partition for topic in topics for partition in topic.partitions]
    if len(answers) != 1:
        raise ProtocolError(f"{api} answered for {len(answers)} partitions, 1 was asked about")
    return answers[0]


def version_max_for(topics: Iterable[TopicView]) -> int | None:
    """A topic without an id comes from a broker that does not know ids; then speak of all by name."""
    if any(topic.topic_id == TOPIC_ID_NONE for topic in topics):
        return _NAMED_TOPICS_VERSION_MAX
    return None
