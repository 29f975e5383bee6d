"""/debug/journal, /debug/stacks, /debug/settings: what a node's own people look at when something is wrong with it.

Behaviour worth knowing
    The journal is what the node keeps of it in memory: the latest lines, as JSON. Stacks are of every task and every thread.
    Settings are those of the node's own configuration, each with where it comes from; secrets are not among them.
"""

from collections.abc import Callable, Coroutine, Iterable
from http import HTTPStatus
from typing import Any

from msgspec import Struct

from ropewalk.http1.message import Answer, Request, text_answer


class Internals(Struct, frozen=True):
    journal: Callable[[], Iterable[str]]
    stacks: Callable[[], Coroutine[Any, Any, str]]
    settings: Callable[[], Iterable[str]]


async def handle_journal(_request: Request, *, internals: Internals) -> Answer:
    return text_answer(HTTPStatus.OK, "\n".join(internals.journal()))


async def handle_stacks(_request: Request, *, internals: Internals) -> Answer:
    return text_answer(HTTPStatus.OK, await internals.stacks())


async def handle_settings(_request: Request, *, internals: Internals) -> Answer:
    return text_answer(HTTPStatus.OK, "\n".join(internals.settings()))
