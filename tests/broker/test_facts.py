"""What a node takes as known while a change that is too large for one append is on its way."""

import asyncio

from ropewalk.base.ids import NodeId
from ropewalk.broker.cluster.facts import Facts
from ropewalk.metadata.changes import appends_of
from ropewalk.metadata.records import BrokerRegistered, ChangeAbandoned, ChangeBegun, ChangeEnded
from tests.controller.imagined import ImaginedCluster


def test_a_registration_counts_as_known_when_it_has_taken_effect_and_not_before() -> None:
    """Its epoch lies within the change, so an image that has read as far may still be that of the former process."""
    cluster = ImaginedCluster(3)
    for number in range(8):
        cluster.topic(f"topic-{number}", (0, 1, 2))
    facts = Facts()
    before = list(cluster.image.facts())
    facts.image.replace(before, cluster.image.end_offset)
    facts.begin()
    start_offset = cluster.image.end_offset
    records = cluster.register(0, generation=1)
    parts = appends_of(records, bytes_max=300)
    assert len(parts) > 3
    (registered,) = [record for record in records if isinstance(record, BrokerRegistered)]

    async def story() -> None:
        reached = asyncio.ensure_future(facts.reached(registered.broker_epoch + 1))
        following = asyncio.ensure_future(facts.run_following())
        offset = start_offset
        for part in parts:
            assert not reached.done()
            assert facts.image.settled_offset <= registered.broker_epoch
            facts.apply(part, start_offset=offset)
            offset += len(part)
            for _ in range(3):
                await asyncio.sleep(0)
            is_in = facts.image.brokers[NodeId(0)].epoch == registered.broker_epoch
            assert (facts.followed_offset > registered.broker_epoch) == is_in
        await reached
        following.cancel()

    asyncio.run(story())


def test_what_is_read_is_passed_on_amid_a_change_and_what_was_given_up_is_over() -> None:
    async def story() -> None:
        facts = Facts()
        facts.apply((ChangeBegun(),), start_offset=0)
        assert (facts.image.end_offset, facts.image.settled_offset) == (1, 0)
        assert await facts.known_within(1, timeout_ms=1), "for those who read on from there"
        facts.apply((ChangeAbandoned(), ChangeBegun(), ChangeEnded()), start_offset=1)
        assert facts.image.settled_offset == 4
        await facts.known(4)

    asyncio.run(story())
