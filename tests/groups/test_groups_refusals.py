"""Tables of what is refused, and with what."""

from collections.abc import Callable

import pytest

from ropewalk.base.ids import TopicPartition
from ropewalk.base.limits import (
    GROUP_METADATA_BYTES_MAX,
    GROUP_NAME_CHARACTERS_MAX,
    GROUP_PENDING_MEMBERS_MAX,
)
from ropewalk.groups.answers import (
    Committed,
    GroupsDeleted,
    GroupsDescribed,
    GroupsListed,
    Joined,
    Left,
    OffsetsDeleted,
    OffsetsFetched,
    Synced,
)
from ropewalk.groups.commands import (
    AnyCommand,
    Commit,
    DeleteGroups,
    DeleteOffsets,
    DescribeGroups,
    FetchOffsets,
    Heartbeat,
    Leave,
    LeavingMember,
    ListGroups,
    OffsetToCommit,
    Protocol,
    Sync,
)
from ropewalk.groups.errors import (
    FencedInstance,
    GroupError,
    GroupFull,
    GroupNotEmpty,
    InconsistentProtocol,
    InvalidGroupId,
    InvalidInstanceId,
    InvalidSessionTimeout,
    MemberIdRequired,
    OffsetMetadataTooLarge,
    RebalanceInProgress,
    StaleGeneration,
    SubscribedToTopic,
    UnknownGroup,
    UnknownMember,
)
from ropewalk.groups.settings import GroupSettings
from tests.groups.stage import Stage, join

TOO_LONG = "x" * (GROUP_NAME_CHARACTERS_MAX + 1)
T0 = (OffsetToCommit("t", 0, 5),)


def empty() -> tuple[Stage, str]:
    return Stage(GroupSettings(initial_rebalance_delay_ms=0)), "nobody"


def completing() -> tuple[Stage, str]:
    """A static member leads generation 1 and has not assigned yet."""
    stage, _ = empty()
    joined = stage.answer(join(instance_id="x"))
    assert isinstance(joined, Joined)
    return stage, joined.member_id


def stable() -> tuple[Stage, str]:
    stage, member_id = completing()
    assert isinstance(stage.answer(Sync("g", 1, member_id)), Synced)
    return stage, member_id


def preparing() -> tuple[Stage, str]:
    """A second member has joined, the first has not yet."""
    stage, member_id = stable()
    assert stage.ask(join()) not in stage.replies
    return stage, member_id


