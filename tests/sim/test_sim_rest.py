"""What copies of a compacted partition may differ in when all is at rest."""

import pytest

from ropewalk.base.ids import NodeId, Offset
from ropewalk.records.record import Record, build
from ropewalk.sim.runs.cluster.rest import revived

A, B = NodeId(0), NodeId(1)


def copy(*records: tuple[int, bytes, bytes | None], is_transactional: bool = False) -> dict[int, bytes]:
    return {
        offset: bytes(
            build(
                [Record(key=key, value=value)],
                base_offset=Offset(offset),
                is_transactional=is_transactional,
            )
        )
        for offset, key, value in records
    }


BOTH = ((0, b"a", b"x"), (1, b"a", None))


@pytest.mark.parametrize(
    ("one", "other", "start", "expected"),
    [
        pytest.param(copy(*BOTH), copy(), 0, [], id="deleted here, and gone there with its deletion"),
        pytest.param(copy(*BOTH), copy(BOTH[1]), 0, [], id="gone there, and the deletion not yet"),
        pytest.param(copy((0, b"a", b"x")), copy(), 1, [], id="expired there"),
        pytest.param(
            copy((0, b"a", b"x"), is_transactional=True), copy(), 0, [], id="perhaps aborted, and gone there"
        ),
        pytest.param(
            copy(BOTH[0]),
            copy(BOTH[1]),
            0,
            ["the copy of 0 ends with a value of b'a' at 0, that of 1 with one at 1"],
            id="its deletion is gone here and not there",
        ),
        pytest.param(
            copy(BOTH[0]),
            copy(),
            0,
            ["the copy of 0 ends with a value of b'a' at 0, that of 1 has none"],
            id="its deletion is gone everywhere",
        ),
    ],
)
def test_a_value_without_its_deletion_is_found(
    one: dict[int, bytes], other: dict[int, bytes], start: int, expected: list[str]
) -> None:
    assert revived({A: one, B: other}, start) == expected
