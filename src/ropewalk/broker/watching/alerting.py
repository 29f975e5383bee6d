"""A node looks at its own figures for alerts, and tells the webhook of them: the shell around `ropewalk.alerts`.

Behaviour worth knowing
    Each node looks at what concerns itself; rules about the whole cluster are looked at by the node that decides.
    Figures that take a walk over partitions, groups and queues are looked at with every fifth round, as seldom as Prometheus would; what
    was found stands until the next. What windows need is kept every 15 seconds.
    A node that is started again knows nothing of before: an alert must hold for its time anew, and is told again.
    A webhook that does not answer holds up nothing but its own notices.

What a reader could get wrong
    Times are measured, and told by the wall clock of the moment in which somebody asks.
"""

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from ropewalk.alerts.declared import RULES
from ropewalk.alerts.evaluation import evaluate
from ropewalk.alerts.expressions import series_of, windows_of
from ropewalk.alerts.history import Figures, History, Labels
from ropewalk.alerts.notices import News, Notice, Notices, Telling
from ropewalk.alerts.rules import Scope
from ropewalk.alerts.silences import Silence, parse_silence, silenced_until_ms
from ropewalk.alerts.standing import Alert, Standings, State
from ropewalk.base import metrics
from ropewalk.base.complaints import Complaints
from ropewalk.base.durations import BOUNDS_MS, Durations
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import (
    ALERT_REMEMBER_MS,
    ALERT_ROUND_MS,
    ALERT_WALK_ROUNDS,
    ALERTS_TOLD_MAX,
    SCALE_NEWS_ANSWER_BYTES_MAX,
    SCALE_NEWS_ANSWER_MS_MAX,
)
from ropewalk.base.metrics import Metric, Sheet, Source
from ropewalk.base.ports import Clock, Network, Pool, Rng
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.upkeep.vitals import Vitals
from ropewalk.http1.posting import Poster
from ropewalk.metadata.settings.applied import BrokerSettings
from ropewalk.runtime.steps import Pace
from ropewalk.security.webhook_signatures import parse_secrets, signed_headers

_log = structlog.get_logger()

_OURS: Final = tuple(rule for rule in RULES if rule.scope is not Scope.PROMETHEUS)
_WANTED: Final = frozenset(series.metric for rule in _OURS for series in series_of(rule.condition))
_ID_BYTES: Final = 16


class ToldAlert(Struct, frozen=True):
    """An alert as it is shown to people."""

    name: str
    severity: str
    state: str
    """pending or firing."""
    summary: str
    labels: Labels
    since_ms: int
    """By the wall clock."""
    silenced_until_ms: int | None


class AlertData(Struct, frozen=True):
    """What a notice says of an alert."""

    cluster: str
    node: int
    alert: str
    severity: str
    labels: dict[str, str]
    summary: str
    value: float
    since: str


class AlertNews(Struct, frozen=True):
    """The body of a notice, in the shape that Standard Webhooks recommends."""

    type: str
    """alert.firing or alert.resolved."""
    timestamp: str
    data: AlertData


