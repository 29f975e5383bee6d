"""What goes on in the cluster while somebody watches: looked at every two seconds, ten minutes of it kept.

What a reader could get wrong
    It begins with the first page of a reader and ends a minute after the last has gone: nobody is asked for charts that nobody sees.
    Everything is bounded: so many points, of three numbers each, and two samples of the cluster between which rates are taken.
    A look at a large cluster takes long. It is then taken less often, so that at most a tenth of the time is spent on looking.
"""

import asyncio
from collections import deque
from typing import Final

import msgspec
from msgspec import Struct

from ropewalk.base.errors import RopewalkError
from ropewalk.base.limits import (
    CONSOLE_LOOK_MS,
    CONSOLE_LOOK_SHARE,
    CONSOLE_POINTS_MAX,
    CONSOLE_WATCHED_MS,
)
from ropewalk.base.ports import Clock
from ropewalk.client.calls.client import Client
from ropewalk.http1.events import EventStream
from ropewalk.views.observation import ClusterSource, Picture, Sample, draw

_FRESH_MS: Final = 3 * CONSOLE_LOOK_MS


class Point(Struct, frozen=True, gc=False, array_like=True):
    at_ms: int
    written: float | None
    """Records in a second; None where it is not known yet."""
    read: float | None
    lag: int | None


class Watcher:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._source = ClusterSource(client, internal=False)
        self._clock = clock
        self._former: Sample | None = None
        self._picture: Picture | None = None
        self._looked_at_ms = 0.0
        self._took_ms = 0.0
        self._points: deque[Point] = deque(maxlen=CONSOLE_POINTS_MAX)
        self._streams: dict[EventStream, None] = {}
        self._wanted_at_ms = clock.monotonic_ms()
        self._look: asyncio.Lock = asyncio.Lock()
        self._is_stopped = False
        self.trouble: str | None = None
        """Why the last look came to nothing."""
        self.is_running = False

    @property
    def is_followed(self) -> bool:
        return bool(self._streams)

    @property
    def points(self) -> list[Point]:
        return list(self._points)

    async def picture(self) -> Picture:
        """As fresh as a page needs it. Raises what the cluster says."""
        self._wanted_at_ms = self._clock.monotonic_ms()
        if self._is_stale():
            async with self._look:
                if self._is_stale():
                    await self._take()
        assert self._picture is not None, "a look that comes to nothing raises"
        return self._picture

    async def seen(self) -> tuple[Picture, Sample]:
        """The picture, and the sample that it shows."""
        picture = await self.picture()
        assert self._former is not None, "a picture is drawn of a sample"
        return picture, self._former

    def follow(self, stream: EventStream) -> None:
        """Tell it all that is known, and then each point as it comes."""
        self._streams[stream] = None
        self._wanted_at_ms = self._clock.monotonic_ms()
        stream.add("points", _encode(self.points))

    def unfollow(self, stream: EventStream) -> None:
        self._streams.pop(stream, None)

    def stop(self) -> None:
        self._is_stopped = True
        for stream in list(self._streams):
            stream.close()

    async def run(self) -> None:
        """Look again and again, for as long as somebody wants to see it."""
        self.is_running = True
        try:
            while not self._is_stopped and self._is_wanted():
                began_ms = self._clock.monotonic_ms()
                try:
                    async with self._look:
                        await self._take()
                    self.trouble = None
                except RopewalkError as error:
                    self.trouble = str(error)
                self._tell()
                took_ms = self._clock.monotonic_ms() - began_ms
                await asyncio.sleep(max(CONSOLE_LOOK_MS - took_ms, CONSOLE_LOOK_SHARE * took_ms) / 1000)
        finally:
            self.is_running = False

    def _is_stale(self) -> bool:
        """A page of a large cluster shows what the last look saw, and does not wait for one of its own."""
        age_ms = self._clock.monotonic_ms() - self._looked_at_ms
        return self._picture is None or age_ms > max(_FRESH_MS, 2 * CONSOLE_LOOK_SHARE * self._took_ms)

    def _is_wanted(self) -> bool:
        return self.is_followed or self._clock.monotonic_ms() - self._wanted_at_ms < CONSOLE_WATCHED_MS

    async def _take(self) -> None:
        began_ms = self._clock.monotonic_ms()
        sample = await self._source.look()
        self._took_ms = self._clock.monotonic_ms() - began_ms
        picture = draw(self._former, sample)
        self._former, self._picture, self._looked_at_ms = sample, picture, sample.at_ms
        lags = [each.lag for each in picture.groups if each.lag is not None]
        reads = [each.read_per_second for each in picture.groups if each.read_per_second is not None]
        self._points.append(
            Point(
                self._clock.now_ms(),
                picture.written_per_second,
                round(sum(reads), 1) if reads else None,
                sum(lags) if lags else None,
            )
        )

    def _tell(self) -> None:
        for stream in list(self._streams):
            if self.trouble is not None:
                stream.show("trouble", self.trouble)
            elif self._points:
                stream.show("point", _encode(self._points[-1]))


def _encode(value: object) -> str:
    return msgspec.json.encode(value).decode()
