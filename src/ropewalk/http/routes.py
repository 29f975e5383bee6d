"""Every page this door serves: what it needs of whoever asks, and its handler. No listing, no page; no needs, no listing."""

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from ropewalk.base.metrics import Source
from ropewalk.broker.upkeep.vitals import Vitals
from ropewalk.broker.watching.cluster_health import ClusterHealth
from ropewalk.broker.watching.health import Health
from ropewalk.http.admission import Admission, Caller, Page
from ropewalk.http.handlers import health as health_pages
from ropewalk.http.handlers import index, scrape
from ropewalk.http.handlers import internals as internal_pages
from ropewalk.http.handlers.internals import Internals
from ropewalk.http.needs import Figures, Inner, Needs, Open
from ropewalk.http1.message import Answer, Request, StreamedAnswer, Visitor
from ropewalk.http1.routing import RouteTable, Say
from ropewalk.security.access import Operation


class Route(Struct, frozen=True):
    path: str
    """One that ends in a slash, but for the first, has everything below it, whatever the method."""
    needs: Needs
    page: Page
    method: str = "GET"


def routes(
    sources: Callable[[], Sequence[Source]],
    health: Health,
    cluster_health: ClusterHealth,
    vitals: Vitals,
    internals: Internals,
    *,
    front: str | None = None,
) -> Sequence[Route]:
    """Everything here is read only. `front` is where browsers are led that ask for nothing in particular."""
    scrapes = scrape.Scrapes(sources, vitals)
    probe = Open("whoever routes to the node asks, and hears no name of a topic, a group or a user")
    figures = Figures((Operation.DESCRIBE,))
    inner = Inner((Operation.DESCRIBE_CONFIGS,))
    return (
        Route(
            "/",
            Open("it lists the pages, which are the same everywhere"),
            _for_anybody(partial(index.handle, front=front)),
        ),
        Route("/metrics", figures, _for_anybody(partial(scrape.handle, scrapes=scrapes, per_partition=True))),
        Route(
            "/public_metrics",
            figures,
            _for_anybody(partial(scrape.handle, scrapes=scrapes, per_partition=False)),
        ),
        Route("/livez", probe, _for_anybody(partial(health_pages.handle_live, health=health))),
        Route("/readyz", probe, _for_anybody(partial(health_pages.handle_ready, health=health))),
        Route("/healthz", figures, _for_anybody(partial(health_pages.handle_healthy, health=health))),
        Route(
            "/cluster/healthz",
            figures,
            _for_anybody(partial(health_pages.handle_cluster, health=cluster_health)),
        ),
        Route(
            "/debug/journal",
            inner,
            _for_anybody(partial(internal_pages.handle_journal, internals=internals)),
        ),
        Route(
            "/debug/stacks",
            inner,
            _for_anybody(partial(internal_pages.handle_stacks, internals=internals)),
        ),
        Route(
            "/debug/settings",
            inner,
            _for_anybody(partial(internal_pages.handle_settings, internals=internals)),
        ),
    )


class Doorway:
    """`answer` is the door's handler."""

    def __init__(self, admission: Admission, listed: Sequence[Route], *, say: Say | None = None) -> None:
        """`say` is how refusals are put, where not in a line."""
        self._admission = admission
        self._table = RouteTable(say=say)
        for route in listed:
            handle = admission.before(route.needs, route.page)
            if route.path.endswith("/") and route.path != "/":
                self._table.mount(route.path, handle)
            else:
                self._table.add(route.path, route.method, handle)

    async def answer(self, request: Request, visitor: Visitor) -> Answer | StreamedAnswer:
        return await self._admission.dressed(self._table.answer(request, visitor))


def _for_anybody(page: Callable[[Request], Coroutine[Any, None, Answer]]) -> Page:
    """Who asks makes no difference to what is told."""

    async def handle(request: Request, _caller: Caller) -> Answer:
        return await page(request)

    return handle
