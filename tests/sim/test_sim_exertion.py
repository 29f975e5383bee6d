"""Weighing the turns of a simulated node, and seeing a disk that is asked for nothing."""

import asyncio

from ropewalk.broker.partitions.group_commit import GroupCommit
from ropewalk.kafka.receive_buffer import ReceiveBuffer, SpareBuffers
from ropewalk.sim.machines.exertion import NOTHING_SYNCED_MAX, STEP_S, TURN_CALLS_MAX, Exertion
from ropewalk.sim.machines.process import Process
from ropewalk.sim.machines.world import NodePorts, World


def work_of(calls: int, *, weighs_turns: bool = True) -> tuple[Exertion, float]:
    async def life(ports: NodePorts) -> None:
        buffer = ReceiveBuffer(100, SpareBuffers())
        for _ in range(calls):
            buffer.next_frame()
        await asyncio.sleep(0)

    with World(0) as world:
        exertion = world.loop.exertion = Exertion(weighs_turns=weighs_turns)
        world.run(world.machine("node").start(life), limit_s=10)
        return exertion, world.now_s


def test_a_turn_of_too_many_calls_is_a_violation() -> None:
    exertion, _ = work_of(TURN_CALLS_MAX + 1)
    assert exertion.heaviest_calls > TURN_CALLS_MAX
    (violation,) = exertion.violations
    assert "called" in str(violation)


def test_a_turn_within_the_bound_is_none() -> None:
    exertion, now_s = work_of(TURN_CALLS_MAX // 2)
    assert not exertion.violations
    assert exertion.heaviest_calls >= TURN_CALLS_MAX // 2
    assert now_s >= STEP_S


def test_what_is_not_weighed_costs_nothing() -> None:
    exertion, now_s = work_of(TURN_CALLS_MAX + 1, weighs_turns=False)
    assert not exertion.violations
    assert now_s == 0


def test_a_disk_that_is_asked_for_nothing_again_and_again_is_a_violation() -> None:
    exertion, process = Exertion(weighs_turns=False), Process("node", 1)
    for _ in range(NOTHING_SYNCED_MAX - 1):
        exertion.on_errand(process, GroupCommit._sync, ([],))
    exertion.on_errand(process, GroupCommit._sync, (["something"],))
    for _ in range(NOTHING_SYNCED_MAX - 1):
        exertion.on_errand(process, GroupCommit._sync, ([],))
    assert not exertion.violations
    exertion.on_errand(process, GroupCommit._sync, ([],))
    assert len(exertion.violations) == 1
