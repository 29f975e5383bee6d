"""One queue: figures, how it is set up, and a look at what is in it that changes nothing."""

import json
from typing import Final

from msgspec import Struct

from ropewalk.client.queues.administration import Described
from ropewalk.client.queues.errors import QueueMissing
from ropewalk.client.queues.message import Content
from ropewalk.console.page import Asked, NotThere, Page, Shown, Wrong
from ropewalk.console.pages.queues import NO_KEYS
from ropewalk.console.queue_doors import open_queues
from ropewalk.console.short import shortened

_BODY_CHARACTERS_MAX: Final = 2_000


class ShownMessage(Struct, frozen=True):
    content: Content
    body: str
    more: int
    """Characters of the body that are left out."""
    sent_at_ms: int | None
    receive_count: int


async def show(asked: Asked) -> Shown:
    name = asked.query.get("name", "")
    if not name:
        raise NotThere("say which queue, as ?name=NAME")
    if not asked.is_open:
        raise Wrong(NO_KEYS)
    wants_messages = asked.query.get("peek") == "yes"
    if wants_messages and not asked.options.shows_messages:
        raise Wrong("this console shows no messages (console.messages=off)")
    messages: list[Content] | None = None
    try:
        async with open_queues(asked.client, asked.ports) as queues:
            queue = await queues.describe(name)
            if wants_messages:
                messages = await queues.peek(name)
    except QueueMissing:
        raise NotThere(f"there is no queue {name!r}") from None
    values: dict[str, object] = {
        "name": name,
        "queue": queue,
        "dead_letters": _dead_letters(queue),
        "messages": None if messages is None else [_shown(each) for each in messages],
    }
    return Shown("queue.html", values, name)


def _shown(content: Content) -> ShownMessage:
    body, more = shortened(content.body, _BODY_CHARACTERS_MAX)
    return ShownMessage(
        content,
        body,
        more,
        _number(content, "SentTimestamp"),
        _number(content, "ApproximateReceiveCount") or 0,
    )


def _number(content: Content, name: str) -> int | None:
    text = content.system.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None


def _dead_letters(queue: Described) -> tuple[str, str] | None:
    """Where they go, and after how many receives."""
    try:
        policy = json.loads(queue.attributes.get("RedrivePolicy", ""))
        return str(policy["deadLetterTargetArn"]).rpartition(":")[2], str(policy["maxReceiveCount"])
    except (ValueError, KeyError, TypeError):
        return None


PAGE: Final = Page(name="queue", title="Queue", under="queues", show=show)
