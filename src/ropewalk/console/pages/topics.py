"""All topics in one list, with who reads them and how far behind they are; and a form for another."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ropewalk.base.ids import TopicPartition
from ropewalk.client.administration.admin import BROKER_CHOOSES, Admin, NewTopic
from ropewalk.console.filled_in import assignments, number
from ropewalk.console.page import Asked, Done, Page, Shown, link
from ropewalk.console.paging import paged
from ropewalk.views.topic_list import ListedTopic, collect, matching

_ORDERS: Final[Mapping[str, Callable[[ListedTopic], tuple[float, str]]]] = {
    "name": lambda each: (0, each.name),
    "lag": lambda each: (-each.lag, each.name),
    "rate": lambda each: (-(each.written_per_second or 0), each.name),
    "records": lambda each: (-(each.records or 0), each.name),
}


async def show(asked: Asked) -> Shown:
    picture, sample = await asked.watcher.seen()
    topics = await collect(asked.client, picture, sample)
    words, order = asked.query.get("filter", ""), asked.query.get("order", "")
    with_internal = asked.query.get("internal") == "yes"
    shown = [each for each in matching(topics, words) if with_internal or not each.is_internal]
    page = paged(sorted(shown, key=_ORDERS.get(order, _ORDERS["name"])), asked.query.get("page", ""))
    values: dict[str, object] = {
        "page": page,
        "words": words,
        "order": order if order in _ORDERS else "name",
        "with_internal": with_internal,
        "sizes": await _sizes(asked, page.rows),
        "kept": {
            "filter": words or None,
            "order": order if order in _ORDERS and order != "name" else None,
            "internal": "yes" if with_internal else None,
        },
        "there_are_none": not any(not each.is_internal for each in topics),
        "said": {
            name: asked.form.text(name) for name in ("name", "partitions", "replicas", "owner", "settings")
        },
    }
    return Shown("topics.html", values)


async def create(asked: Asked) -> Done:
    name = asked.form.text("name")
    settings = assignments(asked.form.text("settings"))
    if owner := asked.form.text("owner"):
        settings["ropewalk.owner"] = owner
    topic = NewTopic(
        name,
        number(asked.form.text("partitions"), "partitions", least=1, otherwise=BROKER_CHOOSES),
        number(asked.form.text("replicas"), "replicas", least=1, otherwise=BROKER_CHOOSES),
        tuple(settings.items()),
    )
    outcomes = await Admin(asked.client).create_topics([topic])
    for error in outcomes.values():
        if error is not None:
            raise error
    return Done(link("topic", name=name), f"{name} was created")


async def _sizes(asked: Asked, topics: Sequence[ListedTopic]) -> dict[str, int]:
    """Of those that are shown, as far as brokers say."""
    wanted = [TopicPartition(each.name, index) for each in topics for index in range(each.partitions)]
    sizes: dict[str, int] = {}
    if wanted:
        for at, size in (await asked.client.log_sizes(wanted)).items():
            sizes[at.topic] = sizes.get(at.topic, 0) + size
    return sizes


PAGE: Final = Page(
    name="topics", title="Topics", menu="Topics", key="t", show=show, actions={"create": create}
)
