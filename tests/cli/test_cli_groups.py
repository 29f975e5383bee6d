"""`ropewalk group` as a user meets it, against the fake broker."""

import json

import pytest

from ropewalk.cli.durations import parse_duration
from ropewalk.views.group_reset import Aim, Bounds, Target, target_offset
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import describe_groups, offset_commit
from tests.cli.conftest import Ropewalk
from tests.cli.test_cli_commands import fill, lines
from tests.client.fake_broker import Fault
from tests.client.fake_groups import FakeGroup, FakeMember
from tests.client.loopback import LoopbackBroker


@pytest.fixture
def broker_with_groups(broker: LoopbackBroker) -> LoopbackBroker:
    """`orders` holds 3 and 2 records, timestamped 1000, 2000, …; `idle` has read some, `busy` is reading."""
    broker.cluster.add_topic("orders", 0, 0)
    fill(broker, "orders", b"a", b"b", b"c")
    fill(broker, "orders", b"d", b"e", partition=1)
    broker.cluster.groups["idle"] = FakeGroup(0, offsets={("orders", 0): 1, ("orders", 1): 2, ("gone", 0): 4})
    broker.cluster.groups["busy"] = FakeGroup(
        0, [FakeMember("m-1", ("orders",), {"orders": (0, 1)}, "static")], {("orders", 0): 3}
    )
    return broker


def test_groups_are_listed(broker_with_groups: LoopbackBroker, ropewalk: Ropewalk) -> None:
    result = ropewalk("group", "ls")
    assert lines(result.stdout) == [
        ["GROUP", "STATE", "TYPE", "PROTOCOL", "BROKER"],
        ["busy", "Stable", "classic", "consumer", "0"],
        ["idle", "Empty", "classic", "consumer", "0"],
    ]
    shown = json.loads(ropewalk("group", "ls", "-o", "json").stdout)
    assert shown[0] == {
        "group": "busy",
        "state": "Stable",
        "type": "classic",
        "protocol_type": "consumer",
        "coordinator": 0,
    }


def test_a_group_is_described(broker_with_groups: LoopbackBroker, ropewalk: Ropewalk) -> None:
    shown = lines(ropewalk("group", "describe", "busy").stdout)
    address = broker_with_groups.address
    assert " ".join(shown[0]) == (
        f"busy Stable consumer/range coordinator {address} 1 member lag 0 unknown for 1 partition"
    )
    assert shown[2] == ["m-1", "static", "client", "10.0.0.1", "orders:0,1"]
    assert shown[-2:] == [["orders", "0", "3", "3", "0", "m-1"], ["orders", "1", "-", "2", "-", "m-1"]]
    (described,) = json.loads(ropewalk("group", "describe", "busy", "-o", "json").stdout)
    assert described["members"][0]["partitions"][1] == {"topic": "orders", "partition": 1}
    assert described["offsets"][1] == {
        "topic": "orders",
        "partition": 1,
        "committed": None,
        "end": 2,
        "lag": None,
        "member": "m-1",
        "metadata": "",
    }


def test_lag_is_shown_by_partition_and_in_all(broker_with_groups: LoopbackBroker, ropewalk: Ropewalk) -> None:
    result = ropewalk("group", "lag")
    assert result.exit_code == 0, result.stderr
    assert ["idle", "orders", "0", "1", "3", "2"] in lines(result.stdout)
    assert ["idle", "gone", "0", "4", "-", "-"] in lines(result.stdout)
    assert lines(result.stdout)[-2:] == [["busy", "0", "1"], ["idle", "2", "1"]]
    (measured,) = json.loads(ropewalk("group", "lag", "idle", "-o", "json").stdout)
    assert (measured["group"], measured["lag"], measured["unknown"]) == ("idle", 2, 1)


def test_a_group_of_a_kind_that_cannot_be_described_still_has_a_lag(
    broker_with_groups: LoopbackBroker, ropewalk: Ropewalk
) -> None:
    broker_with_groups.broker.fail(describe_groups.API, Fault(1, ErrorCode.GROUP_ID_NOT_FOUND))
    (measured,) = json.loads(ropewalk("group", "lag", "busy", "-o", "json").stdout)
    assert [(row["partition"], row["lag"], row["member"]) for row in measured["partitions"]] == [(0, 0, None)]


