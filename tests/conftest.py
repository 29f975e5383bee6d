"""What holds in all rooms: hypothesis judges what code does, never how long a busy machine took for it; files may run side by side."""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("ropewalk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ropewalk")

SPARK = "tests/spark/"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Any:
    """File by file, and all of Spark's in one process: they share a session that takes longer to start than most of them to run."""
    from xdist.scheduler.loadfile import LoadFileScheduling

    class OneSession(LoadFileScheduling):  # type: ignore[misc]  # it has no types
        def _split_scope(self, nodeid: str) -> str:
            return SPARK if nodeid.startswith(SPARK) else str(super()._split_scope(nodeid))

    return OneSession(config, log)
