"""Whether a position, or what was heard of etcd, is of the history that is there."""

import pytest
from msgspec import structs

from ropewalk.base.ids import NodeId, ProducerId
from ropewalk.base.limits import REIGNS_REMEMBERED_MAX
from ropewalk.metadata.etcd.history import Found, Known, parting
from ropewalk.metadata.etcd.keys import Batch, Held, Pointer, encode_batch
from ropewalk.metadata.etcd.messages import KeyValue
from ropewalk.metadata.image import Image
from ropewalk.metadata.lineage import Position, Reign, holds
from ropewalk.metadata.records import ClusterCreated, ControllerChanged, MetadataRecord, ProducerIdsAllocated

NODE = NodeId(0)
REIGNS = [Reign(1, NODE, 1, "first"), Reign(5, NODE, 2, ""), Reign(9, NODE, 3, "third")]


@pytest.mark.parametrize(
    ("position", "is_held"),
    [
        pytest.param(Position(0), True, id="nothing applied"),
        pytest.param(Position(20), True, id="who does not say"),
        pytest.param(Position(1, 7, "other"), True, id="before all that is remembered"),
        pytest.param(Position(5, 1, "first"), True, id="the end of the first"),
        pytest.param(Position(5, 1, "other"), False, id="an epoch that came again under another name"),
        pytest.param(Position(6, 1, "first"), False, id="beyond the end of the first"),
        pytest.param(Position(9, 2, "named since"), True, id="a reign from before there were names"),
        pytest.param(Position(9, 1, "first"), False, id="the wrong epoch"),
        pytest.param(Position(12, 3, "third"), True, id="the newest"),
        pytest.param(Position(12, 4, "fourth"), False, id="an epoch that nobody here has had"),
    ],
)
def test_a_position_is_held_or_not(position: Position, is_held: bool) -> None:
    assert holds(REIGNS, position) is is_held


def reigned(*names: str) -> Image:
    image = Image()
    image.apply(ClusterCreated("the cluster"))
    for epoch, name in enumerate(names, 1):
        image.apply(ControllerChanged(NODE, epoch, reign=name))
        image.apply(ProducerIdsAllocated(NODE, ProducerId(10 * epoch)))
    return image


def test_a_snapshot_tells_of_the_reigns_and_where_they_began() -> None:
    image, again = reigned("a", "b", "c"), Image()
    again.replace(image.facts(), image.end_offset)
    assert again.reigns == image.reigns
    assert again.position == image.position == Position(7, 3, "c")
    assert again.holds(Position(3, 1, "a"))
    assert again.holds(Position(4, 2, "b"))
    assert not again.holds(Position(4, 1, "a"))


def test_a_snapshot_from_before_reigns_refuses_nobody_who_is_older() -> None:
    image = Image()
    facts: list[MetadataRecord] = [ClusterCreated("the cluster"), ControllerChanged(NODE, 6)]
    image.replace(facts, 100)
    assert image.holds(Position(50, 3, "older"))
    assert image.holds(Position(100, 6))
    assert not image.holds(Position(100, 5))


def test_only_so_many_reigns_are_remembered() -> None:
    assert len(reigned(*map(str, range(REIGNS_REMEMBERED_MAX + 20))).reigns) == REIGNS_REMEMBERED_MAX


HELD = Held(NODE, 3, "mine")
BATCH = Batch(3, 8, (ProducerIdsAllocated(NODE, ProducerId(1)), ProducerIdsAllocated(NODE, ProducerId(2))))
KNOWN = Known(40, 10, HELD, "third", (BATCH, 38))
SAME = KeyValue(b"log/8", encode_batch(BATCH), 38)
GOING_ON = Found(45, 12, HELD, None, SAME)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({}, None, id="it went on"),
        pytest.param({"held": Held(NODE, 4, "later")}, None, id="another controller"),
        pytest.param(
            {"last": None, "pointer": Pointer("p", 1, 12, 9, "third")}, None, id="a snapshot for it"
        ),
        pytest.param({"last": None, "pointer": Pointer("p", 1, 10, 9)}, None, id="a snapshot without a name"),
        pytest.param({"end_offset": 9}, "9 records", id="shorter"),
        pytest.param({"revision": 39}, "at revision 39", id="an earlier revision"),
        pytest.param({"held": Held(NODE, 2, "x")}, "of epoch 2", id="an earlier controller"),
        pytest.param({"held": Held(NODE, 3, "x")}, "of epoch 3", id="another controller of the same epoch"),
        pytest.param({"held": None}, "of epoch 0", id="no controller"),
        pytest.param({"last": None}, "not there any more", id="the last append is gone"),
        pytest.param({"last": None, "pointer": Pointer("p", 1, 8, 9)}, "not there", id="a snapshot of less"),
        pytest.param(
            {"last": structs.replace(SAME, mod_revision=37)}, "are others", id="written another time"
        ),
        pytest.param(
            {"last": KeyValue(b"log/8", encode_batch(structs.replace(BATCH, epoch=2)), 38)},
            "are others",
            id="another append under its key",
        ),
        pytest.param(
            {"last": None, "pointer": Pointer("p", 1, 10, 9, "other")},
            "of another history",
            id="a snapshot of another reign",
        ),
    ],
)
def test_etcd_goes_on_from_what_was_heard_or_not(change: dict[str, object], reason: str | None) -> None:
    found = parting(KNOWN, structs.replace(GOING_ON, **change))
    assert found is None if reason is None else reason in str(found)
