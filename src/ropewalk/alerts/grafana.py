"""A board as Grafana imports it: its classic model, which later versions migrate by themselves."""

import json
from typing import Any, Final

from ropewalk.alerts.boards import Board, Panel
from ropewalk.base import metrics

_SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
_NUMBER_SIZE: Final = (4, 4)
_COURSE_SIZE: Final = (8, 7)
_WIDTH: Final = 24


def grafana(board: Board) -> str:
    choices: list[dict[str, Any]] = [{"name": "source", "type": "datasource", "query": "prometheus"}]
    if board.has_nodes:
        choices.append(
            {
                "name": "instance",
                "type": "query",
                "datasource": _SOURCE,
                "query": f"label_values({metrics.READY.name}, instance)",
                "multi": True,
                "includeAll": True,
                "refresh": 2,
            }
        )
    model = {
        "title": board.title,
        "uid": f"ropewalk-{board.name}",
        "schemaVersion": 39,
        "version": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "tags": ["ropewalk", "kafka"],
        "templating": {"list": choices},
        "panels": _panels(board.panels),
    }
    return json.dumps(model, indent=1, ensure_ascii=False) + "\n"


def _panels(panels: tuple[Panel, ...]) -> list[dict[str, Any]]:
    """In rows: numbers first, as the board has them, and each as high as its kind."""
    placed: list[dict[str, Any]] = []
    x = y = row_height = 0
    for number, panel in enumerate(panels, 1):
        width, height = _NUMBER_SIZE if panel.is_number else _COURSE_SIZE
        if x + width > _WIDTH or (row_height and height != row_height):
            x, y = 0, y + row_height
        row_height = height
        placed.append(_panel(number, panel, {"x": x, "y": y, "w": width, "h": height}))
        x += width
    return placed


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "title": panel.title,
        "description": panel.tells,
        "type": "stat" if panel.is_number else "timeseries",
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + position),
                "datasource": _SOURCE,
                "expr": curve.query,
                "legendFormat": curve.legend,
            }
            for position, curve in enumerate(panel.curves)
        ],
    }
