"""/metrics and /public_metrics: all figures, in Prometheus's text format.

Behaviour worth knowing
    A page is written in slices, with turns of the event loop between them: thousands of partitions delay nobody. Its
    figures are therefore of slightly different moments.
    Whoever asks while a page is being written gets that page. Many scrapers cost as much as one.
"""

import asyncio
from collections.abc import Callable, Sequence
from http import HTTPStatus

from ropewalk.base.metrics import Source
from ropewalk.broker.upkeep.vitals import Vitals
from ropewalk.http.exposition import CONTENT_TYPE, Exposition
from ropewalk.http1.message import Answer, Request
from ropewalk.runtime.steps import Pace


class Scrapes:
    """Writes pages, at most one of each kind at a time."""

    def __init__(self, sources: Callable[[], Sequence[Source]], vitals: Vitals) -> None:
        """There are more sources as the node starts; a page is of those that are there when it begins."""
        self._sources = sources
        self._vitals = vitals
        self._under_way: dict[bool, asyncio.Future[list[bytes]]] = {}

    async def page(self, *, per_partition: bool) -> list[bytes]:
        under_way = self._under_way.get(per_partition)
        if under_way is not None:
            return await under_way
        page: asyncio.Future[list[bytes]] = asyncio.get_running_loop().create_future()
        self._under_way[per_partition] = page
        try:
            chunks = await self._write(per_partition)
        except BaseException as error:
            page.set_exception(error)
            page.exception()  # whoever waits hears of it; if nobody does, the raise below is enough
            raise
        finally:
            del self._under_way[per_partition]
        page.set_result(chunks)
        return chunks

    async def _write(self, per_partition: bool) -> list[bytes]:
        await self._vitals.refresh()
        sheet = Exposition(per_partition=per_partition)
        pace = Pace(1)
        for source in self._sources():
            for _ in source.collect(sheet):
                sheet.settle()
                await pace.next()
        return sheet.chunks()


async def handle(_request: Request, *, scrapes: Scrapes, per_partition: bool) -> Answer:
    chunks = await scrapes.page(per_partition=per_partition)
    return Answer(HTTPStatus.OK, chunks, CONTENT_TYPE)
