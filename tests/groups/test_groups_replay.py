"""Whatever is asked of a core, replaying its records, whole or compacted, rebuilds the durable state exactly."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.base.ids import TopicPartition
from ropewalk.groups.answers import Joined
from ropewalk.groups.commands import (
    Commit,
    DeleteGroups,
    DeleteOffsets,
    Leave,
    LeavingMember,
    OffsetToCommit,
    Sync,
)
from ropewalk.groups.event_codec import decode_event
from ropewalk.groups.settings import GroupSettings
from tests.groups.stage import Stage, join, replay

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
        assert replay(stage.replayed()) == stage.core.durable
    compacted = dict(stage.records)
    kept = [decode_event(key, value) for key, value in compacted.items() if value is not None]
    assert replay([event for event in kept if event is not None]) == stage.core.durable


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
