"""Tells whoever starts nodes that the cluster wants another, by a POST to the address in `cluster.scale.webhook`.

What a reader could get wrong
    Only the node that decides tells. It has work of its own for that, so that whoever is told and does not answer holds up nothing.
"""

import asyncio
import ssl

import msgspec
import structlog
from msgspec import Struct

from ropewalk.base.complaints import Complaints
from ropewalk.base.limits import SCALE_NEWS_ANSWER_BYTES_MAX, SCALE_NEWS_ANSWER_MS_MAX, UPKEEP_MS
from ropewalk.base.ports import Clock, Network, Pool
from ropewalk.broker.administration.rounds import Upkeep
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.topics.topics import Topics
from ropewalk.controller.scale_news import ScaleNews
from ropewalk.http1.posting import Poster

_log = structlog.get_logger()


class Told(Struct, frozen=True):
    """The body of the request."""

    cluster: str
    wants: bool
    """Whether another node is wanted."""
    why: tuple[str, ...]
    nodes: int
    """Brokers in service."""


class ScaleWebhook:
    def __init__(
        self, cluster: Cluster, topics: Topics, upkeep: Upkeep, network: Network, pool: Pool, clock: Clock
    ) -> None:
        self._cluster = cluster
        self._topics = topics
        self._upkeep = upkeep
        self._poster = Poster(
            network,
            pool,
            answer_ms_max=SCALE_NEWS_ANSWER_MS_MAX,
            answer_bytes_max=SCALE_NEWS_ANSWER_BYTES_MAX,
        )
        self._clock = clock
        self._news: ScaleNews | None = None
        """None while there is nobody to tell, or this node does not decide."""
        self._address: str | None = None
        """To whom `_news` is about."""
        self._complaints = Complaints()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(UPKEEP_MS / 1000)
            await self._round()

    async def _round(self) -> None:
        settings = self._topics.broker_settings
        address = settings.cluster_scale_webhook
        if address is None or not self._cluster.decides:
            self._news = None
            return
        if self._news is None or address != self._address:
            sustained_ms = settings.cluster_scale_sustained_ms
            self._news = ScaleNews(self._clock.monotonic_ms(), sustained_ms=sustained_ms)
            self._address = address
        reasons = self._upkeep.reasons
        kinds = [reason.kind for reason in reasons]
        if not self._news.is_due(kinds, self._clock.monotonic_ms()):
            return
        image = self._cluster.image
        told = Told(
            cluster=image.cluster_id or "",
            wants=bool(reasons),
            why=tuple(reason.text for reason in reasons),
            nodes=sum(broker.is_active and "broker" in broker.roles for broker in image.brokers.values()),
        )
        try:
            await self._poster.post(address, msgspec.json.encode(told))
        except (OSError, ssl.SSLError) as error:  # TimeoutError is an OSError
            now_ms = self._clock.monotonic_ms()
            self._news.on_failed(now_ms)
            reason = str(error) or f"no answer in {SCALE_NEWS_ANSWER_MS_MAX} ms"
            if self._complaints.is_due(reason, now_ms):
                _log.warning(
                    "nobody could be told that the cluster wants another node, or no longer does",
                    reason=reason,
                )
        else:
            self._news.on_told(kinds, self._clock.monotonic_ms())