REFUSED: list[tuple[str, Callable[[], tuple[Stage, str]], Callable[[str], AnyCommand], type[GroupError]]] = [
    ("join without a group id", empty, lambda _: join(""), InvalidGroupId),
    ("join with an endless group id", empty, lambda _: join(TOO_LONG), InvalidGroupId),
    ("join with an empty instance id", empty, lambda _: join(instance_id=""), InvalidInstanceId),
    ("join with an endless instance id", empty, lambda _: join(instance_id=TOO_LONG), InvalidInstanceId),
    ("a session too short", empty, lambda _: join(session_timeout_ms=5_999), InvalidSessionTimeout),
    ("a session too long", empty, lambda _: join(session_timeout_ms=1_800_001), InvalidSessionTimeout),
    ("join without protocols", empty, lambda _: join(protocols=()), InconsistentProtocol),
    ("join without a type", empty, lambda _: join(protocol_type=""), InconsistentProtocol),
    ("an endless type", empty, lambda _: join(protocol_type=TOO_LONG), InconsistentProtocol),
    (
        "an endless protocol",
        empty,
        lambda _: join(protocols=(Protocol(TOO_LONG, b""),)),
        InconsistentProtocol,
    ),
    (
        "a member with too much to say",
        empty,
        lambda _: join(protocols=(Protocol("a", bytes(GROUP_METADATA_BYTES_MAX)),)),
        GroupFull,
    ),
    (
        "a member with too much to say beside the others",
        stable,
        lambda _: join(protocols=(Protocol("a", bytes(GROUP_METADATA_BYTES_MAX - 1)),)),
        GroupFull,
    ),
    ("join as nobody's id", empty, lambda _: join("g", "z"), UnknownMember),
    ("join of a newer client", empty, lambda _: join(requires_known_member=True), MemberIdRequired),
    ("sync without a group", empty, lambda _: Sync("g", 1, "z"), UnknownMember),
    ("sync without a group id", empty, lambda _: Sync("", 1, "z"), InvalidGroupId),
    ("heartbeat without a group", empty, lambda _: Heartbeat("g", 1, "z"), UnknownMember),
    ("heartbeat without a group id", empty, lambda _: Heartbeat("", 1, "z"), InvalidGroupId),
    ("leave without a group id", empty, lambda _: Leave("", ()), InvalidGroupId),
    ("commit of a generation without a group", empty, lambda _: Commit("g", T0, 1, "z"), UnknownGroup),
    (
        "the same from a client that does not know epochs",
        empty,
        lambda _: Commit("g", T0, 1, "z", speaks_epochs=False),
        StaleGeneration,
    ),
    ("commit to an endless group id", empty, lambda _: Commit(TOO_LONG, T0), InvalidGroupId),
    ("delete offsets of no group", empty, lambda _: DeleteOffsets("g", ()), UnknownGroup),
    ("join of another type", stable, lambda _: join(protocol_type="connect"), InconsistentProtocol),
    ("join as another id", stable, lambda _: join("g", "z"), UnknownMember),
    ("join as a fenced id", stable, lambda _: join("g", "z", instance_id="x"), FencedInstance),
    ("join as an unknown instance", stable, lambda m: join("g", m, instance_id="y"), UnknownMember),
    ("sync of a stranger", stable, lambda _: Sync("g", 1, "z"), UnknownMember),
    ("sync of the next generation", stable, lambda m: Sync("g", 2, m), StaleGeneration),
    ("sync of a fenced id", stable, lambda _: Sync("g", 1, "z", "x"), FencedInstance),
    ("sync of another type", stable, lambda m: Sync("g", 1, m, None, "connect"), InconsistentProtocol),
    (
        "sync of another protocol",
        completing,
        lambda m: Sync("g", 1, m, None, None, "b"),
        InconsistentProtocol,
    ),
    ("sync while preparing", preparing, lambda m: Sync("g", 1, m), RebalanceInProgress),
    ("heartbeat of a former generation", stable, lambda m: Heartbeat("g", 0, m), StaleGeneration),
    ("heartbeat of a fenced id", stable, lambda _: Heartbeat("g", 1, "z", "x"), FencedInstance),
    ("heartbeat while preparing", preparing, lambda m: Heartbeat("g", 1, m), RebalanceInProgress),
    ("commit of a stranger", stable, lambda _: Commit("g", T0, 1, "z"), UnknownMember),
    ("commit of nobody", stable, lambda _: Commit("g", T0), UnknownMember),
    ("commit without a generation", stable, lambda m: Commit("g", T0, -1, m), StaleGeneration),
    ("commit of a former generation", stable, lambda m: Commit("g", T0, 0, m), StaleGeneration),
    ("commit of the next generation", stable, lambda m: Commit("g", T0, 2, m), StaleGeneration),
    ("commit of a fenced id", stable, lambda _: Commit("g", T0, 1, "z", "x"), FencedInstance),
    ("commit before sync", completing, lambda m: Commit("g", T0, 1, m), RebalanceInProgress),
]


