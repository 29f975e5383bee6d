"""Is the node alive, is it ready for clients, is all well: three questions, each answered by a list of checks.

    live     the process works; if not, end it
    ready    what live asks, and clients can be sent here
    well     what ready asks, and nothing needs a person's attention

Behaviour worth knowing
    A node that starts is alive from the moment it listens, and not ready until its logs are open, the state of its groups and transactions
    is read and it has told the cluster where it is. A node that stops is not ready from the first moment, so that whoever routes to it looks elsewhere.
    A damaged range or a partition without room makes a node unwell, not unready: all else is served. So does a disk that is full, or
    nearly so: what it holds is read from it. It is said to whoever asks whether the node is ready.
    So does a controller, or a home of the metadata, that cannot be reached: leaders go on. What cannot be done is said to
    whoever asks whether the node is ready. A clock that differs from the controller's is said there, too.
    What is wrong is looked for once in a while and told to the controller with the heartbeats, so that somebody knows it of all nodes.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from enum import Enum

from msgspec import Struct, structs

from ropewalk.base import metrics
from ropewalk.base.limits import (
    CLOCK_DIFFERENCE_MS_MAX,
    COMPLAINTS_MAX,
    DISK_FREE_BYTES_MIN,
    HEALTH_CHECK_MS,
    HEALTH_SLICE_COUNT,
)
from ropewalk.base.metrics import Sheet
from ropewalk.broker.cluster.membership import Membership
from ropewalk.broker.coordinators.groups import Groups
from ropewalk.broker.coordinators.transactions import Transactions
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.partitions.partitions import Partitions
from ropewalk.broker.partitions.room import Room
from ropewalk.broker.upkeep.vitals import Vitals
from ropewalk.controller.health import Complaint
from ropewalk.runtime.steps import Pace


class Check(Struct, frozen=True):
    name: str
    problem: str | None
    """None where all is well; else a few words for a person."""
    is_tolerable: bool = False
    """It is said, and clients may be sent here all the same."""


class Stage(Enum):
    """How far the node's life has come. The value is what a node that is not there yet says for itself."""

    OPENING = "its logs are being opened and recovered"
    JOINING = "it has not told the cluster yet where it is"
    SERVING = ""
    STOPPING = "it is shutting down"