@pytest.mark.parametrize(("lag_max", "exit_code"), [(0, 1), (1, 1), (2, 0)])
def test_a_lag_above_the_maximum_fails_the_command(
    lag_max: int, exit_code: int, broker_with_groups: LoopbackBroker, ropewalk: Ropewalk
) -> None:
    result = ropewalk("group", "lag", "--max", str(lag_max))
    assert result.exit_code == exit_code
    assert ["idle", "2", "1"] in lines(result.stdout)
    assert result.stderr == (f"ropewalk: idle is 2 behind; {lag_max} allowed\n" if exit_code else "")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(("--to-earliest",), [0, 0], id="earliest"),
        pytest.param(("--to-latest",), [3, 2], id="latest"),
        pytest.param(("--to-offset", "1"), [1, 1], id="an offset"),
        pytest.param(("--to-offset", "99"), [3, 2], id="an offset beyond the end"),
        pytest.param(("--to-datetime", "2000"), [1, 1], id="a time"),
        pytest.param(("--to-datetime", "2026-11-15T10:00"), [3, 2], id="a time after everything"),
        pytest.param(("--shift-by", "-1"), [0, 1], id="back"),
        pytest.param(("--shift-by", "1"), [2, 2], id="forward, to the end at most"),
        pytest.param(("--by-duration", "99999d"), [0, 0], id="long ago"),
        pytest.param(("--by-duration", "PT1H"), [3, 2], id="an hour ago"),
    ],
)
def test_offsets_are_reset_when_told_to(
    arguments: tuple[str, ...],
    expected: list[int],
    broker_with_groups: LoopbackBroker,
    ropewalk: Ropewalk,
) -> None:
    offsets = broker_with_groups.cluster.groups["idle"].offsets
    before = dict(offsets)
    tried = ropewalk("group", "reset", "idle", "--topic", "orders", *arguments, "-o", "json")
    assert tried.exit_code == 0, tried.stderr
    moves = json.loads(tried.stdout)
    assert [move["target"] for move in moves] == expected
    assert {move["status"] for move in moves} == {"would be reset"}
    assert offsets == before
    done = ropewalk("group", "reset", "idle", "--topic", "orders", *arguments, "--execute")
    assert done.exit_code == 0, done.stderr
    assert [offsets["orders", 0], offsets["orders", 1]] == expected
    assert offsets["gone", 0] == 4


def test_some_partitions_can_be_reset_and_a_group_made(
    broker_with_groups: LoopbackBroker, ropewalk: Ropewalk
) -> None:
    groups = broker_with_groups.cluster.groups
    assert ropewalk("group", "reset", "idle", "-t", "orders:1", "--to-earliest", "--execute").exit_code == 0
    assert groups["idle"].offsets == {("orders", 0): 1, ("orders", 1): 0, ("gone", 0): 4}
    result = ropewalk("group", "reset", "fresh", "-t", "orders", "--to-latest", "--execute")
    assert (result.exit_code, "there is no group fresh yet" in result.stderr) == (0, True)
    assert groups["fresh"].offsets == {("orders", 0): 3, ("orders", 1): 2}


def test_several_topics_are_reset_at_once(broker_with_groups: LoopbackBroker, ropewalk: Ropewalk) -> None:
    broker_with_groups.cluster.add_topic("bills", 0, 0)
    fill(broker_with_groups, "bills", b"a", b"b")
    offsets = broker_with_groups.cluster.groups["idle"].offsets
    before = dict(offsets)
    arguments = ("group", "reset", "idle", "-t", "orders:0", "-t", "bills", "--to-datetime", "2000")
    moves = json.loads(ropewalk(*arguments, "-o", "json").stdout)
    assert [(move["topic"], move["partition"], move["target"]) for move in moves] == [
        ("bills", 0, 1),
        ("bills", 1, 0),
        ("orders", 0, 1),
    ]
    assert offsets == before
    assert ropewalk(*arguments, "--execute").exit_code == 0
    assert offsets == before | {("bills", 0): 1, ("bills", 1): 0, ("orders", 0): 1}


def test_a_group_with_members_is_not_reset(broker_with_groups: LoopbackBroker, ropewalk: Ropewalk) -> None:
    arguments = ("group", "reset", "busy", "--all-topics", "--to-earliest")
    tried = ropewalk(*arguments)
    assert tried.exit_code == 0
    assert "--execute will be refused until they are stopped" in tried.stderr
    refused = ropewalk(*arguments, "--execute")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "busy has 1 member (client at 10.0.0.1), which would go on" in refused.stderr
    assert broker_with_groups.broker.asked(offset_commit.OffsetCommitRequest) == 0


