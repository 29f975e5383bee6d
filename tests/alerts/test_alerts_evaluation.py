"""Conditions are worked out as Prometheus works them out: against a model of its language, and against itself."""

import math
import random
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.alerts.declared import RULES
from ropewalk.alerts.evaluation import evaluate
from ropewalk.alerts.expressions import parts_of
from ropewalk.alerts.history import History, Labels
from ropewalk.alerts.promql import promql
from ropewalk.base.limits import ALERT_SERIES_REMEMBERED_MAX
from tests.alerts.cases import CASES_BY_RULE, Course
from tests.alerts.promql_model import Series as Plain
from tests.alerts.promql_model import read, work_out
from tests.alerts.replay import built_in, parsed, promtool_test, run_promtool, windows_of_all

STEP_S = 15
COUNT = 30
INSTANCES = ("a", "b")


def courses(seed: int) -> dict[str, Course]:
    """Of every series that a rule looks at, on two nodes: some gone for a while, some beginning again, values near limits."""
    rng = random.Random(seed)
    found: dict[str, Course] = {}
    for series in sorted({name for case in CASES_BY_RULE.values() for name in case.series}):
        for instance in INSTANCES:
            if rng.random() < 0.1:
                continue
            name = series.replace('instance="a"', f'instance="{instance}"')
            found[name] = _course(rng, CASES_BY_RULE_OF[series])
    return found


CASES_BY_RULE_OF = {name: case.series[name] for case in CASES_BY_RULE.values() for name in case.series}


def _course(rng: random.Random, usual: Course) -> Course:
    """Now as in the case of its rule, now as before it, with gaps and beginnings."""
    values: list[float | None] = []
    position, offset = 0, rng.choice((0, 0, 0, rng.random() * 10))
    while len(values) < COUNT:
        stretch = rng.randint(1, 12)
        kind = rng.random()
        for _ in range(stretch):
            if kind < 0.15:
                values.append(None)
            elif kind < 0.55:
                position += 1
                values.append(_plus(usual(position), offset))
            elif kind < 0.7:
                position = 0
                values.append(_plus(usual(0), offset))
            else:
                values.append(_plus(usual(position), 0))
    return lambda number: values[number] if number < COUNT else None


def _plus(value: float | None, offset: float) -> float | None:
    return None if value is None else float(value + offset)


def as_history(series: Mapping[str, Course], until: int) -> History:
    history = History(windows_of_all())
    for number in range(until + 1):
        figures: dict[str, dict[Labels, float]] = {}
        for each, course in series.items():
            value = course(number)
            if value is not None:
                name, labels = parsed(each)
                figures.setdefault(name, {})[labels] = value
        history.look(figures)
        history.remember(number * STEP_S * 1000)
    return history


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, COUNT - 1))
def test_every_part_of_every_rule_is_worked_out_as_the_model_works_out_its_text(seed: int, at: int) -> None:
    series = courses(seed)
    history = as_history(series, at)
    plain: Plain = {
        (name, frozenset(labels)): [
            (float(number * STEP_S), value)
            for number in range(at + 1)
            if (value := course(number)) is not None
        ]
        for each, course in series.items()
        for name, labels in [parsed(each)]
    }
    for rule in RULES:
        for part in parts_of(rule.condition):
            text = promql(part)
            found = {
                frozenset(labels): value
                for labels, value in evaluate(part, at * STEP_S * 1000, history).items()
            }
            wanted = work_out(read(text), at * STEP_S, plain)
            assert found.keys() == wanted.keys(), f"{rule.name}: {text}"
            for labels, value in found.items():
                assert _is_close(value, wanted[labels]), (
                    f"{rule.name}: {text} of {labels}: {value} {wanted[labels]}"
                )


def _is_close(one: float, other: float) -> bool:
    return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not here")
def test_prometheus_itself_fires_the_same_on_the_same_samples(tmp_path: Path) -> None:
    tests = []
    fired = set()
    for seed in range(12):
        series = courses(seed)
        firing = built_in(series, step_s=STEP_S, count=COUNT)
        fired |= {alert for alerts in firing for alert, _ in alerts}
        tests.append(
            promtool_test(f"seed {seed}", series, step_s=STEP_S, expected=firing, at=range(1, COUNT, 4))
        )
    assert run_promtool(tmp_path, tests, step_s=STEP_S) == ""
    assert len(fired) >= 10, f"the samples are to make rules fire, and fired only {fired}"


def test_a_condition_that_is_wrong_in_one_number_is_found() -> None:
    """The comparison above can fail."""
    rule = next(rule for rule in RULES if rule.name == "RopewalkClock")
    series: dict[str, Course] = {'ropewalk_clock_difference_seconds{instance="a"}': lambda _: 5.5}
    found = evaluate(rule.condition, 0, as_history(series, 0))
    plain: Plain = {("ropewalk_clock_difference_seconds", frozenset({("instance", "a")})): [(0.0, 5.5)]}
    assert found
    assert not work_out(read(promql(rule.condition).replace("> 5", "> 6")), 0, plain)


def test_what_is_remembered_is_bounded() -> None:
    history = History({"a": 60})
    for second in range(0, 600, 15):
        history.look({"a": {(("n", str(number)),): 1.0 for number in range(ALERT_SERIES_REMEMBERED_MAX + 5)}})
        history.remember(second * 1000)
    pasts = list(history.past("a"))
    assert len(pasts) == ALERT_SERIES_REMEMBERED_MAX
    assert history.refused_count == 5 * 40
    assert all(len(past.times_ms) <= 12 for _, past in pasts)
    history.look({})
    for second in range(600, 720, 15):
        history.remember(second * 1000)
    assert not list(history.past("a"))