class Alerting:
    def __init__(
        self,
        node_id: NodeId,
        cluster: Cluster,
        settings: Callable[[], BrokerSettings],
        vitals: Vitals,
        *,
        quick: Callable[[], Sequence[Source]],
        walks: Callable[[], Sequence[Source]],
        network: Network,
        pool: Pool,
        clock: Clock,
        rng: Rng,
        read_secrets: Callable[[], str],
    ) -> None:
        """`walks` are asked more seldom than those that are `quick`. `read_secrets` is called in the pool each time that something is to be
        signed, so that another secret takes effect by itself; it raises `OSError` or `ValueError` where there is none."""
        self._node_id = node_id
        self._cluster = cluster
        self._settings = settings
        self._vitals = vitals
        self._quick = quick
        self._walks = walks
        self._pool = pool
        self._clock = clock
        self._rng = rng
        self._read_secrets = read_secrets
        self._poster = Poster(
            network,
            pool,
            answer_ms_max=SCALE_NEWS_ANSWER_MS_MAX,
            answer_bytes_max=SCALE_NEWS_ANSWER_BYTES_MAX,
        )
        self._labels: Labels = (("instance", f"node {node_id}"),)
        self._history = History(_windows())
        self._standings = Standings()
        self._telling = Telling()
        self._notices = Notices()
        self._walked: Figures = {}
        self._round_count = 0
        self._remembered_at_ms: float | None = None
        self._took = Durations()
        self._complaints = Complaints()
        self._silences: tuple[tuple[str, ...], tuple[Silence, ...]] = ((), ())
        """As the setting has them, and what they mean."""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(ALERT_ROUND_MS / 1000)
            await self.look()

    async def run_telling(self) -> None:
        """Tell the webhook what waits for it."""
        while True:
            await asyncio.sleep(ALERT_ROUND_MS / 1000)
            while (notice := self._notices.due(self._clock.monotonic_ms())) is not None:
                await self._tell(notice)

    async def look(self) -> None:
        """One round."""
        began_ms = self._clock.monotonic_ms()
        if self._round_count % ALERT_WALK_ROUNDS == 0:
            await self._vitals.refresh()
            self._walked = await self._figures(self._walks())
        self._round_count += 1
        self._history.look({**self._walked, **await self._figures(self._quick())})
        now_ms = int(self._clock.monotonic_ms())
        is_time = self._remembered_at_ms is None or now_ms - self._remembered_at_ms >= ALERT_REMEMBER_MS
        if is_time:
            self._remembered_at_ms = now_ms
            self._history.remember(now_ms)
        pace = Pace(1)
        for rule in _OURS:
            if rule.scope is Scope.CLUSTER and not self._cluster.decides:
                self._standings.forget(rule)
                self._telling.forget(rule.name)
            elif is_time or not rule.has_window:
                self._standings.on_result(rule, evaluate(rule.condition, now_ms, self._history), now_ms)
            await pace.next()
        self._tell_news()
        self._took.add(self._clock.monotonic_ms() - began_ms)

    def alerts(self) -> tuple[ToldAlert, ...]:
        """What holds, what fires first, as far as there is room to tell it."""
        firing_first = sorted(self._standings.alerts(), key=lambda each: each.state is not State.FIRING)
        return tuple([self._shown(alert) for alert in firing_first[:ALERTS_TOLD_MAX]])

    def collect(self, sheet: Sheet) -> Iterator[None]:
        counts = Counter(
            (alert.rule.name, "silenced" if self._silenced_until_ms(alert) is not None else alert.state.value)
            for alert in self._standings.alerts()
        )
        for (name, state), count in sorted(counts.items()):
            sheet.add(metrics.ALERTS, count, name, state)
        sheet.add_durations(metrics.ALERT_ROUND_TIME, self._took)
        sheet.add(metrics.ALERT_NOTICES, self._notices.delivered_count, "delivered")
        sheet.add(metrics.ALERT_NOTICES, self._notices.failed_count, "failed")
        sheet.add(metrics.ALERT_NOTICES, self._notices.dropped_count, "dropped")
        yield

    async def _figures(self, sources: Sequence[Source]) -> Figures:
        sheet, pace = _AlertSheet(self._labels), Pace(1)
        for source in sources:
            for _ in source.collect(sheet):
                await pace.next()
        return sheet.figures

    def _shown(self, alert: Alert) -> ToldAlert:
        since_ms = self._clock.now_ms() - (int(self._clock.monotonic_ms()) - alert.since_ms)
        return ToldAlert(
            name=alert.rule.name,
            severity=alert.rule.severity.value,
            state=alert.state.value,
            summary=alert.summary,
            labels=alert.labels,
            since_ms=since_ms,
            silenced_until_ms=self._silenced_until_ms(alert),
        )

    def _silenced_until_ms(self, alert: Alert) -> int | None:
        written = self._settings().alerts_silences
        if written != self._silences[0]:
            self._silences = (written, tuple(map(parse_silence, written)))
        silences = self._silences[1]
        if not silences:
            return None
        return silenced_until_ms(silences, alert.rule.name, dict(alert.labels), self._clock.now_ms())

    def _tell_news(self) -> None:
        found = self._telling.on_round(
            self._standings.alerts(), lambda alert: self._silenced_until_ms(alert) is not None
        )
        if self._settings().alerts_webhook is None:
            self._notices.clear()
            return
        for news in found:
            message_id = f"msg_{self._rng.randbytes(_ID_BYTES).hex()}"
            self._notices.add(Notice(message_id, msgspec.json.encode(self._written(news))))

    def _written(self, news: News) -> AlertNews:
        shown = self._shown(news.alert)
        return AlertNews(
            type="alert.resolved" if news.is_over else "alert.firing",
            timestamp=_spelled(self._clock.now_ms()),
            data=AlertData(
                cluster=self._cluster.image.cluster_id or "",
                node=self._node_id,
                alert=shown.name,
                severity=shown.severity,
                labels=dict(shown.labels),
                summary=shown.summary,
                value=news.alert.value,
                since=_spelled(shown.since_ms),
            ),
        )

    async def _tell(self, notice: Notice) -> None:
        address = self._settings().alerts_webhook
        if address is None:
            self._notices.clear()
            return
        try:
            secrets = parse_secrets(await self._pool.run(self._read_secrets))
            headers = signed_headers(
                secrets, message_id=notice.id, at_s=self._clock.now_ms() // 1000, body=notice.body
            )
            await self._poster.post(address, notice.body, headers)
        except (OSError, ssl.SSLError, ValueError) as error:  # TimeoutError is an OSError
            now_ms = self._clock.monotonic_ms()
            is_tried_again = self._notices.on_failed(notice, now_ms)
            reason = str(error) or f"no answer in {SCALE_NEWS_ANSWER_MS_MAX} ms"
            if self._complaints.is_due(reason, now_ms):
                _log.warning(
                    "the webhook could not be told of an alert", reason=reason, is_tried_again=is_tried_again
                )
        else:
            self._notices.on_delivered(notice)


