"""Here or over the link: who is asked, what goes together, and what silence is taken for."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from ropewalk.base.errors import LeaderNotAvailable, NodeStopping, RopewalkError, ShardUnavailable
from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId, TopicPartition
from ropewalk.broker.dispatch.dispatch import Dispatch
from ropewalk.broker.dispatch.to_leaders import ToLeaders
from ropewalk.broker.dispatch.to_shards import ToShards
from ropewalk.broker.hosting.shard import Asked
from ropewalk.broker.peers.calls.call import Call
from ropewalk.broker.peers.peers import Lane
from ropewalk.client.errors import ConnectionLost
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import PartitionCreated, TopicCreated
from ropewalk.runtime.errands import Errands
from ropewalk.sim.machines.world import World

HERE, THERE = NodeId(1), NodeId(2)
TOPIC = TopicId(b"t" * 16)


class Links:
    """Names the node that a call goes to, in place of a link."""

    def to_node(self, node_id: NodeId, lane: Lane) -> str:
        return f"node {node_id} by {lane.value}"


class Shards:
    """Keys that begin with `here` are looked after here."""

    def leader(self, key: str) -> NodeId:
        return HERE if key.startswith("here") else THERE

    def ask(self, key: str, command: str) -> Asked[str]:
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        answer.set_result(f"{command} of {key}, here")
        return Asked(1, answer)


class Scene:
    def __init__(self, world: World, errands: Errands, failure: BaseException | None = None) -> None:
        self.sent: list[tuple[object, list[str]]] = []
        self.failure = failure
        self.image = Image()
        self.image.apply(TopicCreated(TOPIC, "t"))
        for index, leader in enumerate((HERE, THERE, None)):
            self.image.apply(
                PartitionCreated(TOPIC, index, (HERE, THERE), (HERE,), leader, LeaderEpoch(0), 0)
            )
        clock = world.machine("node").clock
        self.dispatch = Dispatch(HERE, self.image, clock, Links())  # type: ignore[arg-type]
        self.shards: ToShards[str, str] = ToShards(
            Shards(), self._call, self.dispatch, errands, timeout_ms=1000, items_max=2
        )

    def _call(self, commands: Sequence[str]) -> Call[list[str]]:
        async def send(link: object, _deadline_ms: float) -> list[str]:
            self.sent.append((link, list(commands)))
            await asyncio.sleep(0.1)
            if self.failure is not None:
                raise self.failure
            return [f"{command}, there" for command in commands]

        return Call(Lane.CALLS, send)


def played(story: Callable[[Scene], Awaitable[None]], failure: BaseException | None = None) -> None:
    async def play(world: World) -> None:
        errands = Errands(count_max=10)
        running = asyncio.ensure_future(errands.run())
        await story(Scene(world, errands, failure))
        running.cancel()
        await asyncio.wait([running])

    with World(0) as world:
        world.run(play(world), limit_s=60)


def test_a_shard_that_is_here_is_asked_without_a_link() -> None:
    async def story(scene: Scene) -> None:
        assert await scene.shards.to_shard("here", "look") == "look of here, here"
        assert scene.sent == []

    played(story)


def test_what_is_asked_of_another_node_goes_together() -> None:
    async def story(scene: Scene) -> None:
        asked = [scene.shards.to_shard(f"there {number}", f"look {number}") for number in range(4)]
        assert [await each for each in asked] == [f"look {number}, there" for number in range(4)]
        assert scene.sent == [
            ("node 2 by calls", ["look 0", "look 1"]),
            ("node 2 by calls", ["look 2", "look 3"]),
        ]

    played(story)


@pytest.mark.parametrize("failure", [ConnectionLost("it went"), RopewalkError("no")])
def test_an_answer_that_does_not_come_is_an_unknown_outcome(failure: RopewalkError) -> None:
    async def story(scene: Scene) -> None:
        with pytest.raises(ShardUnavailable, match="node 2, which hosts the shard, was not heard"):
            await scene.shards.to_shard("there", "look")

    played(story, failure)


def test_whoever_waits_hears_that_the_node_stops() -> None:
    async def story(scene: Scene) -> None:
        with pytest.raises(NodeStopping):
            await scene.shards.to_shard("there", "look")

    played(story, asyncio.CancelledError())


def test_a_leader_is_found_and_asked_wherever_it_is() -> None:
    async def story(scene: Scene) -> None:
        found: list[tuple[NodeId, list[str]]] = []

        async def call(node_id: NodeId, items: list[str]) -> None:
            found.append((node_id, items))

        async with asyncio.TaskGroup() as tasks:
            leaders: ToLeaders[str] = ToLeaders(scene.dispatch, call, tasks.create_task, items_max=10)
            leaders.to_leader(TopicPartition("t", 0), "a")
            leaders.to_leader(TopicPartition("t", 1), "b")
            for partition in (TopicPartition("t", 2), TopicPartition("t", 3), TopicPartition("u", 0)):
                with pytest.raises(LeaderNotAvailable):
                    leaders.to_leader(partition, "c")
        assert sorted(found) == [(HERE, ["a"]), (THERE, ["b"])]

    played(story)


@pytest.mark.parametrize(("node_id", "answered"), [(HERE, "here"), (THERE, "over node 2 by calls")])
def test_a_node_is_called_in_this_process_or_over_its_link(node_id: NodeId, answered: str) -> None:
    async def here() -> str:
        return "here"

    async def send(link: Any, _deadline_ms: float) -> str:
        return f"over {link}"

    async def story(scene: Scene) -> None:
        asked = scene.dispatch.to_node(
            node_id, here=here, there=lambda: Call(Lane.CALLS, send), timeout_ms=1000
        )
        assert await asked == answered

    played(story)
