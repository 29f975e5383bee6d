"""Samples through the built-in evaluation, and through promtool: which alerts fire at each of them."""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ropewalk.alerts.declared import GROUPS, RULES
from ropewalk.alerts.evaluation import evaluate
from ropewalk.alerts.expressions import windows_of
from ropewalk.alerts.history import History, Labels
from ropewalk.alerts.rule_file import rule_file
from ropewalk.alerts.rules import Rule
from ropewalk.alerts.standing import Standings, State
from tests.alerts.cases import Course

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Firing = list[set[tuple[str, Labels]]]
"""By the number of the sample: the names of alerts with their labels."""


def parsed(series: str) -> tuple[str, Labels]:
    name = series.partition("{")[0]
    return name, tuple(sorted(_LABEL.findall(series)))


def windows_of_all(rules: Sequence[Rule] = RULES) -> dict[str, int]:
    windows: dict[str, int] = {}
    for rule in rules:
        for name, seconds in windows_of(rule.condition).items():
            windows[name] = max(windows.get(name, 0), seconds)
    return windows


def built_in(
    series: Mapping[str, Course], *, step_s: int, count: int, rules: Sequence[Rule] = RULES
) -> Firing:
    history, standings, firing = History(windows_of_all(rules)), Standings(), []
    for number in range(count):
        at_ms = number * step_s * 1000
        figures: dict[str, dict[Labels, float]] = {}
        for each, course in series.items():
            value = course(number)
            if value is not None:
                name, labels = parsed(each)
                figures.setdefault(name, {})[labels] = value
        history.look(figures)
        history.remember(at_ms)
        for rule in rules:
            standings.on_result(rule, evaluate(rule.condition, at_ms, history), at_ms)
        firing.append(
            {(alert.rule.name, alert.labels) for alert in standings.alerts() if alert.state is State.FIRING}
        )
    return firing


def promtool_test(
    name: str, series: Mapping[str, Course], *, step_s: int, expected: Firing, at: Sequence[int]
) -> dict[str, object]:
    """One test of `promtool test rules`: at some samples just these alerts fire."""
    severities = {rule.name: rule.severity.value for rule in RULES}
    return {
        "name": name,
        "interval": f"{step_s}s",
        "input_series": [
            {
                "series": each,
                "values": " ".join(
                    "stale" if (value := course(number)) is None else repr(float(value))
                    for number in range(len(expected))
                ),
            }
            for each, course in series.items()
        ],
        "promql_expr_test": [
            {
                "expr": 'ALERTS{alertstate="firing"}',
                "eval_time": f"{number * step_s}s",
                "exp_samples": [
                    {
                        "labels": _written(
                            {
                                **dict(labels),
                                "alertname": alert,
                                "alertstate": "firing",
                                "severity": severities[alert],
                            }
                        ),
                        "value": 1,
                    }
                    for alert, labels in sorted(expected[number])
                ],
            }
            for number in at
        ],
    }


def _written(labels: Mapping[str, str]) -> str:
    return "ALERTS{" + ", ".join(f"{name}={json.dumps(value)}" for name, value in labels.items()) + "}"


def run_promtool(place: Path, tests: Sequence[Mapping[str, object]], *, step_s: int) -> str:
    """What it says is wrong; empty if nothing is."""
    rules, test = place / "rules.yml", place / f"test-{step_s}.yml"
    rules.write_text(rule_file(GROUPS, docs="docs"))
    test.write_text(
        json.dumps({"rule_files": [str(rules)], "evaluation_interval": f"{step_s}s", "tests": list(tests)})
    )
    done = subprocess.run(
        ["promtool", "test", "rules", test], capture_output=True, text=True, check=False, timeout=300
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr
