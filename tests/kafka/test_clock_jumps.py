"""A node whose clock jumps by days: nothing expires, nobody is forgotten, nobody is refused."""

import pytest

from ropewalk.base.ids import ProducerEpoch, ProducerId
from ropewalk.records.record import Record, build
from ropewalk.sim.machines.world import EPOCH_MS
from tests.kafka.door import Door, at_the_door

DAY_MS = 86_400_000


def a_batch(sequence: int, timestamp: int) -> bytes:
    records = [Record(timestamp=timestamp, value=b"v" * 1000)]
    return bytes(
        build(records, producer_id=ProducerId(7), producer_epoch=ProducerEpoch(0), base_sequence=sequence)
    )


@pytest.mark.parametrize("jump_ms", [10 * DAY_MS, -10 * DAY_MS], ids=["forward", "back"])
def test_a_clock_that_jumps_by_days_costs_no_record_and_no_producer(jump_ms: int) -> None:
    async def story(door: Door) -> None:
        await door.create("t")
        for sequence in range(3):
            assert (await door.produce("t", a_batch(sequence, EPOCH_MS))).error_code == 0
        door.machine.clock.offset_ms = jump_ms
        sent = await door.produce("t", a_batch(3, EPOCH_MS))
        assert (sent.error_code, sent.base_offset) == (0, 3), "its time is right, whatever the clock says"
        await door.node.housekeeping.apply_retention()
        partition = door.node.partitions.find("t", 0)
        assert (partition.log.start_offset, partition.log.end_offset) == (0, 4)
        await door.node.stop()  # what is kept of producers is written, and who has expired is not
        door.machine.clock.offset_ms = 0
        door.machine.kill()
        await door.open()
        partition = door.node.partitions.find("t", 0)
        again = await door.produce("t", a_batch(3, EPOCH_MS))
        assert (again.error_code, again.base_offset, partition.log.end_offset) == (0, 3, 4)

    at_the_door(story)
