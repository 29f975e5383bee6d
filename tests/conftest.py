"""What holds in all rooms: hypothesis judges what code does, never how long a busy machine took for it; files may run side by side."""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("ropewalk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ropewalk")

SESSION = "tests/spark/session/"
LONG = ("spark/test_spark_clusters.py", "chaos/test_chaos_spark.py", "spark/test_pipeline_process.py")
SPARK = (SESSION, *(f"tests/{each}" for each in LONG), "tests/spark/")


def _turn(nodeid: str) -> int:
    """Spark's come first, those that share a session before all, then the longest: while both processes are at it nobody else is,
    who would wait in vain for the time of two cores that Spark takes."""
    return next((turn for turn, each in enumerate(SPARK) if nodeid.startswith(each)), len(SPARK))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _turn(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Any:
    """File by file, and in one process what shares a session of Spark."""
    from xdist.scheduler.loadfile import LoadFileScheduling

    class OneSession(LoadFileScheduling):  # type: ignore[misc]  # it has no types
        def _split_scope(self, nodeid: str) -> str:
            return SESSION if nodeid.startswith(SESSION) else str(super()._split_scope(nodeid))

    return OneSession(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How long Spark's part took, from its first test to its last: nothing else tells when tests run side by side."""
    reports = [
        report
        for kind in ("passed", "failed")
        for report in terminalreporter.stats.get(kind, [])
        if report.nodeid.startswith(SPARK)
    ]
    if reports:
        took_s = max(each.stop for each in reports) - min(each.start for each in reports)
        terminalreporter.write_line(f"Spark's tests took {took_s:.0f} s")
