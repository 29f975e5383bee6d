"""What a page is, what it is asked with, and what it answers."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from urllib.parse import urlencode

from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ports import ClientPorts, Clock, Pool, Rng
from ropewalk.client.calls.client import Client
from ropewalk.console.options import ConsoleOptions
from ropewalk.console.watching import Watcher
from ropewalk.http1.events import EventStream
from ropewalk.http1.forms import Form
from ropewalk.views.group_reset import NothingToShift
from ropewalk.views.group_reset import NotThere as NoSuchPartition
from ropewalk.views.offsets import OutsidePartition
from ropewalk.views.standing_alerts import NotSilenced
from ropewalk.views.words import NotUnderstood

BASE = "/console/"


class Asked(Struct, frozen=True, kw_only=True):
    query: Mapping[str, str]
    form: Form
    """Of the action that is asked for, or of the one that failed and whose page this is; empty elsewhere."""
    client: Client
    """In the reader's own name."""
    watcher: Watcher
    clock: Clock
    rng: Rng
    pool: Pool
    options: ConsoleOptions
    ports: ClientPorts
    is_open: bool
    """Whether nobody has to say who he is, here or to the cluster."""
    user: str | None
    """Who has logged in; None where nobody has to."""

    def word(self, name: str) -> str:
        """What the form says, or else the address; empty where neither does."""
        return self.form.text(name) if self.form.is_set(name) else self.query.get(name, "").strip()


class Shown(Struct, frozen=True):
    template: str
    values: Mapping[str, object]
    title: str | None = None
    """Where it is not that of the page."""


class Done(Struct, frozen=True):
    """An action was carried out: what to show next, and what to say there."""

    address: str
    notice: str


class Wrong(RopewalkError):
    """What was filled in cannot be meant; said on the page it came from."""


class NotThere(RopewalkError):
    """The page is about something that does not exist."""


Show = Callable[[Asked], Awaitable[Shown]]
Act = Callable[[Asked], Awaitable[Done]]


class Action(Struct, frozen=True):
    act: Act
    changes: bool = True
    """Whether a console that only reads refuses it."""


Stream = Callable[[Asked, EventStream], Awaitable[None]]
"""Tells the stream what happens until that has ended, or there is nothing more."""


class Page(Struct, frozen=True, kw_only=True):
    name: str
    """Its address below `BASE`, where the first one is, too."""
    title: str
    show: Show
    menu: str | None = None
    """What leads to it in the menu; None for a page that another leads to."""
    under: str | None = None
    """The page whose place in the menu is marked while this one is shown."""
    key: str = ""
    """Of the keyboard, after g."""
    actions: Mapping[str, Action | Act] = {}
    streams: Mapping[str, Stream] = {}
    needs: Callable[[ConsoleOptions], bool] = lambda _: True
    """Whether this console has it."""


def link(page: str, /, **query: str | int | Sequence[str] | None) -> str:
    """The address of a page, with what it is asked with; what is None is left out."""
    said = [(name, value) for name, value in query.items() if value is not None and value != ""]
    return BASE + page + ("?" + urlencode(said, doseq=True) if said else "")


REFUSALS: Mapping[type[RopewalkError], HTTPStatus] = {
    Wrong: HTTPStatus.UNPROCESSABLE_ENTITY,
    NotThere: HTTPStatus.NOT_FOUND,
    NotUnderstood: HTTPStatus.UNPROCESSABLE_ENTITY,
    NoSuchPartition: HTTPStatus.UNPROCESSABLE_ENTITY,
    NothingToShift: HTTPStatus.UNPROCESSABLE_ENTITY,
    NotSilenced: HTTPStatus.UNPROCESSABLE_ENTITY,
    OutsidePartition: HTTPStatus.UNPROCESSABLE_ENTITY,
}
