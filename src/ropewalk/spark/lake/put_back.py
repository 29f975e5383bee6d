"""A table that somebody has put back to an earlier state: its rows are those of then, and the offsets that it keeps are still those of now.

Delta's RESTORE takes no application transaction back, and a rollback of Iceberg no property. Whoever went on at the offsets would leave out the rows
in between, and nobody would see it. So the two are compared at every look, and where they differ a person has to say what counts.
"""

from collections.abc import Mapping

from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.ranges import Offsets


class PutBack(Struct, frozen=True):
    address: str
    owner: str
    how: str
    """What was done, as the table itself says."""
    offsets: Offsets | None
    """The next offsets in the state that it was put back to; None if nothing tells them any more."""


def said_of_put_back(found: PutBack, kept: Mapping[TopicPartition, int]) -> str:
    differing = sorted(
        each for each in kept if found.offsets is None or found.offsets.get(each) != kept[each]
    )
    named = next((each for each in differing if each.partition >= 0), None)
    what = ""
    if named is not None:
        reached = (
            "cannot be told any more"
            if found.offsets is None
            else f"reach to offset {found.offsets.get(named, 0)}"
        )
        what = f": its rows of {named} {reached}, and the offset that it keeps is {kept[named]}"
    return (
        f"the table in {found.address} was put back to an earlier state ({found.how}){what}. What lies between would be missing, so nothing is"
        f" written: say `ropewalk pipeline offsets {found.owner} --from-table` to read it once more, or move the offsets yourself with --set"
    )
