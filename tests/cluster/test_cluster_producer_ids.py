"""Producer ids in a cluster: only the controller gives them out, and it may be gone before it has answered."""

import asyncio

import pytest

from ropewalk.sim.clients.link import open_link
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import init_producer_id
from tests.cluster.nodes import KAFKA_PORT, Nodes, in_a_cluster


@pytest.mark.parametrize("seed", range(2))
def test_a_controller_lost_in_the_middle_leaves_the_outcome_open(seed: int) -> None:
    """Seed 29 of whole clusters: the node that asked on a client's behalf did not know what to tell it."""

    async def story(nodes: Nodes) -> ErrorCode:
        link = await open_link(nodes.world.network.host("client"), "client", ("node1", KAFKA_PORT))
        controller = nodes.members[0].machine
        controller.platters.stall(nodes.world.now_s + 1)
        request = init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        answer = link.send(init_producer_id.API, link.newest_version(init_producer_id.API), request)
        await asyncio.sleep(0.2)
        controller.kill()
        return ErrorCode((await answer).error_code)

    assert in_a_cluster(story, seed=seed) == ErrorCode.REQUEST_TIMED_OUT
