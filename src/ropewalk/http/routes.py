"""Every page this door serves, with its handler. No listing, no page."""

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from ropewalk.base.metrics import Source
from ropewalk.broker.upkeep.vitals import Vitals
from ropewalk.broker.watching.cluster_health import ClusterHealth
from ropewalk.broker.watching.health import Health
from ropewalk.http.handlers import health as health_pages
from ropewalk.http.handlers import index, scrape
from ropewalk.http1.message import Answer, Request, Visitor, text_answer

_Page = Callable[[Request], Coroutine[Any, None, Answer]]

METHODS: Final = ("GET", "HEAD")
"""Everything here is read only."""


class Routes:
    def __init__(
        self,
        sources: Callable[[], Sequence[Source]],
        health: Health,
        cluster_health: ClusterHealth,
        vitals: Vitals,
    ) -> None:
        scrapes = scrape.Scrapes(sources, vitals)
        self._handlers: dict[str, _Page] = {
            "/": index.handle,
            "/metrics": partial(scrape.handle, scrapes=scrapes, per_partition=True),
            "/public_metrics": partial(scrape.handle, scrapes=scrapes, per_partition=False),
            "/livez": partial(health_pages.handle_live, health=health),
            "/readyz": partial(health_pages.handle_ready, health=health),
            "/healthz": partial(health_pages.handle_healthy, health=health),
            "/cluster/healthz": partial(health_pages.handle_cluster, health=cluster_health),
        }

    async def answer(self, request: Request, _visitor: Visitor) -> Answer:
        handle = self._handlers.get(request.path)
        if handle is None:
            return text_answer(
                HTTPStatus.NOT_FOUND, f"there is no page {request.path!r}; / lists those there are"
            )
        if request.method not in METHODS:
            allowed = ", ".join(METHODS)
            return text_answer(
                HTTPStatus.METHOD_NOT_ALLOWED, f"{request.path} takes {allowed}", ("allow", allowed)
            )
        return await handle(request)