def _windows() -> dict[str, int]:
    windows: dict[str, int] = {}
    for rule in _OURS:
        for name, seconds in windows_of(rule.condition).items():
            windows[name] = max(windows.get(name, 0), seconds)
    return windows


def _spelled(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")


class _AlertSheet:
    """A `Sheet` that keeps what rules look at, with the node's name as the label that Prometheus would add."""

    per_partition = True

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self.figures: dict[str, dict[Labels, float]] = {}
        self._wanted_of: dict[tuple[Metric, ...], tuple[tuple[int, Metric], ...]] = {}

    def add(self, metric: Metric, value: float, *labels: str) -> None:
        if metric in _WANTED:
            self._keep(metric.name, self._all_labels(metric, labels), value)

    def add_row(self, row: tuple[Metric, ...], values: tuple[float, ...], *labels: str) -> None:
        wanted = self._wanted_of.get(row)
        if wanted is None:
            wanted = tuple((at, metric) for at, metric in enumerate(row) if metric in _WANTED)
            self._wanted_of[row] = wanted
        for at, metric in wanted:
            self._keep(metric.name, self._all_labels(metric, labels), values[at])

    def add_durations(self, metric: Metric, durations: Durations, *labels: str) -> None:
        if metric not in _WANTED:
            return
        among, count, name = self._all_labels(metric, labels), 0, f"{metric.name}_bucket"
        for bound_ms, in_bucket in zip(BOUNDS_MS, durations.counts, strict=False):
            count += in_bucket
            self._keep(name, _with_bound(among, f"{bound_ms / 1000:g}"), count)
        self._keep(name, _with_bound(among, "+Inf"), durations.count)

    def _keep(self, name: str, labels: Labels, value: float) -> None:
        self.figures.setdefault(name, {})[labels] = float(value)

    def _all_labels(self, metric: Metric, values: tuple[str, ...]) -> Labels:
        """An empty label is none."""
        given = zip(metric.labels, values, strict=True)
        return tuple(sorted([*self._labels, *[pair for pair in given if pair[1]]]))


def _with_bound(labels: Labels, bound: str) -> Labels:
    return tuple(sorted([*labels, ("le", bound)]))
