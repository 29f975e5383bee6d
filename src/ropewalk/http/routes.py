"""Every page this door serves, with its handler. No listing, no page."""

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from ropewalk.base.metrics import Source
from ropewalk.broker.upkeep.vitals import Vitals
from ropewalk.broker.watching.cluster_health import ClusterHealth
from ropewalk.broker.watching.health import Health
from ropewalk.http.handlers import health as health_pages
from ropewalk.http.handlers import index, scrape
from ropewalk.http1.message import Answer, Handle, Request, Visitor
from ropewalk.http1.routing import RouteTable

_Page = Callable[[Request], Coroutine[Any, None, Answer]]


def routes(
    sources: Callable[[], Sequence[Source]],
    health: Health,
    cluster_health: ClusterHealth,
    vitals: Vitals,
) -> RouteTable:
    """Everything here is read only. Others may add theirs."""
    table = RouteTable()
    scrapes = scrape.Scrapes(sources, vitals)
    pages: dict[str, _Page] = {
        "/": index.handle,
        "/metrics": partial(scrape.handle, scrapes=scrapes, per_partition=True),
        "/public_metrics": partial(scrape.handle, scrapes=scrapes, per_partition=False),
        "/livez": partial(health_pages.handle_live, health=health),
        "/readyz": partial(health_pages.handle_ready, health=health),
        "/healthz": partial(health_pages.handle_healthy, health=health),
        "/cluster/healthz": partial(health_pages.handle_cluster, health=cluster_health),
    }
    for path, page in pages.items():
        table.get(path, _for_anybody(page))
    return table


def _for_anybody(page: _Page) -> Handle:
    """Who asks makes no difference."""

    async def handle(request: Request, _visitor: Visitor) -> Answer:
        return await page(request)

    return handle
