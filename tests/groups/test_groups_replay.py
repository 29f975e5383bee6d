"""Whatever is asked of a core, replaying its records, whole or compacted, rebuilds the durable state exactly."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.base.ids import TopicPartition
from ropewalk.groups.answers import Joined
from ropewalk.groups.commands import (
    Commit,
    CommitInTransaction,
    DeleteGroups,
    DeleteOffsets,
    Leave,
    LeavingMember,
    OffsetToCommit,
    Sync,
)
from ropewalk.groups.core import GroupsCore
from ropewalk.groups.event_codec import decode_event
from ropewalk.groups.events import Event
from ropewalk.groups.settings import GroupSettings
from tests.groups.stage import FakeTopics, Stage, join, replay

SETTINGS = GroupSettings(
    initial_rebalance_delay_ms=0, offsets_retention_ms=40_000, offsets_check_interval_ms=5_000
)

groups = st.sampled_from(["g", "h"])
topics = st.sampled_from(["t", "u"])
partitions = st.integers(0, 1)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), groups, topics, partitions),
        st.tuples(st.just("delete offset"), groups, topics, partitions),
        st.tuples(st.just("delete group"), groups, topics, partitions),
        st.tuples(st.just("delete topic"), groups, topics, partitions),
        st.tuples(st.just("join and sync"), groups, topics, partitions),
        st.tuples(st.just("leave"), groups, topics, partitions),
        st.tuples(st.just("wait"), groups, topics, partitions),
        st.tuples(st.just("crash"), groups, topics, partitions),
        st.tuples(st.sampled_from(["commit as 7", "commit as 8"]), groups, topics, partitions),
        st.tuples(
            st.sampled_from(["7 commits", "7 aborts", "8 commits", "8 aborts"]), groups, topics, partitions
        ),
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(actions)
def test_replaying_the_records_rebuilds_the_state(steps: list[tuple[str, str, str, int]]) -> None:
    stage = Stage(SETTINGS)
    joined: dict[str, Joined] = {}
    for number, (action, group_id, topic, partition) in enumerate(steps):
        place = TopicPartition(topic, partition)
        member = joined.get(group_id)
        member_id, generation = ("", -1) if member is None else (member.member_id, member.generation)
        match action:
            case "commit":
                offset = OffsetToCommit(topic, partition, number, metadata=str(number))
                stage.ask(Commit(group_id, (offset,), generation, member_id))
            case "delete offset":
                stage.ask(DeleteOffsets(group_id, (place,)))
            case "delete group":
                stage.ask(DeleteGroups((group_id, "unknown")))
            case "delete topic":
                stage.carry_out(stage.core.on_topics_deleted([topic]))
            case "join and sync":
                answer = stage.replies.get(stage.ask(join(group_id, instance_id="x")))
                if isinstance(answer, Joined):
                    joined[group_id] = answer
                    stage.ask(Sync(group_id, answer.generation, answer.member_id))
            case "leave":
                stage.ask(Leave(group_id, (LeavingMember(member_id),)))
                joined.pop(group_id, None)
            case "wait":
                stage.wait(9_000)
            case "crash":
                stage.crash()
            case "commit as 7" | "commit as 8":
                offset = OffsetToCommit(topic, partition, number, metadata=str(number))
                producer_id = int(action[-1])
                stage.ask(CommitInTransaction(group_id, producer_id, 0, (offset,), generation, member_id))
            case "7 commits" | "7 aborts" | "8 commits" | "8 aborts":
                stage.end_transaction(int(action[0]), committed=action.endswith("commits"))
        assert stage.loaded() == stage.core.durable
        replayed = GroupsCore(SETTINGS, Random(0), FakeTopics())
        stage.replay_into(replayed)
        assert replayed.durable == stage.core.durable
    for producer_id in (7, 8):
        stage.end_transaction(producer_id, committed=True)
    assert replay(compacted(stage)) == stage.core.durable


def test_transactions_come_to_what_their_order_in_the_log_says() -> None:
    """Against the plainest oracle there is: of what counts, the last in the log."""
    for seed in range(300):
        rng = Random(seed)
        stage = Stage(SETTINGS)
        for number in range(rng.randrange(3, 12)):
            offset = OffsetToCommit("t", rng.randrange(2), number)
            producer_id = rng.choice((7, 8))
            match rng.choice(("commit", "send", "send", "end", "end", "delete", "crash")):
                case "commit":
                    stage.ask(Commit("g", (offset,)))
                case "send":
                    stage.ask(CommitInTransaction("g", producer_id, 0, (offset,)))
                case "end":
                    stage.end_transaction(producer_id, committed=rng.random() < 0.7)
                case "delete":
                    stage.ask(DeleteOffsets("g", (TopicPartition("t", offset.partition),)))
                case "crash":
                    stage.crash()
        for producer_id in rng.sample((7, 8), 2):
            stage.end_transaction(producer_id, committed=rng.random() < 0.7)
        assert replay(compacted(stage)) == stage.core.durable, seed


def compacted(stage: Stage) -> list[Event]:
    """The last record of every key that counts; those of aborted transactions do not, and every transaction has ended."""
    kept: dict[bytes, bytes | None] = {}
    for number, (key, value) in enumerate(stage.records):
        producer_id = stage.enrolled.get(number)
        if producer_id is None or ends_well(stage, number, producer_id):
            kept[key] = value
    events = [decode_event(key, value) for key, value in kept.items() if value is not None]
    return [event for event in events if event is not None]


def ends_well(stage: Stage, number: int, producer_id: int) -> bool:
    return next(
        committed for after, whose, committed in stage.ends if whose == producer_id and after > number
    )


def test_a_restored_group_is_what_it_was() -> None:
    stage = Stage(SETTINGS)
    answer = stage.answer(join("g", instance_id="x"))
    assert isinstance(answer, Joined)
    stage.ask(Sync("g", 1, answer.member_id))
    before = stage.core._groups["g"]
    stage.crash()
    after = stage.core._groups["g"]
    assert after is not before
    assert after.recorded() == before.recorded()
