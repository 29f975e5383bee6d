"""Durations as people write them (`views/words.py`), as options."""

import typer

from ropewalk.views.words import NotUnderstood, parse_span


def parse_duration(text: str, *, option: str) -> int:
    """Milliseconds, from `90s`, `15m`, `2h`, `7d` or ISO 8601's `P1DT2H`, which Kafka's tools take."""
    try:
        return parse_span(text)
    except NotUnderstood as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
