"""What the controller answered, as the node that asked takes it."""

from collections.abc import Sequence
from typing import Any

from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.facts import Facts
from ropewalk.broker.cluster.to_controller import ToController
from ropewalk.broker.peers.calls.controller_call import ControllerCall
from ropewalk.controller.alter_partition import AlteredPartition, PartitionAlteration
from ropewalk.metadata.image import Partition
from ropewalk.metadata.records import PartitionCreated, TopicCreated, TopicDeleted
from ropewalk.sim.machines.world import World
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.peer.alter_partition import AlterPartitionRequest, AlterPartitionResponse, PartitionAltered

HERE, OTHER = NodeId(1), NodeId(2)
KEPT, DELETED = TopicId(b"k" * 16), TopicId(b"d" * 16)


class Accepting:
    """A controller that accepts whatever it is asked for, and the link to it. The image hears sooner of what it decided afterwards."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    async def call(self, call: ControllerCall[Any], *, deadline_ms: float) -> Any:
        return await call.send(_Answering(self._facts), deadline_ms)  # type: ignore[arg-type]


class _Answering:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    async def call(self, _api: object, request: AlterPartitionRequest, **_: Any) -> AlterPartitionResponse:
        self._facts.image.apply(TopicDeleted(DELETED))
        return AlterPartitionResponse(
            ErrorCode.NONE,
            None,
            tuple(
                PartitionAltered(each.topic_id, each.index, ErrorCode.NONE, HERE, 0, 1, (HERE, OTHER))
                for each in request.partitions
            ),
        )


def test_what_was_accepted_is_so_though_another_topic_of_the_request_is_gone_by_now() -> None:
    """A set that was taken for refused would not be waited for: whoever is in it could lead, and lack what was acknowledged."""
    facts = Facts()
    for name, topic_id in (("kept", KEPT), ("deleted", DELETED)):
        facts.image.apply(TopicCreated(topic_id, name))
        facts.image.apply(PartitionCreated(topic_id, 0, (HERE, OTHER), (HERE,), HERE, LeaderEpoch(0), 0))

    async def ask(world: World) -> Sequence[AlteredPartition]:
        clock = world.machine("node").clock
        controller = ToController(Cluster(facts, None), clock, None, Accepting(facts))  # type: ignore[arg-type]
        alterations = [
            PartitionAlteration(
                topic_id=topic_id,
                index=0,
                leader_epoch=LeaderEpoch(0),
                partition_epoch=0,
                isr=[(HERE, 1), (OTHER, 2)],
            )
            for topic_id in (KEPT, DELETED)
        ]
        return await controller.alter_partitions(HERE, 1, alterations, timeout_ms=1000)

    with World(0) as world:
        answers = world.run(ask(world), limit_s=10)
    assert [(each.topic_id, isinstance(each.outcome, Partition)) for each in answers] == [
        (KEPT, True),
        (DELETED, True),
    ]
