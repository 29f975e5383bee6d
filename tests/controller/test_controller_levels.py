"""Which level a cluster works at, and which nodes may be part of it."""

import pytest

from ropewalk.base.errors import LevelRefused, NotInForce, UnreadableMetadata, VersionRefused
from ropewalk.base.ids import NodeId
from ropewalk.base.levels import Software
from ropewalk.controller.levels import check_software, decide_first_level, decide_raise_level
from ropewalk.metadata.image import Image
from ropewalk.metadata.levels import check_read, check_written, unreadable
from ropewalk.metadata.records import (
    BrokerMaintenance,
    BrokerRegistered,
    BrokerRemoved,
    BrokerState,
    ClusterCreated,
    LevelChanged,
    decode_records,
    encode_records,
)

NODE = NodeId(7)
OLD = Software("0.1.0", 1, 1)
MIDDLE = Software("0.2.3", 1, 2)
NEW = Software("0.3.0", 2, 3)
SILENT = Software("", 1, 1)


def at(level: int) -> Image:
    image = Image()
    image.apply(ClusterCreated("c"))
    if level:
        image.apply(LevelChanged(level))
    return image


def test_a_new_cluster_works_at_the_newest_level_and_an_old_one_at_the_first() -> None:
    assert decide_first_level(Image(), MIDDLE) == [LevelChanged(2)]
    assert decide_first_level(at(0), MIDDLE) == [LevelChanged(1)]
    assert decide_first_level(at(1), MIDDLE) == []


@pytest.mark.parametrize(
    ("level", "software", "others", "refusal"),
    [
        pytest.param(1, OLD, [OLD], None, id="the same"),
        pytest.param(1, MIDDLE, [OLD], None, id="one release newer"),
        pytest.param(1, OLD, [MIDDLE], None, id="one release older"),
        pytest.param(2, OLD, [MIDDLE], "start a newer version there", id="older than the level"),
        pytest.param(1, NEW, [OLD], "start an older version there", id="newer than the level"),
        pytest.param(2, NEW, [MIDDLE], None, id="next to the level"),
        pytest.param(
            2, NEW, [MIDDLE, OLD], "version 0.1.0: nodes may be one", id="two releases newer than one"
        ),
        pytest.param(1, OLD, [Software("0.3.0", 1, 3)], "nodes may be one release apart", id="two older"),
        pytest.param(1, SILENT, [OLD], None, id="from before levels"),
        pytest.param(1, OLD, [SILENT], None, id="among those from before levels"),
        pytest.param(2, SILENT, [MIDDLE], "of version unknown", id="from before levels, too late"),
        pytest.param(0, OLD, [], None, id="metadata from before levels"),
    ],
)
def test_who_may_be_part_of_a_cluster(
    level: int, software: Software, others: list[Software], refusal: str | None
) -> None:
    if refusal is None:
        check_software(at(level), NODE, software, others)
        return
    with pytest.raises(VersionRefused, match=refusal) as refused:
        check_software(at(level), NODE, software, others)
    assert "\n" not in str(refused.value)
    assert "node 7" in str(refused.value)


def with_nodes(level: int, *software: Software, away: tuple[int, ...] = ()) -> Image:
    image = at(level)
    for number, each in enumerate(software):
        state = BrokerState.FENCED if number in away else BrokerState.ACTIVE
        image.apply(
            BrokerRegistered(
                NodeId(number),
                image.end_offset,
                bytes([number] * 16),
                (),
                state=state,
                version=each.version,
                level_min=each.level_min,
                level_max=each.level_max,
            )
        )
    return image


def test_a_level_rises_when_all_registered_nodes_know_it() -> None:
    assert decide_raise_level(with_nodes(1, MIDDLE, MIDDLE), MIDDLE) == [LevelChanged(2)]
    assert decide_raise_level(with_nodes(1, MIDDLE, OLD), MIDDLE) == []
    assert decide_raise_level(with_nodes(2, MIDDLE), MIDDLE) == []


@pytest.mark.parametrize(
    ("image", "level", "reason"),
    [
        pytest.param(
            with_nodes(1, MIDDLE, OLD), 2, "node 1 is of version 0.1.0, which works at level 1", id="old"
        ),
        pytest.param(
            with_nodes(1, MIDDLE, OLD, away=(1,)), 2, "it is away", id="one that is away would be shut out"
        ),
        pytest.param(with_nodes(1, MIDDLE, SILENT), 2, "of version unknown", id="from before levels"),
        pytest.param(
            with_nodes(1, NEW), 3, "the controller is of version 0.2.3", id="not even the controller"
        ),
        pytest.param(with_nodes(2, MIDDLE), 1, "never goes down", id="down"),
    ],
)
def test_a_level_that_may_not_be_is_refused_with_the_reason(image: Image, level: int, reason: str) -> None:
    with pytest.raises(LevelRefused, match=reason):
        decide_raise_level(image, MIDDLE, level)


def test_what_a_level_brought_is_not_written_before_it_is_in_force() -> None:
    news = BrokerMaintenance(NODE, is_on=True)
    with pytest.raises(NotInForce, match="broker_maintenance came with level 2, and level 1 is in force"):
        check_written([news], 1)
    check_written([LevelChanged(2), news], 1)
    with pytest.raises(UnreadableMetadata, match=r"broker_maintenance is unknown to version 0\.1\.0"):
        check_read([news], OLD)


def test_nothing_is_read_of_a_level_that_is_not_known() -> None:
    check_read([LevelChanged(2)], NEW)
    for software, advice in ((OLD, "a newer"), (NEW, "an older")):
        with pytest.raises(UnreadableMetadata, match=f"start {advice} version"):
            check_read([BrokerRemoved(NODE), LevelChanged(2 if software is OLD else 1)], software)


def test_what_came_first_is_written_at_any_level() -> None:
    check_written([ClusterCreated("c"), LevelChanged(1), BrokerRemoved(NODE)], 0)


def test_a_record_of_a_kind_that_is_not_known_is_named() -> None:
    data = encode_records([ClusterCreated("c"), BrokerRemoved(NODE)]).replace(
        b"broker_removed", b"broker_renamed"
    )
    with pytest.raises(ValueError, match="broker_renamed") as failure:
        decode_records(data)
    assert "kind broker_renamed is unknown to version" in str(unreadable(data, failure.value))


def test_the_level_is_named_before_what_it_brought() -> None:
    data = encode_records([LevelChanged(77), BrokerRemoved(NODE)]).replace(
        b"broker_removed", b"broker_renamed"
    )
    assert "the cluster is at level 77" in str(unreadable(data, ValueError("…")))


def test_bytes_that_are_no_records_are_unreadable_as_well() -> None:
    assert "cannot read: nonsense" in str(unreadable(b"\xc1", ValueError("nonsense")))
