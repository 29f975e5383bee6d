"""What holds in all rooms: hypothesis judges what code does, never how long a busy machine took for it; files may run side by side."""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.order import SPARK, deal, file_of, piece_of, turn_of

settings.register_profile("ropewalk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ropewalk")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    sessions = deal(file_of(item.nodeid) for item in items)
    items.sort(key=lambda item: turn_of(item.nodeid, sessions))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Any:
    """Piece by piece, in the order in which they were collected."""
    from xdist.scheduler.loadscope import LoadScopeScheduling

    class Pieces(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
        def schedule(self) -> None:
            self.sessions = deal(map(file_of, next(iter(self.registered_collections.values()))))
            super().schedule()

        def _split_scope(self, nodeid: str) -> str:
            return piece_of(nodeid, self.sessions)

    return Pieces(config, log)


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
