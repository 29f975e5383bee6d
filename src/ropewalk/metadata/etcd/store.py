"""The keys in etcd as one process uses them: read at one revision, and written only by whoever holds the controller key.

What a reader could get wrong
    `read` is linearizable: whatever was acknowledged to anybody before it began is in the mirror when it returns.
"""

from collections.abc import Sequence

from ropewalk.base.errors import CannotFollow, CorruptMetadata, HistoryParted, MetadataUnavailable
from ropewalk.base.limits import ETCD_APPENDS_READ_MAX, ETCD_LEASE_S
from ropewalk.metadata.etcd import messages
from ropewalk.metadata.etcd.client import EtcdClient, NoSpace, Refused, Unanswered, Unreachable
from ropewalk.metadata.etcd.history import Found, Known, parting
from ropewalk.metadata.etcd.keys import Held, Keys, decode_held, decode_number, decode_pointer
from ropewalk.metadata.etcd.messages import Alarms, Event, Granted, KeyValue, Message, TxnAnswer
from ropewalk.metadata.etcd.mirror import Mirror
from ropewalk.runtime.bell import Bell


class Store:
    def __init__(self, client: EtcdClient, keys: Keys) -> None:
        self.client = client
        self.keys = keys
        self.mirror = Mirror(keys)
        self.bell = Bell()
        """Rings when something was heard that was not known."""
        self.end_is_there = False
        self.parted: str | None = None
        """Why this process can never go on with what etcd holds; None while it can."""
        self._revision = 0
        self._out_of_reach: str | None = None
        self._full: str | None = None

    @property
    def trouble(self) -> str | None:
        return self.parted or self._out_of_reach or self._full

    @property
    def unheard(self) -> str | None:
        return self.parted or self._out_of_reach

    async def read(self) -> int:
        """Bring the mirror up to date; answers the revision of etcd that it stands for.

        Raises `MetadataUnavailable` if etcd does not answer, `CannotFollow` if it has lost what it said before or says what this
        version does not know, and `CorruptMetadata` if it has lost what it says that it has.
        """
        if self.parted is not None:
            raise CannotFollow(self.parted)
        try:
            return await self._read()
        except CorruptMetadata as error:
            self._out_of_reach = str(error)
            raise
        except CannotFollow as error:
            self._on_parted(str(error))
            raise

    async def _read(self) -> int:
        while True:
            known = self.mirror.known(self._revision)
            end_before = known.end_offset
            last_at = end_before if known.last is None else known.last[0].base_offset
            answer = await self.ask(
                messages.txn(
                    success=[
                        messages.get(self.keys.end),
                        messages.get(self.keys.controller),
                        messages.get(self.keys.alive),
                        messages.get(
                            self.keys.append_at(end_before),
                            end=self.keys.log_beyond,
                            limit=ETCD_APPENDS_READ_MAX,
                        ),
                        messages.get(self.keys.snapshot),
                        messages.get(self.keys.append_at(last_at)),
                    ]
                )
            )
            ends = answer.found(0)
            self.end_is_there = bool(ends)
            end_offset = decode_number(ends[0].value, "end") if ends else 0
            self._check_history(known, end_offset, answer)
            if not answer.found(2):
                self.mirror.on_alive(0, answer.header.revision)
            self._take([kv for index in (1, 2, 3, 4, 3) for kv in answer.found(index)])
            if self.mirror.end_offset >= end_offset:
                return answer.header.revision
            if self.mirror.end_offset == end_before:
                raise CorruptMetadata(
                    f"etcd at {self.client.members} lacks the records from {end_before} on under "
                    f"{self.keys.first.decode()}; stop every node and restore it from a backup"
                )

    def _check_history(self, known: Known, end_offset: int, answer: TxnAnswer) -> None:
        seats, pointers, lasts = answer.found(1), answer.found(4), answer.found(5)
        found = Found(
            answer.header.revision,
            end_offset,
            decode_held(seats[0].value) if seats else None,
            decode_pointer(pointers[0].value) if pointers else None,
            lasts[0] if lasts else None,
        )
        reason = parting(known, found)
        if reason is not None:
            raise HistoryParted(
                f"etcd at {self.client.members} has another history under {self.keys.first.decode()}: {reason}; were its data "
                "removed or put back from a backup? Start the node again to go on with what there is"
            )
        self._revision = max(self._revision, found.revision)

    def _on_parted(self, reason: str) -> None:
        if self.parted is None:
            self.parted = reason
            self.bell.ring()

    async def ask(self, request: Message) -> TxnAnswer:
        """A transaction that changes nothing."""
        try:
            answer = await self.client.ask(messages.TXN, request, TxnAnswer)
        except (Refused, Unreachable) as error:
            self._out_of_reach = f"etcd at {self.client.members} cannot be read: {error}"
            raise MetadataUnavailable(self._out_of_reach) from error
        self._out_of_reach = None
        return answer

    async def write(self, request: Message) -> TxnAnswer:
        """Sent once. Raises a `RopewalkError` if nothing was done, `Unanswered` if nobody knows."""
        try:
            answer = await self.client.tell(messages.TXN, request, TxnAnswer)
        except NoSpace as error:
            raise NoSpace(self._on_full()) from error
        except Refused as refused:
            self._out_of_reach = f"etcd at {self.client.members} refuses: {refused}"
            raise MetadataUnavailable(self._out_of_reach) from refused
        except Unreachable as error:
            self._out_of_reach = f"etcd at {self.client.members} cannot be reached: {error}"
            raise MetadataUnavailable(self._out_of_reach) from error
        self._out_of_reach = self._full = None
        return answer

    async def write_as(
        self, revision: int, operations: Sequence[Message], *, compare: Sequence[Message] = ()
    ) -> int | None:
        """Write if the controller key is still as at `revision`, and what `compare` says; answers etcd's revision, None if
        it is not.

        An outcome that is not known is raised as `MetadataUnavailable`: for what may be written again.
        """
        all_of = [messages.has_revision(self.keys.controller, revision), *compare]
        try:
            answer = await self.write(messages.txn(compare=all_of, success=list(operations)))
        except Unanswered as error:
            raise MetadataUnavailable(f"whether etcd has written it is not known: {error}") from error
        return answer.header.revision if answer.succeeded else None

    def on_events(self, events: Sequence[Event]) -> bool:
        """False if something before them is missing: read."""
        try:
            gaps = [event for event in events if not self.mirror.on_event(event)]
        except CannotFollow as error:
            self._on_parted(str(error))
            raise
        self.bell.ring()
        return not gaps

    async def grant(self) -> int:
        """A lease that nobody uses yet; one that is never used ends by itself."""
        try:
            return (await self.client.ask(messages.GRANT, {"TTL": ETCD_LEASE_S}, Granted)).ID
        except (Refused, Unreachable) as error:
            if isinstance(error, Refused) and error.is_full:
                raise MetadataUnavailable(self._on_full()) from error
            self._out_of_reach = f"etcd at {self.client.members} grants no lease: {error}"
            raise MetadataUnavailable(self._out_of_reach) from error

    def says_alive(self, held: Held, lease: int) -> Message:
        return messages.put(self.keys.alive, b"%d" % held.epoch, lease=lease)

    async def check_space(self) -> None:
        """Whether etcd, once full, has been given room since."""
        if self._full is None:
            return
        alarms = await self.client.ask(messages.ALARM, {"action": "GET"}, Alarms)
        if not any(alarm.alarm == "NOSPACE" for alarm in alarms.alarms):
            self._full = None

    def _on_full(self) -> str:
        self._full = (
            f"etcd at {self.client.members} has no space left, so nothing about the cluster can change"
        )
        return self._full

    def _take(self, kvs: Sequence[KeyValue]) -> None:
        before = (self.mirror.end_offset, self.mirror.holder)
        for kv in kvs:
            self.mirror.on_key(kv)
        if before != (self.mirror.end_offset, self.mirror.holder):
            self.bell.ring()
