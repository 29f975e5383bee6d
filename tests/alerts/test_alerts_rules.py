"""Every rule fires when it should and only then: here, and in Prometheus's own tool."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from ropewalk.alerts.declared import GROUPS, RULES
from ropewalk.alerts.expressions import series_of
from ropewalk.alerts.rule_file import rule_file
from ropewalk.base.metrics import METRICS
from tests.alerts.cases import cases
from tests.alerts.replay import built_in, promtool_test, run_promtool

REPOSITORY = Path(__file__).parents[2]
CASES = list(cases())
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not here")


def test_every_rule_has_two_cases_and_one_in_which_it_fires() -> None:
    counts = Counter(case.rule.name for case in CASES)
    assert set(counts) == {rule.name for rule in RULES}
    assert all(count >= 2 for count in counts.values())
    assert {case.rule.name for case in CASES if case.fires_at is not None} == set(counts)
    assert len(counts) == len(RULES), "names are used once"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule.name} {case.name}")
def test_a_rule_fires_just_when_it_should(case) -> None:  # type: ignore[no-untyped-def]
    firing = built_in(case.series, step_s=case.step_s, count=case.sample_count, rules=(case.rule,))
    fired = [number for number, alerts in enumerate(firing) if alerts]
    assert fired == ([] if case.fires_at is None else list(range(case.fires_at, case.sample_count)))


@needs_promtool
def test_promtool_takes_the_rules(tmp_path: Path) -> None:
    path = tmp_path / "rules.yml"
    path.write_text(rule_file(GROUPS, docs="https://docs.example/ropewalk/"))
    done = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(RULES)} rules found" in done.stdout


@needs_promtool
@pytest.mark.parametrize("step_s", sorted({case.step_s for case in CASES}))
def test_prometheus_says_of_every_case_what_is_said_here(tmp_path: Path, step_s: int) -> None:
    """All rules look at the samples of each case, so that one that should not fire is found, too."""
    tests = []
    for case in CASES:
        if case.step_s == step_s:
            firing = built_in(case.series, step_s=step_s, count=case.sample_count)
            at = {case.sample_count - 1} | (
                set() if case.fires_at is None else {case.fires_at - 1, case.fires_at}
            )
            name = f"{case.rule.name} {case.name}"
            tests.append(promtool_test(name, case.series, step_s=step_s, expected=firing, at=sorted(at)))
            fires = {alert for alert, _ in firing[-1]}
            assert (case.rule.name in fires) == (case.fires_at is not None), name
    assert run_promtool(tmp_path, tests, step_s=step_s) == ""


def test_rules_name_metrics_and_labels_that_exist() -> None:
    known = {metric.name: metric for metric in METRICS}
    for rule in RULES:
        labels = {"instance"}
        for series in series_of(rule.condition):
            assert known[series.metric.name] is series.metric
            assert {name for name, _ in series.where} <= set(series.metric.labels)
            labels |= set(series.metric.labels)
        assert set(re.findall(r"\{(\w+)\}", rule.summary)) <= labels | {"value"}, rule.name


def test_a_runbook_link_leads_to_the_heading_of_its_alert() -> None:
    links = re.findall(r'runbook_url: "docs/reference/alerts\.md#(\S+)"', rule_file(GROUPS, docs="docs"))
    assert len(links) == len(RULES)
    page = (REPOSITORY / "docs/reference/alerts.md").read_text()
    headings = {heading.lower() for heading in re.findall(r"^### (\w+)$", page, re.MULTILINE)}
    assert set(links) == headings


def test_remedies_name_commands_that_exist() -> None:
    from typer.main import get_command

    from ropewalk.cli.commands import COMMANDS

    for rule in RULES:
        for command, second in re.findall(r"`ropewalk (\w+)(?: (\w+))?", rule.remedy + rule.summary):
            assert command in COMMANDS, rule.name
            if second:
                from importlib import import_module

                group = get_command(import_module(COMMANDS[command]).app)
                assert second in getattr(group, "commands"), f"{rule.name}: {command} {second}"  # noqa: B009
