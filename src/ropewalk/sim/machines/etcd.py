"""A modelled etcd: three members on the simulated network that speak the gateway's HTTP and JSON.

What they agree on is one `EtcdState`; that consensus works is assumed. What is modelled is how it looks from outside when
things go wrong: no answer although it was done, done long after the client has given up, a member that is cut off from the
others and takes requests all the same, no majority, watches that lag, end, or fall silent, leases that run out.

What a reader could get wrong
    A request outlives the member that took it: the others may have it already. So it outlives the client's patience too.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Final, cast

import httptools
import msgspec
from msgspec import Struct

from ropewalk.metadata.etcd import messages
from ropewalk.sim.machines.etcd_state import (
    REQUEST_BYTES_MAX,
    Body,
    Change,
    Copy,
    EtcdState,
    Refusal,
    as_event,
)
from ropewalk.sim.machines.world import Machine, NodePorts, World

PORT: Final = 2379
NO_LEADER_S: Final = 1.0
"""How long members without a majority take to tell those who watch."""


_NO_LEADER: Final[Body] = {"error": {"grpc_code": 14, "http_code": 503, "message": "etcdserver: no leader"}}


EXPECTED: Final = (
    "a request to etcd was lost",
    "etcd did what was asked and its answer was lost",
    "etcd did what was asked late",
    "a watch fell silent",
    "a watch was cancelled",
    "a watch was cancelled by compaction",
    "a watch ended for want of a leader",
    "a lease ran out",
    "etcd had no space",
    "etcd did what was asked and said that it had no space",
)
"""What runs with faults must have seen between them, or they prove less than they seem to."""


class EtcdFaults(Struct, frozen=True):
    """Probabilities per request, or per event of a watch."""

    request_lost: float = 0.0
    answer_lost: float = 0.0
    done_late: float = 0.0
    watch_cancelled: float = 0.0
    watch_deaf: float = 0.0
    watch_delay_s_max: float = 0.005


NO_FAULTS: Final = EtcdFaults()


class ModelledEtcd:
    def __init__(self, world: World, *, member_count: int = 3, faults: EtcdFaults = NO_FAULTS) -> None:
        self.world = world
        self.state = EtcdState()
        self.faults = faults
        self.rng = world.rng_for("etcd")
        self.machines = [world.machine(f"etcd{number}") for number in range(member_count)]
        self.isolated: set[str] = set()
        self.happened: Counter[str] = Counter()
        """How often each of `EXPECTED` did."""
        self._watches: list[_Watch] = []
        self._parked: list[Callable[[], None]] = []

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(f"http://{machine.name}:{PORT}" for machine in self.machines)

    @property
    def has_majority(self) -> bool:
        return 2 * sum(map(self.is_in_touch, self.machines)) > len(self.machines)

    def is_in_touch(self, machine: Machine) -> bool:
        return machine.is_running and machine.name not in self.isolated

    # What a nemesis does.

    async def start(self) -> None:
        for number in range(len(self.machines)):
            await self.start_member(number)

    async def start_member(self, number: int) -> None:
        machine = self.machines[number]

        async def serve(ports: NodePorts) -> None:
            await ports.network.listen(lambda: _Door(self, machine), "0.0.0.0", PORT)

        await machine.start(serve)
        self._on_membership()

    def kill_member(self, number: int) -> None:
        self.machines[number].kill()
        self._on_membership()

    def isolate(self, number: int) -> None:
        """Cut off from the other members; clients still reach it."""
        self.isolated.add(self.machines[number].name)
        self._on_membership()

    def mend(self) -> None:
        self.isolated.clear()
        self._on_membership()

    def expire_leases(self) -> None:
        """As after a pause of whoever should have kept them."""
        for lease in list(self.state.leases):
            self.state.expire(lease)
        self.on_changed()

    def compact(self) -> None:
        """As an operator may do at any time: nothing that was is remembered."""
        if self.state.compacted < self.state.revision:
            self.state.compact(self.state.revision)
            self.on_changed()

    async def put_back(self, copy: Copy) -> None:
        """As an operator does, with all members stopped: no connection outlives that, and no watch goes on in another history."""
        for number in range(len(self.machines)):
            self.kill_member(number)
        self.state.put_back(copy)
        await self.start()

    # What the members do.

    def note(self, what: str) -> None:
        assert what in EXPECTED, what
        self.happened[what] += 1

    def later(self, delay_s: float, call: Callable[[], None]) -> None:
        """In nobody's process: it happens even if the member is gone by then."""
        self.world.loop.call_later(delay_s, call, context=self.world.network.context)

    def when_in_touch(self, machine: Machine, call: Callable[[], None]) -> None:
        """Now, or when the cluster can decide again."""
        if self.has_majority and self.is_in_touch(machine):
            call()
        else:
            self._parked.append(lambda: self.when_in_touch(machine, call))

    def add_watch(self, watch: "_Watch") -> None:
        self._watches.append(watch)
        self.on_changed()

    def remove_watches(self, door: "_Door") -> None:
        self._watches = [watch for watch in self._watches if watch.door is not door]

    def on_changed(self) -> None:
        for watch in list(self._watches):
            watch.go_on()

    def _on_membership(self) -> None:
        parked, self._parked = self._parked, []
        for call in parked:
            call()
        self.later(NO_LEADER_S, self._tell_those_without_leader)

    def _tell_those_without_leader(self) -> None:
        for watch in list(self._watches):
            if not (self.has_majority and self.is_in_touch(watch.door.machine)):
                self.note("a watch ended for want of a leader")
                watch.end(_NO_LEADER)


