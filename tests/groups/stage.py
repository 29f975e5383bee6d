"""A host for one core without a log: it keeps the records in a list, and can crash.

Every event goes through its encoding on the way to `apply`, as it would after a restart.
"""

from random import Random

from ropewalk.groups.answers import Answer
from ropewalk.groups.commands import Command, Join, Protocol
from ropewalk.groups.core import GroupsCore
from ropewalk.groups.durable import DurableState
from ropewalk.groups.errors import GroupError
from ropewalk.groups.event_codec import decode_event, encode_event
from ropewalk.groups.events import Event
from ropewalk.groups.settings import GroupSettings
from ropewalk.groups.step import Step


class Stage:
    def __init__(self, settings: GroupSettings | None = None, *, seed: int = 0, now_ms: int = 0) -> None:
        self.settings = settings or GroupSettings()
        self.now_ms = now_ms
        self.records: list[tuple[bytes, bytes | None]] = []
        self.replies: dict[int, Answer | GroupError] = {}
        self._rng = Random(seed)
        self._token = 0
        self.core = GroupsCore(self.settings, self._rng)
        self.core.on_loaded(now_ms)

    def ask(self, command: Command) -> int:
        """The token under which the reply is, or will be, in `replies`."""
        self._token += 1
        self.carry_out(self.core.decide(self._token, command, self.now_ms))
        return self._token

    def answer(self, command: Command) -> Answer | GroupError:
        """The reply to a command that does not wait for anyone."""
        return self.replies[self.ask(command)]

    def carry_out(self, step: Step) -> None:
        for event in step.events:
            record = encode_event(event)
            self.records.append(record)
            read_back = decode_event(*record)
            assert read_back == event
            self.core.apply(event, self.now_ms)
        for reply in step.replies:
            assert reply.token not in self.replies, "answered twice"
            self.replies[reply.token] = reply.answer

    def wait(self, duration_ms: int) -> None:
        """Let time pass, with a tick whenever one is due."""
        end_ms = self.now_ms + duration_ms
        while (due_ms := self.core.deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, int(due_ms))
            self.carry_out(self.core.tick(self.now_ms))
        self.now_ms = end_ms

    def crash(self) -> None:
        """The core is lost, with everyone who waits; another one replays the records."""
        self.core = GroupsCore(self.settings, self._rng)
        for event in self.replayed():
            self.core.apply(event, self.now_ms)
        self.core.on_loaded(self.now_ms)

    def replayed(self) -> list[Event]:
        events = [decode_event(key, value) for key, value in self.records]
        return [event for event in events if event is not None]


def replay(events: list[Event]) -> DurableState:
    state = DurableState()
    for event in events:
        state.apply(event)
    return state


def subscription(*topics: str) -> bytes:
    """What a consumer of version 1 says of itself: its topics, no user data, no partitions it owns."""
    encoded = [name.encode() for name in topics]
    names = b"".join(len(name).to_bytes(2, "big") + name for name in encoded)
    return b"\0\1" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff" + bytes(4)


def join(group_id: str = "g", member_id: str = "", **changes: object) -> Join:
    """A dynamic member of an old client: it is not sent away to come back with a member id."""
    fields: dict[str, object] = {
        "group_id": group_id,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": (Protocol("range", subscription("t")),),
        "member_id": member_id,
        "client_id": "c",
    }
    return Join(**(fields | changes))  # type: ignore[arg-type]  # a table of changes has no one type
