"""The whole simulator on a toy: an honest node passes, every vice is found."""

from functools import partial

import pytest

from ropewalk.sim.machines.world import NodePorts
from ropewalk.sim.runs.node.keeper import RunningNode
from ropewalk.sim.runs.node.scenario import FAULTS_MIN, OPERATIONS_MIN, WORK_S, run_seed
from ropewalk.sim.runs.outcome import Outcome
from tests.sim.toy_node import ToyNode, Vice


async def boot(ports: NodePorts, *, vice: Vice) -> RunningNode:
    return await ToyNode.start(ports, vice)


def play(seed: int, vice: Vice = Vice.NONE) -> Outcome:
    return run_seed(seed, partial(boot, vice=vice))


@pytest.mark.parametrize("seed", range(8))
def test_an_honest_node_passes(seed: int) -> None:
    outcome = play(seed)
    assert outcome.violations == ()
    assert outcome.simulated_s >= WORK_S
    assert outcome.operation_count >= OPERATIONS_MIN
    assert outcome.fault_count >= FAULTS_MIN


def test_the_same_seed_is_the_same_run() -> None:
    assert play(3).digest == play(3).digest != play(4).digest


@pytest.mark.parametrize("vice", [vice for vice in Vice if vice is not Vice.NONE])
def test_a_cheating_node_is_found(vice: Vice) -> None:
    assert any(play(seed, vice).violations for seed in range(40))
