"""All groups in one list: who is behind, and whether anybody reads."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from ropewalk.client.administration.groups import Groups
from ropewalk.client.errors import ApiNotOffered
from ropewalk.console.page import Asked, Page, Shown
from ropewalk.console.paging import paged
from ropewalk.views.answering import deadline_ms


class ListedGroup(Struct, frozen=True):
    name: str
    state: str
    """Empty where the broker is too old to say."""
    kind: str
    members: int | None
    lag: int | None
    """None where nobody has looked yet, or the coordinator does not answer."""
    unknown: int
    """Of how many partitions the lag is not known."""
    read_per_second: float | None


_ORDERS: Final[Mapping[str, Callable[[ListedGroup], tuple[float, str]]]] = {
    "lag": lambda each: (-(each.lag or 0), each.name),
    "name": lambda each: (0, each.name),
    "rate": lambda each: (-(each.read_per_second or 0), each.name),
}


async def show(asked: Asked) -> Shown:
    groups = await _collect(asked)
    words, order = asked.query.get("filter", ""), asked.query.get("order", "")
    order = order if order in _ORDERS else "lag"
    wanted = words.casefold().split()
    shown = [each for each in groups if all(word in each.name.casefold() for word in wanted)]
    values: dict[str, object] = {
        "page": paged(sorted(shown, key=_ORDERS[order]), asked.query.get("page", "")),
        "words": words,
        "order": order,
        "kept": {"filter": words or None, "order": order if order != "lag" else None},
        "there_are_none": not groups,
    }
    return Shown("groups.html", values)


async def _collect(asked: Asked) -> list[ListedGroup]:
    """Those that are there now, with what was seen of them a moment ago."""
    picture = await asked.watcher.picture()
    seen = {each.group: each for each in picture.groups}
    try:
        listed = await Groups(asked.client).list(
            deadline_ms=deadline_ms(asked.client), without_the_silent=True
        )
    except ApiNotOffered:  # a broker without groups has topics to show all the same
        return []
    found = []
    for each in listed:
        row = seen.get(each.group)
        found.append(
            ListedGroup(
                each.group,
                each.state,
                each.kind,
                None if row is None else row.members,
                None if row is None else row.lag,
                0 if row is None else row.unknown or 0,
                None if row is None else row.read_per_second,
            )
        )
    return found


PAGE: Final = Page(name="groups", title="Groups", menu="Groups", key="c", show=show)