class _Watch:
    """Sends what has changed, in order, each with a delay of its own; nothing overtakes."""

    def __init__(
        self, etcd: ModelledEtcd, door: "_Door", key: bytes, end: bytes, start_revision: int
    ) -> None:
        self.door = door
        self._etcd = etcd
        self._key = key
        self._end = end
        self._next_revision = start_revision or etcd.state.revision + 1
        self._free_at_s = 0.0
        self._is_deaf = False
        self._unsent: dict[int, object] = {}
        """The revisions of what is on its way."""

    def go_on(self) -> None:
        compacted = self._etcd.state.compacted
        if min([self._next_revision, *self._unsent]) <= compacted:
            self._etcd.note("a watch was cancelled by compaction")
            self._unsent.clear()
            self.end({"result": {"canceled": True, "compact_revision": str(compacted)}})
            return
        changes = list(self._etcd.state.changes_since(self._next_revision, self._key, self._end))
        self._next_revision = self._etcd.state.revision + 1
        if changes:
            self._send(changes)

    def end(self, last: Body) -> None:
        self.door.send_piece(last, is_last=True)
        self._etcd.remove_watches(self.door)

    def _send(self, changes: list[Change]) -> None:
        etcd, faults = self._etcd, self._etcd.faults
        if etcd.rng.random() < faults.watch_deaf:
            self._is_deaf = True
            etcd.note("a watch fell silent")
        if self._is_deaf:
            return
        if etcd.rng.random() < faults.watch_cancelled:
            etcd.note("a watch was cancelled")
            self.end({"result": {"canceled": True, "cancel_reason": "etcdserver: watch was told to end"}})
            return
        now_s = etcd.world.now_s
        self._free_at_s = max(self._free_at_s, now_s + etcd.rng.uniform(0.0005, faults.watch_delay_s_max))
        self._unsent[changes[0].revision] = None
        etcd.later(self._free_at_s - now_s, lambda: self._deliver(changes))

    def _deliver(self, changes: list[Change]) -> None:
        if self._unsent.pop(changes[0].revision, _GONE) is not _GONE:
            self.door.send_piece({"result": {"events": [as_event(change) for change in changes]}})


