"""Whole clusters under faults whose nodes speak TLS with each other.

OpenSSL draws for itself, so a run does not follow from its seed alone: what is found here may not be found again.
"""

import pytest

from ropewalk.sim.runs.cluster.scenario import FAULTS_MIN, OPERATIONS_MIN, run_seed


@pytest.mark.parametrize("seed", [3, 4])
def test_a_cluster_that_speaks_tls_loses_nothing(seed: int) -> None:
    outcome = run_seed(seed, settings=("peer.tls=require",))
    assert outcome.violations == ()
    assert outcome.operation_count >= OPERATIONS_MIN
    assert outcome.fault_count >= FAULTS_MIN
