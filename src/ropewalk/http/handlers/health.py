"""/livez, /readyz, /healthz, /cluster/healthz: 200 and `ok`, or 503 and what is wrong.

Behaviour worth knowing
    With `?verbose` every check has its line; without, only those that failed.
    What a node can bear, a controller that is out of reach for one, has its line too, and the answer is 200 all the same.
    /cluster/healthz is about the cluster, whichever node is asked, and fails with what `ropewalk cluster health` fails with; a node that
    cannot find out how the cluster is answers 503.
"""

from collections.abc import Sequence
from http import HTTPStatus

from ropewalk.broker.watching.cluster_health import ClusterHealth
from ropewalk.broker.watching.health import Check, Health
from ropewalk.http1.message import Answer, Request, text_answer


async def handle_live(request: Request, *, health: Health) -> Answer:
    return _answer(request, health.live())


async def handle_ready(request: Request, *, health: Health) -> Answer:
    return _answer(request, await health.ready())


async def handle_healthy(request: Request, *, health: Health) -> Answer:
    return _answer(request, await health.well())


async def handle_cluster(_request: Request, *, health: ClusterHealth) -> Answer:
    troubles = await health.troubles()
    lines = [f"{each.what} {each.where}: {each.why}" for each in troubles]
    if lines:
        return text_answer(HTTPStatus.SERVICE_UNAVAILABLE, "\n".join([*lines, "failed"]))
    return text_answer(HTTPStatus.OK, "ok")


def _answer(request: Request, checks: Sequence[Check]) -> Answer:
    wrong = [check for check in checks if check.problem is not None]
    shown = checks if "verbose" in request.query else wrong
    lines = [_line(check) for check in shown]
    if any(not check.is_tolerable for check in wrong):
        return text_answer(HTTPStatus.SERVICE_UNAVAILABLE, "\n".join([*lines, "failed"]))
    return text_answer(HTTPStatus.OK, "\n".join([*lines, "ok"]))


def _line(check: Check) -> str:
    if check.problem is None:
        return f"{check.name} ok"
    return f"{check.name} {'degraded' if check.is_tolerable else 'failed'}: {check.problem}"