class _Door(asyncio.Protocol):
    """One connection to a member: requests one after the other, or one watch."""

    def __init__(self, etcd: ModelledEtcd, machine: Machine) -> None:
        self.machine = machine
        self._etcd = etcd
        self._life = machine.process
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._path = b""
        self._body = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The simulator's transports are Transports in all but their ancestry.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, _: Exception | None) -> None:
        self._transport = None
        self._etcd.remove_watches(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    # What the parser calls

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_body(self, data: bytes) -> None:
        self._body += data

    def on_message_complete(self) -> None:
        path, body = self._path.decode(), bytes(self._body)
        self._path, self._body = b"", bytearray()
        if path == messages.WATCH:
            self._etcd.later(self._etcd.rng.uniform(0.0005, 0.002), lambda: self._begin_watch(body))
        else:
            self._take(path, body)

    # The machine

    def _take(self, path: str, body: bytes) -> None:
        etcd, faults = self._etcd, self._etcd.faults
        delay_s = etcd.rng.uniform(0.0005, 0.004)
        answers = True
        if etcd.rng.random() < faults.request_lost:
            etcd.note("a request to etcd was lost")
            self._drop()
            return
        if etcd.rng.random() < faults.answer_lost:
            etcd.note("etcd did what was asked and its answer was lost")
            answers = False
        elif etcd.rng.random() < faults.done_late:
            etcd.note("etcd did what was asked late")
            delay_s = etcd.rng.uniform(1.0, 6.0)
        etcd.later(delay_s, lambda: etcd.when_in_touch(self.machine, lambda: self._do(path, body, answers)))

    def _do(self, path: str, body: bytes, answers: bool) -> None:
        before = self._etcd.state.revision
        try:
            status, answer = 200, self._carry_out(path, body)
        except Refusal as refusal:
            message = str(refusal)
            if "space" in message:
                was_done = self._etcd.state.revision > before
                self._etcd.note(
                    "etcd did what was asked and said that it had no space"
                    if was_done
                    else "etcd had no space"
                )
            status, answer = refusal.status, {"error": message, "message": message, "code": refusal.code}
        self._etcd.on_changed()
        if answers:
            data = msgspec.json.encode(answer)
            head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
            self._write(head.encode() + data)
        elif self._etcd.rng.random() < 0.5:
            self._drop()

    def _carry_out(self, path: str, body: bytes) -> Body:
        state, now_s = self._etcd.state, self._etcd.world.now_s
        if len(body) > REQUEST_BYTES_MAX * 4 // 3:
            raise Refusal(3, 400, "etcdserver: request is too large")
        request = msgspec.json.decode(body, type=dict[str, object])
        match path:
            case messages.TXN:
                return state.txn(request)
            case messages.COMPACT:
                return state.compact(int(str(request["revision"])))
            case messages.GRANT:
                answer = state.grant(float(str(request["TTL"])), now_s)
                self._expire_in_time(int(str(answer["ID"])))
                return answer
            case messages.KEEP_ALIVE:
                return state.keep_alive(int(str(request["ID"])), now_s)
            case messages.ALARM:
                return {"alarms": [{"alarm": "NOSPACE"}]} if state.is_full else {}
            case _:
                raise Refusal(12, 404, "Not Found")

    def _expire_in_time(self, lease: int) -> None:
        etcd = self._etcd

        def look() -> None:
            if lease not in etcd.state.leases:
                return
            ends_at_s, _ = etcd.state.leases[lease]
            if ends_at_s > etcd.world.now_s:
                etcd.later(ends_at_s - etcd.world.now_s + 0.001, look)
                return
            etcd.note("a lease ran out")
            etcd.state.expire(lease)
            etcd.on_changed()

        look()

    def _begin_watch(self, body: bytes) -> None:
        request = msgspec.json.decode(body, type=_WatchRequest).create_request
        self._write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        if not (self._etcd.has_majority and self._etcd.is_in_touch(self.machine)):
            self.send_piece(_NO_LEADER, is_last=True)
            return
        self.send_piece({"result": {"created": True}})
        self._etcd.add_watch(_Watch(self._etcd, self, request.key, request.range_end, request.start_revision))

    def send_piece(self, piece: Body, *, is_last: bool = False) -> None:
        data = msgspec.json.encode(piece) + b"\n"
        self._write(f"{len(data):x}\r\n".encode() + data + b"\r\n" + (b"0\r\n\r\n" if is_last else b""))

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing() and self._is_alive():
            self._transport.write(data)

    def _drop(self) -> None:
        if self._transport is not None and self._is_alive():
            self._transport.abort()

    def _is_alive(self) -> bool:
        return self._life is self.machine.process


_GONE: Final = object()


class _WatchCreation(Struct, frozen=True):
    key: bytes
    range_end: bytes
    start_revision: int = 0


class _WatchRequest(Struct, frozen=True):
    create_request: _WatchCreation
