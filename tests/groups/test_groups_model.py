"""Random schedules: clients that stall, restart and lie about their generation, and a host whose power is cut.

The host appends and applies at once and holds replies back until what they depend on is committed; a power cut takes
away what is not committed, and with it the held replies. What is checked is checked from outside, by what was said to
whom: one owner of a partition in a generation (G1), no commit of a stale generation, an acknowledged commit stays
(G2), what was never committed is never an offset (G3), and whoever waits is answered.
"""

from collections import deque
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.base.ids import TopicPartition
from ropewalk.groups.answers import (
    Answer,
    Committed,
    GroupsListed,
    GroupState,
    Joined,
    OffsetsFetched,
    Synced,
)
from ropewalk.groups.commands import (
    AnyCommand,
    Assignment,
    Commit,
    FetchOffsets,
    Heartbeat,
    Join,
    Leave,
    LeavingMember,
    ListGroups,
    OffsetToCommit,
    Protocol,
    Sync,
)
from ropewalk.groups.core import GroupsCore
from ropewalk.groups.errors import FencedInstance, GroupError, MemberIdRequired, UnknownMember
from ropewalk.groups.event_codec import decode_event, encode_event
from ropewalk.groups.events import Event, GenerationRecorded
from ropewalk.groups.settings import GroupSettings
from ropewalk.groups.step import Reply, Step
from tests.groups.stage import FakeTopics, replay, subscription

PARTITIONS = range(6)
SESSION_MS = 10_000
REBALANCE_MS = 15_000


@dataclass(eq=False)
class Client:
    name: str
    instance_id: str | None
    is_modern: bool
    member_id: str = ""
    generation: int = -1
    joined: Joined | None = None
    waits_for: int | None = None
    is_running: bool = True
    former: deque[tuple[str, int]] = field(default_factory=lambda: deque(maxlen=5))
    """Who it was, to be sent again as if delayed."""


class Host:
    """A log with a committed end, and replies that wait for it."""

    def __init__(self, chance: Random, initial_delay_ms: int) -> None:
        self.now_ms = 0
        self.records: list[tuple[bytes, bytes | None]] = []
        self.committed = 0
        self.generation_told = 0
        self._held: deque[tuple[int, Reply]] = deque()
        self._settings = GroupSettings(initial_rebalance_delay_ms=initial_delay_ms)
        self._chance = chance
        self.core = self._load()

    def carry_out(self, step: Step) -> None:
        for event in step.events:
            self.records.append(encode_event(event))
            self.core.apply(event, self.now_ms)
            if isinstance(event, GenerationRecorded):
                self.generation_told = max(self.generation_told, event.generation)
        for reply in step.replies:
            if isinstance(reply.answer, Joined):
                self.generation_told = max(self.generation_told, reply.answer.generation)
            self._held.append((len(self.records), reply))

    def commit_more(self, count: int) -> list[Reply]:
        self.committed = min(len(self.records), self.committed + count)
        released = []
        while self._held and self._held[0][0] <= self.committed:
            released.append(self._held.popleft()[1])
        return released

    def cut_power(self) -> None:
        del self.records[self.committed :]
        self._held.clear()
        self.core = self._load()

    def events(self) -> list[Event]:
        events = [decode_event(key, value) for key, value in self.records]
        return [event for event in events if event is not None]

    def _load(self) -> GroupsCore:
        core = GroupsCore(self._settings, self._chance, FakeTopics())
        events = self.events()
        for event in events:
            core.apply(event, self.now_ms)
        core.on_loaded(self.now_ms)
        self.generation_told = max(
            (event.generation for event in events if isinstance(event, GenerationRecorded)), default=0
        )
        return core


