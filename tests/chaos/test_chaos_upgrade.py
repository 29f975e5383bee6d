"""A slice of the upgrades that `tests/chaos/run-upgrade` goes on with for as long as one has patience."""

import pytest

from tests.chaos.upgrade_rounds import Versions, build_versions, run
from tests.upgrade.wheels import NoHistory

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Versions:
    """Built once: that takes as long as rolling a node."""
    try:
        return build_versions(tmp_path_factory.mktemp("versions"))
    except NoHistory as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("etcd", "steps"),
    [
        pytest.param(False, ("up", "final"), id="up and finalised with a local home"),
        pytest.param(True, ("up", "back"), id="up and back with etcd"),
    ],
)
def test_nothing_is_lost_while_a_cluster_changes_its_version(
    etcd: bool, steps: tuple[str, ...], versions: Versions, request: pytest.FixtureRequest
) -> None:
    if etcd:
        request.getfixturevalue("etcd")
    totals = run(1, seed=3, etcd=etcd, steps=steps, versions=versions)
    assert totals.violations == []
    assert totals.copied == totals.fed > 0
    assert totals.changes == 3 * (len(steps) - ("final" in steps))