@pytest.mark.parametrize(
    ("begin", "ask", "expected"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_it_is_refused(
    begin: Callable[[], tuple[Stage, str]], ask: Callable[[str], AnyCommand], expected: type[GroupError]
) -> None:
    stage, member_id = begin()
    records = list(stage.records)
    assert type(stage.answer(ask(member_id))) is expected
    assert stage.records == records


def test_what_a_refused_join_leaves_behind_is_nothing() -> None:
    stage, _ = empty()
    stage.answer(join(protocols=()))
    assert stage.answer(ListGroups()) == GroupsListed(())
    assert stage.core.deadline_ms() is None


def test_a_commit_while_preparing_is_taken_from_the_current_generation() -> None:
    stage, member_id = preparing()
    assert stage.answer(Commit("g", T0, 1, member_id)) == Committed((None,))


def test_metadata_is_bounded_for_each_offset_alone() -> None:
    stage, _ = empty()
    offsets = (OffsetToCommit("t", 0, 5, metadata="é" * 2048), OffsetToCommit("t", 1, 6, metadata="x" * 4097))
    answer = stage.answer(Commit("g", offsets))
    assert isinstance(answer, Committed)
    assert [type(result) for result in answer.offsets] == [type(None), OffsetMetadataTooLarge]
    places = (TopicPartition("t", 0), TopicPartition("t", 1))
    fetched = stage.answer(FetchOffsets("g", places))
    assert isinstance(fetched, OffsetsFetched)
    assert [entry.committed is None for entry in fetched.offsets] == [False, True]


def test_offsets_of_members_that_cannot_be_understood_are_kept() -> None:
    stage, _ = empty()
    stage.ask(Commit("g", T0))
    stage.ask(join(protocols=(Protocol("range", b"not a subscription"),)))
    answer = stage.answer(DeleteOffsets("g", (TopicPartition("t", 0),)))
    assert isinstance(answer, OffsetsDeleted)
    assert isinstance(answer.partitions[0], SubscribedToTopic)


def test_offsets_of_another_protocol_type_are_deleted_only_without_members() -> None:
    stage, _ = empty()
    stage.ask(Commit("g", T0))
    joined = stage.answer(join(protocol_type="connect"))
    assert isinstance(joined, Joined)
    delete = DeleteOffsets("g", (TopicPartition("t", 0),))
    assert isinstance(stage.answer(delete), GroupNotEmpty)
    stage.ask(Leave("g", (LeavingMember(joined.member_id),)))
    assert stage.answer(delete) == OffsetsDeleted((None,))


def test_groups_are_deleted_one_by_one() -> None:
    stage, _ = stable()
    stage.ask(Commit("stored", T0))
    answer = stage.answer(DeleteGroups(("g", "stored", "stored", "unknown")))
    assert isinstance(answer, GroupsDeleted)
    assert [type(result) for result in answer.groups] == [
        GroupNotEmpty,
        type(None),
        UnknownGroup,
        UnknownGroup,
    ]


def test_an_unknown_group_is_described_as_such() -> None:
    stage, _ = stable()
    answer = stage.answer(DescribeGroups(("unknown", "g")))
    assert isinstance(answer, GroupsDescribed)
    assert isinstance(answer.groups[0], UnknownGroup)


def test_groups_are_listed_by_state_in_any_case() -> None:
    stage, _ = stable()
    stage.ask(Commit("stored", T0))
    for states, expected in [((), ["g", "stored"]), (("empty",), ["stored"]), (("STABLE", "Dead"), ["g"])]:
        answer = stage.answer(ListGroups(states))
        assert isinstance(answer, GroupsListed)
        assert [group.group_id for group in answer.groups] == expected


def test_member_ids_are_not_given_out_without_end() -> None:
    stage, _ = empty()
    newcomer = join(requires_known_member=True)
    for _ in range(GROUP_PENDING_MEMBERS_MAX):
        assert isinstance(stage.answer(newcomer), MemberIdRequired)
    assert isinstance(stage.answer(newcomer), GroupFull)
    stage.wait(10_000)
    assert stage.answer(ListGroups()) == GroupsListed(())


def test_leaving_a_group_that_is_not_there_is_refused_for_each() -> None:
    stage, _ = empty()
    answer = stage.answer(Leave("g", (LeavingMember("a"), LeavingMember("b"))))
    assert isinstance(answer, Left)
    assert [type(result) for result in answer.members] == [UnknownMember, UnknownMember]
