"""A host for one core without a log: it keeps the records in a list, and can crash.

Every event goes through its encoding on the way to `apply`, as it would after a restart.
"""

from random import Random

from ropewalk.base.ids import NO_PRODUCER, ProducerEpoch, ProducerId, TopicId
from ropewalk.broker.hosting.latest_records import LatestRecords
from ropewalk.groups.answers import Answer
from ropewalk.groups.commands import AnyCommand, CommitInTransaction, Join, Protocol
from ropewalk.groups.consumer.subscriptions import TopicFacts
from ropewalk.groups.core import GroupsCore
from ropewalk.groups.durable import DurableState
from ropewalk.groups.errors import GroupError
from ropewalk.groups.event_codec import decode_event, encode_event
from ropewalk.groups.events import Event
from ropewalk.groups.settings import GroupSettings
from ropewalk.groups.step import Step
from ropewalk.records.batch import decode_header
from ropewalk.records.marker import build_marker
from ropewalk.records.record import build_keyed


class FakeTopics:
    """Topics by name; ids are made of the names."""

    def __init__(self, **partition_counts: int) -> None:
        self.version = 0
        self._counts = partition_counts

    def set(self, name: str, partition_count: int) -> None:
        """Make a topic, or add partitions; 0 deletes it."""
        self.version += 1
        if partition_count:
            self._counts[name] = partition_count
        else:
            del self._counts[name]

    def find(self, name: str) -> TopicFacts | None:
        count = self._counts.get(name)
        return None if count is None else TopicFacts(topic_id(name), count)

    def name_of(self, wanted: TopicId) -> str | None:
        return next((name for name in self._counts if topic_id(name) == wanted), None)

    def names(self) -> list[str]:
        return list(self._counts)


def topic_id(name: str) -> TopicId:
    return TopicId(name.encode().ljust(16, b"."))


class Stage:
    def __init__(self, settings: GroupSettings | None = None, *, seed: int = 0, now_ms: int = 0) -> None:
        self.settings = settings or GroupSettings()
        self.now_ms = now_ms
        self.records: list[tuple[bytes, bytes | None]] = []
        self.enrolled: dict[int, int] = {}
        """The producers of the records that are part of a transaction, by the number of the record."""
        self.ends: list[tuple[int, int, bool]] = []
        """After how many records the transaction of which producer ended, and whether it was committed."""
        self.replies: dict[int, Answer | GroupError] = {}
        self._rng = Random(seed)
        self._token = 0
        self.topics = FakeTopics()
        self.core = GroupsCore(self.settings, self._rng, self.topics)
        self.core.on_loaded(now_ms)

    def ask(self, command: AnyCommand) -> int:
        """The token under which the reply is, or will be, in `replies`."""
        self._token += 1
        step = self.core.decide(self._token, command, self.now_ms)
        self.carry_out(step, command.producer_id if isinstance(command, CommitInTransaction) else None)
        return self._token

    def answer(self, command: AnyCommand) -> Answer | GroupError:
        """The reply to a command that does not wait for anyone."""
        return self.replies[self.ask(command)]

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        self.ends.append((len(self.records), producer_id, committed))
        self.core.apply_end(producer_id, committed, self.now_ms)

    def carry_out(self, step: Step, producer_id: int | None = None) -> None:
        for event in step.events:
            record = encode_event(event)
            if producer_id is not None:
                self.enrolled[len(self.records)] = producer_id
            self.records.append(record)
            read_back = decode_event(*record)
            assert read_back == event
            if producer_id is None:
                self.core.apply(event, self.now_ms)
            else:
                self.core.apply_pending(producer_id, event, self.now_ms)
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
        self.core = GroupsCore(self.settings, self._rng, self.topics)
        self.replay_into(self.core)
        self.core.on_loaded(self.now_ms)

    def replay_into(self, core: GroupsCore) -> None:
        """All records and the ends of transactions, in the order in which they were written."""
        ends = list(self.ends)
        for number in range(len(self.records) + 1):
            while ends and ends[0][0] == number:
                _, producer_id, committed = ends.pop(0)
                core.apply_end(producer_id, committed, self.now_ms)
            event = decode_event(*self.records[number]) if number < len(self.records) else None
            if event is not None and number in self.enrolled:
                core.apply_pending(self.enrolled[number], event, self.now_ms)
            elif event is not None:
                core.apply(event, self.now_ms)

    def loaded(self) -> DurableState:
        """As the host loads a shard: of every key the last record that counts, and what transactions have left open."""
        core, latest = GroupsCore(self.settings, self._rng, self.topics), LatestRecords()
        ends = list(self.ends)
        for number in range(len(self.records) + 1):
            while ends and ends[0][0] == number:
                _, producer_id, committed = ends.pop(0)
                _add(latest, build_marker(ProducerId(producer_id), ProducerEpoch(0), committed, 0, 0))
            if number < len(self.records):
                producer_id = self.enrolled.get(number, NO_PRODUCER)
                _add(
                    latest,
                    build_keyed(
                        [self.records[number]],
                        timestamp=0,
                        producer_id=ProducerId(producer_id),
                        is_transactional=producer_id != NO_PRODUCER,
                    ),
                )
        for key, value in latest.take():
            event = decode_event(key, value)
            if event is not None:
                core.apply(event, self.now_ms)
        for producer_id, (key, value) in latest.pending():
            event = decode_event(key, value)
            if event is not None:
                core.apply_pending(producer_id, event, self.now_ms)
        return core.durable

    def replayed(self) -> list[Event]:
        events = [decode_event(key, value) for key, value in self.records]
        return [event for event in events if event is not None]


def _add(latest: LatestRecords, batch: bytearray) -> None:
    latest.add(bytes(batch), 0, decode_header(batch))


def replay(events: list[Event]) -> DurableState:
    state = DurableState()
    for event in events:
        state.apply(event)
    return state


def subscription(*topics: str, owned: dict[str, list[int]] | None = None) -> bytes:
    """What a consumer of version 1 says of itself: its topics, no user data, the partitions it owns."""
    encoded = [name.encode() for name in topics]
    names = b"".join(len(name).to_bytes(2, "big") + name for name in encoded)
    shares = b""
    for name, partitions in (owned or {}).items():
        shares += len(name).to_bytes(2, "big") + name.encode() + len(partitions).to_bytes(4, "big")
        shares += b"".join(index.to_bytes(4, "big") for index in partitions)
    head = b"\0\1" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"
    return head + len(owned or {}).to_bytes(4, "big") + shares


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