class World:
    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.host = Host(self.chance, self.chance.choice([0, 3000]))
        self.clients = [
            Client(f"c{number}", f"i{number}" if number % 2 else None, self.chance.random() < 0.7)
            for number in range(5)
        ]
        self.token = 0
        self.asked: dict[int, tuple[Client, AnyCommand]] = {}
        self.owners: dict[tuple[int, int], str] = {}
        self.offset = 0
        self.sent: dict[int, set[int]] = {partition: set() for partition in PARTITIONS}
        self.acknowledged: dict[int, int] = {}
        self.expected: dict[int, dict[int, int]] = {}
        """For each fetch under way: what was acknowledged when it was asked."""
        self.may_be_taken: dict[int, bool] = {}
        self.synced_count = 0

    def act(self) -> None:
        client = self.chance.choice(self.clients)
        match self.chance.choices(
            ["go on", "commit", "stale", "fetch", "wait", "power", "restart", "leave", "pause", "hang up"],
            [40, 12, 6, 6, 20, 1, 2, 2, 2, 1],
        )[0]:
            case "go on" if client.is_running:
                self.go_on(client)
            case "commit" if client.is_running:
                self.commit(client, client.member_id, client.generation)
            case "stale" if client.former:
                self.commit(client, *self.chance.choice(client.former))
            case "fetch":
                places = tuple(TopicPartition("t", partition) for partition in PARTITIONS)
                token = self.ask(client, FetchOffsets("g", places))
                self.expected[token] = dict(self.acknowledged)
            case "wait":
                self.wait(self.chance.choice([1, 500, 3000, 6000]))
            case "power":
                self.cut_power()
            case "restart":
                self.reset(client)
            case "leave" if client.is_running:
                self.ask(client, Leave("g", (LeavingMember(client.member_id, client.instance_id),)))
                self.reset(client)
            case "pause":
                client.is_running = not client.is_running
            case "hang up":
                self.hang_up(client)
        self.release(self.host.commit_more(self.chance.choice([0, 1, 10])))

    def go_on(self, client: Client) -> None:
        """What a well-behaved client does next; now and then one loses patience and asks again."""
        if client.waits_for is not None and self.chance.random() < 0.95:
            return
        if client.joined is not None:
            joined, client.joined = client.joined, None
            shares: dict[str, list[int]] = {member.member_id: [] for member in joined.members}
            for partition in PARTITIONS if shares and not joined.skip_assignment else ():
                shares[self.chance.choice(list(shares))].append(partition)
            assignments = tuple(Assignment(name, bytes(share)) for name, share in shares.items())
            sync = Sync("g", joined.generation, client.member_id, client.instance_id, assignments=assignments)
            client.waits_for = self.ask(client, sync)
        elif client.generation < 0 or self.chance.random() < 0.05:
            speaks = self.chance.choice([("range",), ("range", "sticky"), ("sticky", "range")])
            join = Join(
                group_id="g",
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                protocol_type="consumer",
                protocols=tuple(Protocol(name, subscription("t")) for name in speaks),
                member_id=client.member_id,
                instance_id=client.instance_id,
                client_id=client.name,
                requires_known_member=client.is_modern,
                understands_skip_assignment=client.is_modern,
            )
            client.waits_for = self.ask(client, join)
        else:
            beat = Heartbeat("g", client.generation, client.member_id, client.instance_id)
            client.waits_for = self.ask(client, beat)

    def commit(self, client: Client, member_id: str, generation: int) -> None:
        self.offset += 1
        partition = self.chance.choice(PARTITIONS)
        offsets = (OffsetToCommit("t", partition, self.offset),)
        is_current = generation in (-1, self.host.generation_told)
        token = self.ask(client, Commit("g", offsets, generation, member_id, client.instance_id))
        self.may_be_taken[token] = is_current
        self.sent[partition].add(self.offset)

    def ask(self, client: Client, command: AnyCommand) -> int:
        self.token += 1
        self.asked[self.token] = (client, command)
        self.host.carry_out(self.host.core.decide(self.token, command, self.host.now_ms))
        return self.token

    def release(self, replies: list[Reply]) -> None:
        for reply in replies:
            if reply.token in self.asked:  # else it was hung up on while the reply was held
                client, command = self.asked.pop(reply.token)
                self.hear(client, reply.token, command, reply.answer)

    def hear(self, client: Client, token: int, command: AnyCommand, answer: Answer | GroupError) -> None:
        is_awaited = client.waits_for == token
        if is_awaited:
            client.waits_for = None
        match answer:
            case Joined() if is_awaited:
                client.member_id, client.generation, client.joined = (
                    answer.member_id,
                    answer.generation,
                    answer,
                )
                client.former.append((answer.member_id, answer.generation))
            case Synced(assignment=assignment):
                assert isinstance(command, Sync)
                self.synced_count += 1
                owner = command.instance_id or command.member_id
                for partition in assignment:
                    known = self.owners.setdefault((command.generation, partition), owner)
                    assert known == owner, f"t-{partition} has two owners in generation {command.generation}"
            case MemberIdRequired() if is_awaited:
                client.member_id = answer.member_id
            case UnknownMember() | FencedInstance() if is_awaited:
                client.member_id, client.generation, client.joined = "", -1, None
            case GroupError() if is_awaited:
                client.generation, client.joined = -1, None
            case Committed((None,)):
                assert isinstance(command, Commit)
                assert self.may_be_taken[token], f"generation {command.generation} was over"
                place = command.offsets[0]
                self.acknowledged[place.partition] = max(
                    place.offset, self.acknowledged.get(place.partition, 0)
                )
            case OffsetsFetched(offsets):
                for entry in offsets:
                    self.check_offset(token, entry.topic_partition.partition, entry.committed)
            case _:
                pass

    def check_offset(self, token: int, partition: int, committed: object) -> None:
        promised = self.expected[token].get(partition, 0)
        if committed is None:
            assert promised == 0, f"t-{partition} was acknowledged at {promised} and is gone"
        else:
            offset = committed.offset  # type: ignore[attr-defined]
            assert offset in self.sent[partition], f"nobody committed {offset} for t-{partition}"
            assert offset >= promised

    def wait(self, duration_ms: int) -> None:
        end_ms = self.host.now_ms + duration_ms
        while (due_ms := self.host.core.deadline_ms()) is not None and due_ms <= end_ms:
            self.host.now_ms = max(self.host.now_ms, int(due_ms))
            self.host.carry_out(self.host.core.tick(self.host.now_ms))
        self.host.now_ms = end_ms

    def cut_power(self) -> None:
        self.host.cut_power()
        self.asked.clear()
        for client in self.clients:
            client.waits_for = client.joined = None

    def hang_up(self, client: Client) -> None:
        """The connection breaks and the client goes on as who it was."""
        for token in [token for token, (asker, _) in self.asked.items() if asker is client]:
            self.host.core.forget(token)
            del self.asked[token]
        client.waits_for = client.joined = None
        client.generation = -1

    def reset(self, client: Client) -> None:
        """Another process under the same name."""
        self.hang_up(client)
        client.member_id = ""

    def end(self) -> None:
        """Nobody says anything any more, and everything that was promised comes."""
        self.wait(10 * (REBALANCE_MS + SESSION_MS))
        self.release(self.host.commit_more(len(self.host.records)))
        assert self.asked == {}, "someone still waits"
        token = self.ask(
            self.clients[0], FetchOffsets("g", tuple(TopicPartition("t", n) for n in PARTITIONS))
        )
        self.expected[token] = dict(self.acknowledged)
        self.ask(self.clients[0], ListGroups())
        for reply in self.host.commit_more(0):
            if isinstance(reply.answer, GroupsListed):
                assert all(group.state is GroupState.EMPTY for group in reply.answer.groups)
            else:
                self.hear(self.clients[0], reply.token, ListGroups(), reply.answer)
        assert replay(self.host.events()) == self.host.core.durable


def run(seed: int, step_count: int) -> World:
    world = World(seed)
    for _ in range(step_count):
        world.act()
    world.end()
    return world


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 2**32))
def test_no_schedule_breaks_a_promise(seed: int) -> None:
    run(seed, 400)


@pytest.mark.parametrize("seed", range(3))
def test_schedules_reach_what_they_are_meant_to_test(seed: int) -> None:
    world = run(seed, 2000)
    assert world.synced_count > 20
    assert len({generation for generation, _ in world.owners}) > 5
    assert len(world.acknowledged) == len(PARTITIONS)
