"""/livez, /readyz, /healthz: 200 and `ok`, or 503 and what is wrong.

Behaviour worth knowing
    With `?verbose` every check has its line; without, only those that failed.
"""

from collections.abc import Sequence
from http import HTTPStatus

from ropewalk.broker.health import Check, Health
from ropewalk.http.message import Answer, Request, text_answer


async def handle_live(request: Request, *, health: Health) -> Answer:
    return _answer(request, health.live())


async def handle_ready(request: Request, *, health: Health) -> Answer:
    return _answer(request, await health.ready())


async def handle_healthy(request: Request, *, health: Health) -> Answer:
    return _answer(request, await health.well())


def _answer(request: Request, checks: Sequence[Check]) -> Answer:
    failed = [check for check in checks if check.problem is not None]
    shown = checks if "verbose" in request.query else failed
    lines = [_line(check) for check in shown]
    if failed:
        return text_answer(HTTPStatus.SERVICE_UNAVAILABLE, "\n".join([*lines, "failed"]))
    return text_answer(HTTPStatus.OK, "\n".join([*lines, "ok"]))


def _line(check: Check) -> str:
    return f"{check.name} ok" if check.problem is None else f"{check.name} failed: {check.problem}"
