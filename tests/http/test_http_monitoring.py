"""The alerts and the dashboard that we hand out name metrics and labels that exist."""

import json
import re
from pathlib import Path

import pytest

from ropewalk.base.metrics import METRICS, Kind

FILES = Path(__file__).parents[2] / "docs/operating/monitoring"
KNOWN = {
    name
    for metric in METRICS
    for name in (
        [f"{metric.name}_{part}" for part in ("bucket", "sum", "count")]
        if metric.kind is Kind.HISTOGRAM
        else [metric.name]
    )
}
LABELS = {label for metric in METRICS for label in metric.labels} | {"instance", "job", "le"}


def expressions_of(path: Path) -> list[str]:
    if path.suffix == ".json":
        dashboard = json.loads(path.read_text())
        return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return re.findall(r"^\s+expr: (.+)$", path.read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", ["alerts.yml", "dashboard.json"])
def test_every_metric_that_is_named_exists(name: str) -> None:
    expressions = expressions_of(FILES / name)
    assert len(expressions) >= 10
    for expression in expressions:
        named = set(re.findall(r"\b(?:kafka|ropewalk|process)_\w+", expression))
        assert named or "up{" in expression, expression
        assert named <= KNOWN, f"{named - KNOWN} in {expression}"
        grouped = re.findall(r"\b(?:by|on) \(([^)]*)\)", expression)
        matched = re.findall(r"[{,]\s*(\w+)=~?", expression)
        labels = {label.strip() for group in grouped for label in group.split(",")} | set(matched)
        assert labels <= LABELS, f"{labels - LABELS} in {expression}"


def test_alerts_say_what_is_wrong_in_words() -> None:
    text = (FILES / "alerts.yml").read_text()
    assert text.count("- alert: ") == text.count("summary: ") == text.count("severity: ")