class Health:
    def __init__(
        self,
        partitions: Partitions,
        groups: Groups,
        transactions: Transactions,
        vitals: Vitals,
        room: Room,
        failure: Callable[[], str | None],
        transaction_ms_max: Callable[[], int],
        membership: Membership | None = None,
        metadata_trouble: Callable[[], str | None] = lambda: None,
        lack: Callable[[], str | None] = lambda: None,
        certificates: Callable[[], str | None] = lambda: None,
        authorities: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`failure` says what background work has failed with, if it has; `transaction_ms_max` how long a transaction may take.
        No membership for a node that is alone.
        `metadata_trouble` says why the metadata cannot be reached, on a node that should; `lack` what of it the node has not followed; `certificates` what is
        wrong with those it shows, `authorities` why the keys of tokens cannot be had."""
        self.stage = Stage.OPENING
        self._partitions = partitions
        self._groups = groups
        self._transactions = transactions
        self._vitals = vitals
        self._disk_room = room
        self._failure = failure
        self._transaction_ms_max = transaction_ms_max
        self._membership = membership
        self._metadata_trouble = metadata_trouble
        self._lack = lack
        self._certificates = certificates
        self._authorities = authorities
        self.complaints: tuple[Complaint, ...] = ()
        """What was wrong when it was looked at last."""

    async def run(self) -> None:
        """Look, once in a while, what is wrong."""
        while True:
            await asyncio.sleep(HEALTH_CHECK_MS / 1000)
            wrong = [check for check in await self.well() if check.problem is not None]
            self.complaints = tuple(
                Complaint(check.name, check.problem or "") for check in wrong[:COMPLAINTS_MAX]
            )

    def live(self) -> Sequence[Check]:
        return [Check("process", self._failure())]

    async def ready(self) -> Sequence[Check]:
        if self.stage is Stage.SERVING:  # else the answer is known, however long the disk takes
            await self._vitals.refresh()
        return self._ready()

    async def well(self) -> Sequence[Check]:
        ready = [structs.replace(check, is_tolerable=False) for check in await self.ready()]
        return [*ready, self._room(), *await self._partitions_in_trouble()]

    def collect(self, sheet: Sheet) -> Iterator[None]:
        is_ready = all(check.problem is None or check.is_tolerable for check in self._ready())
        sheet.add(metrics.READY, int(is_ready))
        yield

    def _ready(self) -> list[Check]:
        return [*self.live(), self._stage(), *self._place(), *self._shards(), self._disk(), *self._shown()]

    def _stage(self) -> Check:
        return Check("started", self.stage.value or None)

    def _place(self) -> list[Check]:
        if self._membership is None:
            return []
        return [
            Check("cluster", self._membership.standing),
            Check("controller", _cannot(self._membership.trouble), is_tolerable=True),
            Check("metadata", _cannot(self._metadata_trouble()), is_tolerable=True),
            Check("following", self._lack(), is_tolerable=True),
            Check("clock", _difference(self._membership.clock_difference_ms), is_tolerable=True),
        ]

    def _shown(self) -> list[Check]:
        troubles = (("certificates", self._certificates()), ("authorities", self._authorities()))
        return [Check(name, trouble, is_tolerable=True) for name, trouble in troubles if trouble is not None]

    def _shards(self) -> list[Check]:
        reading = "the state of {} is being read"
        return [
            Check("groups", None if self._groups.is_loaded else reading.format("groups")),
            Check("transactions", None if self._transactions.is_loaded else reading.format("transactions")),
        ]

    def _disk(self) -> Check:
        if self._disk_room.problem is not None:
            return Check("disk", self._disk_room.problem, is_tolerable=True)
        free_bytes = self._vitals.disk_free_bytes
        if free_bytes is None or free_bytes >= DISK_FREE_BYTES_MIN:
            return Check("disk", self._vitals.disk_problem)
        return Check(
            "disk", f"{free_bytes} bytes are free, {DISK_FREE_BYTES_MIN} are wanted", is_tolerable=True
        )

    def _room(self) -> Check:
        count = self._partitions.unopened_count
        return Check("room", f"{count} partitions cannot be opened for want of room" if count else None)

    async def _partitions_in_trouble(self) -> list[Check]:
        """A walk over all of them, in turns."""
        damaged: list[str] = []
        hanging: list[str] = []
        timeout_ms_max = self._transaction_ms_max()
        pace = Pace(HEALTH_SLICE_COUNT)
        for partition in list(self._partitions):
            await pace.next()
            if partition.log.damaged:
                damaged.append(str(partition.name))
            if isinstance(partition, Partition) and partition.hanging_transactions(
                timeout_ms_max=timeout_ms_max
            ):
                hanging.append(str(partition.name))
        return [
            Check("records", f"{len(damaged)} partitions are damaged: {_some(damaged)}" if damaged else None),
            Check(
                "hanging transactions",
                f"readers of committed records wait in {len(hanging)} partitions: {_some(hanging)}"
                if hanging
                else None,
            ),
        ]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (" and more" if len(names) > 5 else "")


def _difference(difference_ms: int) -> str | None:
    if abs(difference_ms) <= CLOCK_DIFFERENCE_MS_MAX:
        return None
    return f"the controller's is {abs(difference_ms) // 1000} s {'ahead of' if difference_ms > 0 else 'behind'} this node's"


def _cannot(trouble: str | None) -> str | None:
    return None if trouble is None else f"topics, leaders and replicas in sync cannot change: {trouble}"
