"""Boards ask only for what exists, in words that Prometheus understands."""

import json
import re

import pytest

from ropewalk.alerts.boards import BOARDS, WINDOW, Board
from ropewalk.alerts.grafana import grafana
from ropewalk.base.metrics import METRICS, Kind
from tests.alerts.promql_model import labels_in, names_in, read

NAMES = {
    name
    for metric in METRICS
    for name in (
        [f"{metric.name}_{part}" for part in ("bucket", "sum", "count")]
        if metric.kind is Kind.HISTOGRAM
        else [metric.name]
    )
}
LABELS = {label for metric in METRICS for label in metric.labels} | {"instance", "le"}


def queries(board: Board) -> list[str]:
    return [curve.query for panel in board.panels for curve in panel.curves]


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_every_query_parses_and_names_metrics_and_labels_that_exist(board: Board) -> None:
    for text in queries(board):
        query = read(text.replace(WINDOW, "1m"))
        assert names_in(query), text
        assert names_in(query) <= NAMES, f"{names_in(query) - NAMES} in {text}"
        assert labels_in(query) <= LABELS, f"{labels_in(query) - LABELS} in {text}"
        assert ("$instance" in text) <= board.has_nodes, text


def test_legends_name_labels_that_the_query_keeps() -> None:
    for board in BOARDS:
        for panel in board.panels:
            for curve in panel.curves:
                named = set(re.findall(r"\{\{(\w+)\}\}", curve.legend))
                kept = set(re.findall(r"\w+", ",".join(re.findall(r"by \(([^)]*)\)", curve.query))))
                assert named <= (kept or LABELS), f"{panel.title}: {curve.legend} of {curve.query}"


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_a_board_is_what_grafana_imports(board: Board) -> None:
    model = json.loads(grafana(board))
    assert model["uid"] == f"ropewalk-{board.name}"
    places = [panel["gridPos"] for panel in model["panels"]]
    taken = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(taken)) == len(taken), "no panel lies on another"
    assert max(x for x, _ in taken) < 24
    assert [panel["id"] for panel in model["panels"]] == list(range(1, len(board.panels) + 1))


def test_a_query_of_a_metric_that_does_not_exist_is_found() -> None:
    assert not names_in(read("sum(ropewalk_no_such_thing) by (topic)")) <= NAMES
    with pytest.raises(ValueError, match="missing"):
        read("sum(ropewalk_ready")
