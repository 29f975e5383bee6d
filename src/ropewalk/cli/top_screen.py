"""The screen of `ropewalk top`, in Textual. It shows what a source sees and holds no rule of its own.

A look that fails is said in the first line, and the last picture stays: the cluster may be back in a moment.
"""

import asyncio
from collections import deque
from contextlib import suppress
from typing import ClassVar, Final

from msgspec.structs import replace
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Input, Static

from ropewalk.base.errors import RopewalkError
from ropewalk.base.limits import TOP_ROWS_MAX
from ropewalk.cli.failure import describe
from ropewalk.cli.listing import COLUMNS, Listing, View, sparkline, written
from ropewalk.views.observation import Picture, Sample, Source, draw

_RATES_SHOWN: Final = 30
"""How many looks the line in the summary goes back."""


class TopScreen(App[None]):
    CSS = """
    #summary { height: 1; background: $primary-background; padding: 0 1; }
    DataTable { height: 1fr; }
    Input { display: none; border: none; height: 1; }
    Input.wanted { display: block; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "switch('topics')", "Topics"),
        Binding("p", "switch('partitions')", "Partitions"),
        Binding("g", "switch('groups')", "Groups"),
        Binding("n", "switch('nodes')", "Nodes"),
        Binding("less_than_sign,comma", "sort(-1)", "Sort", key_display="< >"),
        Binding("greater_than_sign,full_stop", "sort(1)", "Sort", show=False),
        Binding("r", "reverse", "Reverse"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("escape", "clear_filter", "All", show=False),
        Binding("space", "pause", "Pause"),
        Binding("u", "update", "Update"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, source: Source, *, interval_s: float) -> None:
        super().__init__()
        self._source = source
        self._interval_s = interval_s
        self._listing = Listing()
        self._former: Sample | None = None
        self._picture: Picture | None = None
        self._problem: str | None = None
        self._rates: deque[float | None] = deque(maxlen=_RATES_SHOWN)
        self._is_paused = False
        self._hurry = asyncio.Event()

    def compose(self) -> ComposeResult:
        yield Static("Looking …", id="summary", markup=False)
        yield DataTable[Text](cursor_type="row", zebra_stripes=True)
        yield Input(placeholder="only names that contain …")
        yield Footer()

    def on_mount(self) -> None:
        self._show_columns()
        self.query_one(DataTable).focus()
        self.run_worker(self._watch(), exclusive=True)

    async def _watch(self) -> None:
        while True:
            await self._look()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if self._is_paused else self._interval_s):
                    await self._hurry.wait()
            self._hurry.clear()

    async def _look(self) -> None:
        try:
            sample = await self._source.look()
        except RopewalkError as error:
            self._problem = describe(error)
        else:
            self._problem = None
            self._picture, self._former = draw(self._former, sample), sample
            self._rates.append(self._picture.written_per_second)
        self._show()

    def action_switch(self, view: str) -> None:
        self._listing = self._listing.switched(View(view))
        self._show_columns()
        self._show()

    def action_sort(self, step: int) -> None:
        self._listing = self._listing.sorted_beside(step)
        self._show_columns()
        self._show()

    def action_reverse(self) -> None:
        self._listing = replace(self._listing, is_reversed=not self._listing.is_reversed)
        self._show()

    def action_filter(self) -> None:
        field = self.query_one(Input)
        field.add_class("wanted")
        field.focus()

    def action_clear_filter(self) -> None:
        field = self.query_one(Input)
        field.value = ""
        field.remove_class("wanted")
        self.query_one(DataTable).focus()

    def action_pause(self) -> None:
        self._is_paused = not self._is_paused
        if self._is_paused:
            self._show()
        else:
            self._hurry.set()

    def action_update(self) -> None:
        self._hurry.set()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._listing = replace(self._listing, wanted=event.value)
        self._show()

    def on_input_submitted(self) -> None:
        self.query_one(DataTable).focus()

    def _show_columns(self) -> None:
        table = self.query_one(DataTable)
        table.clear(columns=True)
        for position, column in enumerate(COLUMNS[self._listing.view]):
            table.add_column(f"{column.heading} •" if position == self._listing.sorted_by else column.heading)

    def _show(self) -> None:
        summary = self.query_one("#summary", Static)
        if self._picture is None:
            if self._problem is not None:
                summary.update(self._problem)
            return
        rows = self._listing.rows(self._picture, count_max=TOP_ROWS_MAX)
        columns = COLUMNS[self._listing.view]
        table = self.query_one(DataTable)
        cursor = table.cursor_row
        table.clear()
        for row in rows.shown:
            # Text, because a name may contain what would be taken for markup.
            table.add_row(
                *(
                    Text(written(cell), justify="left" if column.is_text else "right")
                    for cell, column in zip(row, columns, strict=True)
                )
            )
        table.move_cursor(row=cursor)
        summary.update(self._summary(self._picture, len(rows.shown), rows.total))

    def _summary(self, picture: Picture, shown: int, total: int) -> str:
        view = self._listing.view.value
        facts = [
            picture.cluster_id or "no cluster id",
            f"brokers {picture.brokers}",
            f"written/s {written(picture.written_per_second)} {sparkline(self._rates)}".rstrip(),
            f"{view} {total:,}" if shown == total else f"{view} {shown:,} of {total:,}; filter with /",
        ]
        if self._is_paused:
            facts.append("paused")
        if self._problem is not None:
            facts.append(self._problem)
        return "   ".join(facts)
