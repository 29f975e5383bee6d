"""All queues, with what is visible, in flight and delayed in each."""

from typing import Final

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls.together import together
from ropewalk.client.queues.administration import Counts, Queues
from ropewalk.console.page import Asked, Page, Shown
from ropewalk.console.paging import paged
from ropewalk.console.queue_doors import open_queues
from ropewalk.views.topic_list import ListedTopic, collect

NO_KEYS: Final = "figures come over the SQS API, which asks for keys; the console has none, and asks only where nobody has to log in"


class ShownQueue(Struct, frozen=True):
    topic: ListedTopic
    counts: Counts | None
    """None where nobody tells."""
    size: int | None


async def show(asked: Asked) -> Shown:
    picture, sample = await asked.watcher.seen()
    words = asked.query.get("filter", "")
    wanted = words.casefold().split()
    found = sorted(
        (
            each
            for each in await collect(asked.client, picture, sample)
            if each.queue is not None and all(word in each.queue.casefold() for word in wanted)
        ),
        key=lambda each: each.queue or "",
    )
    page = paged(found, asked.query.get("page", ""))
    counts, why = await _counts(asked, [each.queue or "" for each in page.rows])
    sizes: dict[str, int] = {}
    partitions = [TopicPartition(each.name, index) for each in page.rows for index in range(each.partitions)]
    for at, size in (await asked.client.log_sizes(partitions)).items() if partitions else ():
        sizes[at.topic] = sizes.get(at.topic, 0) + size
    values: dict[str, object] = {
        "page": page,
        "queues": [
            ShownQueue(each, counts.get(each.queue or ""), sizes.get(each.name)) for each in page.rows
        ],
        "why": why,
        "words": words,
        "kept": {"filter": words or None},
    }
    return Shown("queues.html", values)


async def _counts(asked: Asked, names: list[str]) -> tuple[dict[str, Counts], str]:
    """As far as they can be had, and why not."""
    if not names:
        return {}, ""
    if not asked.is_open:
        return {}, NO_KEYS
    try:
        async with open_queues(asked.client, asked.ports) as queues:
            found = await together([_count(queues, name) for name in names])
    except RopewalkError as error:
        return {}, str(error)
    return {name: each for name, each in zip(names, found, strict=True) if each is not None}, ""


async def _count(queues: Queues, name: str) -> Counts | None:
    """None for one that went since it was listed, or that does not answer."""
    try:
        return await queues.counts(name)
    except RopewalkError:
        return None


PAGE: Final = Page(name="queues", title="Queues", menu="Queues", key="q", show=show)
