"""Every rule of the doctor speaks where it should, and is silent where that is close."""

import re
from pathlib import Path

import pytest
from msgspec import structs

from ropewalk.base import metrics
from ropewalk.base.durations import Durations
from ropewalk.base.metrics import METRICS
from ropewalk.cli.commands import COMMANDS
from ropewalk.http.exposition import Exposition
from ropewalk.views.diagnosis.figures import Figures
from ropewalk.views.diagnosis.rule import Rule, Verdict, findings
from ropewalk.views.diagnosis.table import RULES
from tests.views.diagnoses import CASES, HEALTHY

DOCS = Path(__file__).parents[2] / "docs"
BY_NAME = {rule.name: rule for rule in RULES}


def test_there_are_forty_rules_and_more_each_with_a_name_and_cases_of_its_own() -> None:
    assert len(RULES) >= 40
    assert len(BY_NAME) == len(RULES)
    assert set(CASES) == set(BY_NAME)


@pytest.mark.parametrize("name", CASES)
def test_a_rule_speaks_where_it_should(name: str) -> None:
    speaking, _ = CASES[name]
    found = findings([BY_NAME[name]], speaking)
    assert found
    assert all(each.detail and each.check and each.rule == name for each in found)


@pytest.mark.parametrize("name", CASES)
def test_a_rule_is_silent_where_that_is_close(name: str) -> None:
    _, silent = CASES[name]
    assert findings([BY_NAME[name]], silent) == []


def test_of_a_healthy_cluster_there_is_nothing_to_say() -> None:
    assert findings(RULES, HEALTHY) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_says_why_and_what_to_do_and_names_what_is_there(rule: Rule) -> None:
    assert rule.sees.endswith(".")
    assert rule.why.endswith(".")
    assert rule.verdict is not Verdict.GOOD
    page, _, heading = rule.page.partition("#")
    headings = re.findall(r"^#+ (.+)$", (DOCS / page).read_text(), re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}
    assert not heading or heading in slugs
    for command in re.findall(r"\bropewalk ([a-z]+)", rule.command):
        assert command in COMMANDS


def test_what_is_wrong_comes_first_wherever_its_rule_stands() -> None:
    both = structs.replace(CASES["versions-differ"][0], machine=CASES["clock-unset"][0].machine)
    assert [each.rule for each in findings(RULES, both)] == ["clock-unset", "versions-differ"]


def test_figures_are_read_from_the_page_as_it_is_written() -> None:
    page = Exposition(per_partition=False)
    page.add(metrics.CERTIFICATE_LEFT, 3.5, 'a "b"\\c\nd')
    page.add(metrics.SERVED, 1e6, "produce")
    page.add(metrics.SERVED, 2.0, "fetch")
    took = Durations()
    for ms in (1, 40, 60):
        took.add(ms)
    page.add_durations(metrics.LOOP_DELAY, took)
    figures = Figures(b"".join(page.chunks()).decode())
    assert figures.rows(metrics.CERTIFICATE_LEFT) == [({"file": 'a "b"\\c\nd'}, 3.5)]
    assert figures.value(metrics.SERVED) == 1_000_002
    assert figures.count(metrics.LOOP_DELAY) == 3
    assert figures.share_above(metrics.LOOP_DELAY, 0.05) == pytest.approx(1 / 3)
    assert not figures.has(metrics.READY)


def test_a_page_of_something_else_says_nothing() -> None:
    figures = Figures("<html>\nropewalk_ready one\nropewalk_ready\n{} 3\n")
    assert not any(figures.has(metric) for metric in METRICS)
