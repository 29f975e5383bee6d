"""What somebody at a terminal sees of a job: a line that changes; elsewhere a line for each batch."""

from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from ropewalk.spark.pipelines.progress import Snapshot

if TYPE_CHECKING:
    from rich.status import Status as Spinner


class Showing:
    """Use it as a context: a terminal is put in order again at the end."""

    def __init__(self, name: str, out: TextIO, *, quiet: bool = False) -> None:
        self._name = name
        self._out = out
        self._quiet = quiet
        self._spinner: Spinner | None = None

    def __enter__(self) -> "Showing":
        if self._out.isatty() and not self._quiet:
            from rich.console import Console

            self._spinner = Console(file=self._out).status(self._name)
            self._spinner.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._spinner is not None:
            self._spinner.stop()

    def step(self, text: str) -> None:
        """What is being done before the first batch, and after the last."""
        if self._spinner is not None:
            self._spinner.update(f"{self._name}: {text}")
        else:
            self._line(f"{self._name}: {text}")

    def batch(self, snapshot: Snapshot) -> None:
        if self._spinner is None:
            self._line(f"{self._name}: {last_batch(snapshot)}")
        self.waiting(snapshot)

    def waiting(self, snapshot: Snapshot) -> None:
        """Between batches: for who looks at a terminal, and no line elsewhere."""
        if self._spinner is not None:
            self._spinner.update(f"{self._name}: {so_far(snapshot)}")

    def _line(self, text: str) -> None:
        if not self._quiet:
            print(text, file=self._out, flush=True)


def last_batch(snapshot: Snapshot) -> str:
    return (
        f"batch {snapshot.batch}: {_counted(snapshot.batch_rows, 'row')} in {snapshot.batch_seconds:.1f} s"
        f" ({snapshot.rows_per_second:,.0f} rows/s){_lag(snapshot)}"
    )


def so_far(snapshot: Snapshot) -> str:
    if not snapshot.batches:
        return f"no batch yet{_lag(snapshot)}"
    return f"batch {snapshot.batch}, {_counted(snapshot.rows, 'row')}, {snapshot.rows_per_second:,.0f} rows/s{_lag(snapshot)}"


def summary(snapshot: Snapshot, seconds: float) -> str:
    batches = "1 batch" if snapshot.batches == 1 else f"{snapshot.batches:,} batches"
    rate = (
        f" ({snapshot.rows / snapshot.busy_seconds:,.0f} rows/s in batches)"
        if snapshot.busy_seconds > 0
        else ""
    )
    return f"{_counted(snapshot.rows, 'row')} read{_became(snapshot)} in {batches}, {seconds:.1f} s{rate}"


def _became(snapshot: Snapshot) -> str:
    """What was written is told even if it is nothing; what ought not to be, only if it is there."""
    told = [] if snapshot.written_rows is None else [f"{snapshot.written_rows:,} written"]
    if snapshot.dead_letters:
        told.append(_counted(snapshot.dead_letters, "dead letter"))
    elif snapshot.unreadable_rows:
        told.append(f"{snapshot.unreadable_rows:,} unreadable")
    if snapshot.late_rows:
        told.append(f"{snapshot.late_rows:,} too late")
    return "".join(f", {each}" for each in told)


def _lag(snapshot: Snapshot) -> str:
    return "" if snapshot.lag is None else f", lag {snapshot.lag:,}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
