"""A partition whose only complete copy is gone: what is known of the others, and what becomes of it by force."""

import pytest

from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.broker.dispatch.furthest import furthest
from ropewalk.cli.unclean import leaderless
from ropewalk.client.administration.copies import Copy, copies
from ropewalk.client.administration.leadership import Leadership
from ropewalk.views.cluster_state import collect
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_moves import make_orders, partition_at
from tests.kafka.door import batch_of

ORDERS = TopicPartition("orders", 0)
BEHIND, AHEAD = NodeId(1), NodeId(2)


def test_an_operator_sees_what_each_replica_holds_and_what_was_lost_is_remembered() -> None:
    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make_orders(nodes, client, AHEAD, BEHIND)
            await client.produce("orders", 0, batch_of("both have it"))
            assert set((await copies(client, ORDERS, (AHEAD, BEHIND))).values()) == {Copy(0, 1, 0)}
            nodes.members[BEHIND].kill()
            await nodes.until(lambda: partition_at(nodes, 0).isr == (AHEAD,))
            for value in ("one has it", "one has it too"):
                await client.produce("orders", 0, batch_of(value))
            nodes.members[AHEAD].kill()
            await nodes.until(lambda: partition_at(nodes, 0).leader is None)
            await nodes.members[BEHIND].start()
            await nodes.until(lambda: nodes.is_serving(BEHIND, seen_by=0))

            (found,) = await leaderless(client, await collect(client), ["orders"])
            assert (found.partition, found.held_by, found.would_lead) == ("orders-0", (AHEAD,), BEHIND)
            assert found.replicas == ((AHEAD, None), (BEHIND, Copy(0, 1, 0)))
            stranger = (await copies(client, ORDERS, (NodeId(0),)))[NodeId(0)]
            assert isinstance(stranger, str), "a node that keeps no copy says so"

            assert await Leadership(client).elect([ORDERS], unclean=True) == {ORDERS: None}
            produced = await client.produce("orders", 0, batch_of("in its place"))
            assert produced.base_offset == 1
            (loss,) = (await collect(client)).membership.losses
            assert (loss.topic, loss.partition, loss.leader) == ("orders", 0, BEHIND)
            await nodes.members[AHEAD].start()
            await nodes.until(lambda: set(partition_at(nodes, 0).isr) == {AHEAD, BEHIND})
            held = await copies(client, ORDERS, (AHEAD, BEHIND))
            assert held[AHEAD] == held[BEHIND]

    in_a_cluster(story)


def test_the_replica_that_holds_most_is_made_to_lead_and_not_the_first() -> None:
    least, more, most = NodeId(1), NodeId(2), NodeId(3)

    async def story(nodes: Nodes) -> None:
        async with nodes.client() as client:
            await make_orders(nodes, client, least, more, most)
            for left in ({least, more, most}, {more, most}, {most}):
                await nodes.until(lambda left=left: set(partition_at(nodes, 0).isr) == left)  # type: ignore[misc]
                await client.produce("orders", 0, batch_of(f"{len(left)} have it"))
                nodes.members[min(left)].kill()
            await nodes.until(lambda: partition_at(nodes, 0).leader is None)
            for returning in (least, more):
                await nodes.members[returning].start()
            await nodes.until(lambda: all(nodes.is_serving(node, seen_by=0) for node in (least, more)))

            (found,) = await leaderless(client, await collect(client), ["orders"])
            assert (found.held_by, found.would_lead) == ((most,), more)
            assert await Leadership(client).elect([ORDERS], unclean=True) == {ORDERS: None}
            assert partition_at(nodes, 0).leader == more
            assert (await client.produce("orders", 0, batch_of("the third"))).base_offset == 2

    in_a_cluster(story, "min.insync.replicas=1", nodes=4)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, None),
        ({1: (0, 5), 2: (0, 7)}, 2),
        ({1: (3, 5), 2: (2, 900)}, 1),
        ({2: (1, 5), 1: (1, 5)}, 2),
        ({1: (-1, 0), 2: (0, 1)}, 2),
    ],
    ids=["nobody tells", "longer", "a newer epoch counts for more", "the first of equals", "an empty one"],
)
def test_who_holds_most(told: dict[int, tuple[int, int]], expected: int | None) -> None:
    assert furthest({NodeId(node): held for node, held in told.items()}) == expected