def test_a_member_that_comes_in_between_is_reported(
    broker_with_groups: LoopbackBroker, ropewalk: Ropewalk
) -> None:
    broker_with_groups.broker.fail(offset_commit.API, Fault(1, ErrorCode.UNKNOWN_MEMBER_ID))
    result = ropewalk("group", "reset", "idle", "-t", "orders:0", "--to-earliest", "--execute")
    assert result.exit_code == 1
    assert "(UNKNOWN_MEMBER_ID)" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("describe", "nobody"), "(GROUP_ID_NOT_FOUND); `ropewalk group ls` shows what is there"),
        (("lag", "nobody"), "GROUP_ID_NOT_FOUND"),
        (("delete", "busy", "--yes"), "(NON_EMPTY_GROUP); stop its members first"),
        (("delete", "busy"), "nobody is there to ask; --yes deletes without asking"),
        (("delete", "busy", "-y", "-t", "orders"), "GROUP_SUBSCRIBED_TO_TOPIC"),
        (("delete", "idle", "-y", "-t", "bills"), "idle has committed no offset of bills"),
        (("reset", "nobody", "--all-topics", "--to-latest"), "nobody has committed nothing"),
        (("reset", "idle", "--all-topics", "--to-latest"), "gone-0 is not there or has no leader"),
        (("reset", "busy", "-t", "orders:1", "--shift-by", "1"), "nothing is committed for orders-1"),
        (("reset", "idle", "-t", "bills", "--to-latest"), "UNKNOWN_TOPIC_OR_PARTITION"),
        (("reset", "idle", "-t", "orders:7", "--to-latest"), "orders-7 is not there"),
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: tuple[str, ...], expected: str, broker_with_groups: LoopbackBroker, ropewalk: Ropewalk
) -> None:
    result = ropewalk("group", *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert expected in result.stderr.splitlines()[-1]


def test_groups_and_single_offsets_are_deleted(
    broker_with_groups: LoopbackBroker, ropewalk: Ropewalk
) -> None:
    groups = broker_with_groups.cluster.groups
    assert ropewalk("group", "delete", "idle", "-t", "orders:0", "-t", "gone", "--yes").exit_code == 0
    assert groups["idle"].offsets == {("orders", 1): 2}
    result = ropewalk("group", "delete", "idle", "busy", "--yes", "-o", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)[0] == {"group": "idle", "status": "deleted"}
    assert list(groups) == ["busy"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("describe",),
        ("lag", "--max", "-1"),
        ("reset", "idle", "--to-latest"),
        ("reset", "idle", "--all-topics", "-t", "orders", "--to-latest"),
        ("reset", "idle", "--all-topics"),
        ("reset", "idle", "--all-topics", "--to-latest", "--to-earliest"),
        ("reset", "idle", "--all-topics", "--to-datetime", "soon"),
        ("reset", "idle", "--all-topics", "--by-duration", "long"),
        ("reset", "idle", "--topic", "orders:x", "--to-latest"),
        ("reset", "idle", "--topic", ":0", "--to-latest"),
        ("delete", "idle", "--yes", "--topic", "orders:"),
    ],
)
def test_a_wrong_call_exits_with_2(
    arguments: tuple[str, ...], broker_with_groups: LoopbackBroker, ropewalk: Ropewalk
) -> None:
    result = ropewalk("group", *arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.stderr


@pytest.mark.parametrize(
    ("target", "committed", "bounds", "expected"),
    [
        (Target(Aim.SHIFT, 5), None, Bounds(0, 9), None),
        (Target(Aim.SHIFT, -5), 7, Bounds(4, 9), 4),
        (Target(Aim.OFFSET, 2), None, Bounds(4, 9), 4),
        (Target(Aim.TIME, 1), None, Bounds(4, 9, 6), 6),
        (Target(Aim.TIME, 1), None, Bounds(4, 9, None), 9),
        (Target(Aim.AGO, 1), 3, Bounds(4, 9, 4), 4),
    ],
)
def test_a_target_stays_within_what_there_is(
    target: Target, committed: int | None, bounds: Bounds, expected: int | None
) -> None:
    assert target_offset(target, committed, bounds) == expected


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [("250ms", 250), ("90s", 90_000), ("15m", 900_000), ("P1DT2H", 93_600_000), ("PT1M5S", 65_000)],
)
def test_durations_are_read(text: str, expected_ms: int) -> None:
    assert parse_duration(text, option="--by-duration") == expected_ms
