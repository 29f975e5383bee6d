"""The table of what SQS answers (`tests/sqs/test_sqs_conformance.py`), asked of a real node: the engine behind the door there is a small one in memory.

One protocol is enough: where they differ is in the door. A node differs from the small engine in two things: the first offset of a queue's log is its snapshot's, so
numbers in sequence begin with one; and a move task takes a moment.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from ropewalk.sqs.actions import ACTIONS
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.http.client import Line
from tests.sqs.test_sqs_conformance import CASES, QUEUES, Case, check, filled
from tests.sqs.visits import Guest, Heard

PORT = 9324
DOOR = (f"sqs.listen=node0:{PORT}", "sqs.insecure=true", "sqs.delete.wait.ms=0")
MOVE_S = 5


class NodeGuest(Guest):
    """Of a node's own door."""

    def __init__(self, nodes: Nodes) -> None:
        super().__init__(nodes.world)

    async def new_line(self) -> Line:
        return await Line.open(self.world.network.host("visitor"), "node0", PORT)


@pytest.mark.parametrize("action", [action.name for action in ACTIONS])
def test_a_node_answers_as_the_table_says(action: str) -> None:
    async def story(nodes: Nodes) -> None:
        guest = NodeGuest(nodes)
        for case in CASES:
            if case.action == action:
                await clear(guest)
                check(_as_of_a_log(case), await answered(guest, case))

    in_a_cluster(story, *DOOR, nodes=1, limit_s=1_000_000)


async def clear(guest: Guest) -> None:
    for url in (await guest.json("ListQueues")).said.get("QueueUrls", ()):
        assert (await guest.json("DeleteQueue", QueueUrl=url)).status == 200


async def answered(guest: Guest, case: Case) -> Heard:
    handles = [""]
    steps = [*QUEUES, *case.before]
    for step in steps:
        if isinstance(step, int):
            await guest.sleep(step)
            continue
        action, parameters = step
        heard = await guest.json(action, **filled(parameters, handles))
        assert heard.status == 200, heard
        handles += [message["ReceiptHandle"] for message in heard.said.get("Messages", ())]
        handles += [heard.said["TaskHandle"]] if "TaskHandle" in heard.said else []
        is_slow = "MaxNumberOfMessagesPerSecond" in parameters
        if action == "CancelMessageMoveTask" or (action == "StartMessageMoveTask" and not is_slow):
            await guest.sleep(MOVE_S)
    return await guest.json(case.action, **filled(case.parameters, handles))


def _as_of_a_log(case: Case) -> Case:
    return case._replace(said=_renumbered(case.said))


def _renumbered(said: Any) -> Any:
    match said:
        case Mapping():
            return {
                key: str(int(value) + 1) if key == "SequenceNumber" else _renumbered(value)
                for key, value in said.items()
            }
        case list():
            return [_renumbered(each) for each in said]
        case _:
            return said
