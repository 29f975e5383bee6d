"""Sends volleys, many at a time, and holds every answer against its forecast.

A connection that does other than forecast, or that is silent for longer than `PATIENCE_S`, is a finding. It names
the volley, so that `tests/fuzz/run --seed S --volley N` sends the same bytes again.
"""

import asyncio
import random
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from struct import pack
from typing import Final, cast

from ropewalk.base.errors import ProtocolError
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.frames import FrameReader
from ropewalk.wire.headers import decode_response_header, encode_response_header
from tests.fuzz.forecast import Due, Forecaster, Then
from tests.fuzz.volley import Manner, Volley

PATIENCE_S: Final = 60.0
ANSWER_BYTES_MAX: Final = 1 << 28
PARKED_MAX: Final = 40
"""Connections whose request waits are left open until so many later ones wait too."""

_REENCODED_SHARE: Final = 0.05
_HEX_SHOWN: Final = 4_000
_RESET: Final = pack("ii", 1, 0)


class Finding(Exception):
    """The node did what it must not."""


class Tally:
    """What happened, in numbers."""

    def __init__(self) -> None:
        self.volleys = 0
        self.frames = 0
        self.answers = 0
        self.refused_connections = 0
        self.misjudged = 0
        self.by_ending: Counter[str] = Counter()
        self.by_api: Counter[str] = Counter()
        self.findings: list[str] = []


class Sender:
    """Keeps `connection_count` volleys under way until there are no more or something was found."""

    def __init__(
        self,
        address: tuple[str, int],
        volleys: Iterator[Volley],
        tally: Tally,
        *,
        topic_ids: Mapping[bytes, bytes],
        forecaster: Forecaster,
        connection_count: int,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.tally = tally
        self._patience_s = patience_s
        self._address = address
        self._volleys = volleys
        self._topic_ids = topic_ids
        self._forecaster = forecaster
        self._connection_count = connection_count
        self._visits: dict[_Visit, None] = {}
        self._parked: deque[_Visit] = deque()
        self._stopping = False

    async def run(self) -> None:
        await asyncio.gather(*(self._work() for _ in range(self._connection_count)))
        for visit in self._parked:
            visit.abort()

    def stop(self) -> None:
        """Begin no more volleys."""
        self._stopping = True

    def check_patience(self) -> None:
        """To be called now and then: whoever waits for too long has found a hang."""
        now = asyncio.get_running_loop().time()
        for visit in list(self._visits):
            if now - visit.progress_at > self._patience_s:
                visit.find(f"nothing came for {self._patience_s:.0f} s; {visit.state}")

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._stopping:
            volley = next(self._volleys, None)
            if volley is None:
                return
            over: asyncio.Future[None] = loop.create_future()
            visit = _Visit(volley, self._real_ids, over, self.tally)
            self._visits[visit] = None
            try:
                await loop.create_connection(lambda visit=visit: visit, *self._address)  # type: ignore[misc]
                await over
            except OSError as error:
                self._note(volley, f"the node cannot be reached: {error}")
            except Finding as finding:
                self._note(volley, str(finding))
            finally:
                del self._visits[visit]
            self.tally.volleys += 1
            self.tally.frames += volley.frame_count
            self.tally.by_ending[_name_of_ending(volley)] += 1
            if volley.then is Then.WAITING:
                self._park(visit)

    def _park(self, visit: "_Visit") -> None:
        self._parked.append(visit)
        if len(self._parked) > PARKED_MAX:
            self._parked.popleft().abort()

    def _note(self, volley: Volley, problem: str) -> None:
        if not self._is_as_forecast(volley):
            self.tally.misjudged += 1
            return
        sent = (volley.body + volley.ending).hex()
        self.tally.findings.append(f"volley {volley.number}: {problem}\n    {sent[:_HEX_SHOWN]}")
        self.stop()

    def _is_as_forecast(self, volley: Volley) -> bool:
        """A mutation can move an id to where text is expected, and then real ids are other text than their stand-ins."""
        forecast = self._forecaster.forecast(self._real_ids(volley.body + volley.ending))
        return (forecast.due, forecast.then) == ((*volley.due, *volley.ending_due), volley.then)

    def _real_ids(self, stream: bytes) -> bytes:
        for stand_in, real in self._topic_ids.items():
            stream = stream.replace(stand_in, real)
        return stream


def _name_of_ending(volley: Volley) -> str:
    return volley.then.name if volley.then is not Then.OPEN else volley.manner.name


class _Visit(asyncio.Protocol):
    """One connection and its volley."""

    def __init__(
        self,
        volley: Volley,
        real_ids: Callable[[bytes], bytes],
        over: asyncio.Future[None],
        tally: Tally,
    ) -> None:
        self._volley = volley
        self._real_ids = real_ids
        self._over = over
        self._tally = tally
        self._due: deque[Due] = deque(volley.due)
        self._reader = FrameReader(frame_bytes_max=ANSWER_BYTES_MAX)
        self._chance = random.Random(volley.number)
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._at_ending = False
        self.progress_at = self._loop.time()

    @property
    def state(self) -> str:
        asked = self._due[0] if self._due else None
        return f"{len(self._due)} answers due, the next {asked}; ends {_name_of_ending(self._volley)}"

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.progress_at = self._loop.time()
        volley = self._volley
        if volley.hurried or not volley.due:
            self._begin_ending(volley.body)
        else:
            self._send(volley.body)

    def data_received(self, data: bytes) -> None:
        self.progress_at = self._loop.time()
        try:
            for answer in self._reader.feed(data):
                self._check(answer)
        except (Finding, ProtocolError) as problem:
            self.find(str(problem))
            return
        volley = self._volley
        if volley.then is Then.OPEN and volley.manner is Manner.VANISH and not self._over.done():
            self._vanish()
        elif not self._due:
            if not self._at_ending:
                self._begin_ending(b"")
            elif volley.then is Then.OPEN and volley.manner is Manner.LEAVE:
                self._leave()
            elif volley.then is Then.WAITING:
                self._finish()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._over.done():
            return
        volley = self._volley
        if (
            volley.then is Then.OPEN
            and volley.manner is Manner.HALF_CLOSE
            and self._at_ending
            and not self._due
        ):
            self._finish()
        elif volley.then in (Then.CLOSED, Then.SILENT, Then.UNFINISHED) and self._at_ending:
            # A connection that is refused takes answers with it that were under way.
            if volley.then is Then.CLOSED:
                self._tally.refused_connections += 1
            self._finish()
        else:
            self.find(f"the node closed the connection ({error}); {self.state}")

    # What the sender calls

    def find(self, problem: str) -> None:
        if not self._over.done():
            self._over.set_exception(Finding(problem))
        self.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # The course of a visit

    def _send(self, stream: bytes) -> None:
        assert self._transport is not None
        stream = self._real_ids(stream)
        if not self._volley.dripping:
            self._transport.write(stream)
            return
        self._transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._drip(stream, 0)

    def _drip(self, stream: bytes, position: int) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        size = self._chance.choice([1, 1, 2, 3, 100])
        self._transport.write(stream[position : position + size])
        if position + size < len(stream):
            self._loop.call_soon(self._drip, stream, position + size)
        elif self._at_ending:
            self._after_ending()

    def _begin_ending(self, body: bytes) -> None:
        """Send what is left, the last thing there is."""
        self._at_ending = True
        self._due += self._volley.ending_due
        stream = body + self._volley.ending
        if stream:
            self._send(stream)
        if not (stream and self._volley.dripping):
            self._after_ending()

    def _after_ending(self) -> None:
        volley = self._volley
        if self._transport is None or self._over.done():
            return
        if volley.then is Then.OPEN:
            if volley.manner is Manner.HALF_CLOSE:
                self._transport.write_eof()
            elif volley.manner is Manner.VANISH:
                self._vanish()
            elif not self._due:
                self._leave()
        elif volley.then in (Then.SILENT, Then.UNFINISHED):
            self._transport.write_eof()
        elif volley.then is Then.WAITING and not self._due:
            self._finish()

    def _check(self, answer: memoryview) -> None:
        if self._over.done():
            return  # parked or gone: whatever comes now was not waited for
        if not self._due:
            if self._volley.then is Then.WAITING and self._at_ending:
                self._finish()
                return
            raise Finding(f"an answer that nothing asked for: {bytes(answer[:200]).hex()}")
        due = self._due.popleft()
        correlation_id, body = decode_response_header(due.api, due.version, answer, 0, len(answer))
        if correlation_id != due.correlation_id:
            raise Finding(f"the answer has correlation id {correlation_id}, due is {due}")
        response = due.api.decode_response(due.version, answer, body, len(answer))
        if getattr(response, "error_code", 0) == ErrorCode.UNKNOWN_SERVER_ERROR:
            raise Finding(f"{due} was answered with UNKNOWN_SERVER_ERROR")
        if self._chance.random() < _REENCODED_SHARE:
            header = encode_response_header(due.api, due.version, correlation_id)
            again = b"".join([header, *due.api.encode_response(due.version, response)])
            if again != answer:
                raise Finding(
                    f"{due} does not encode to what it was decoded from: {bytes(answer[:200]).hex()}"
                )
        self._tally.answers += 1
        self._tally.by_api[due.api.name] += 1

    def _leave(self) -> None:
        self._finish()
        if self._transport is not None:
            self._transport.close()

    def _vanish(self) -> None:
        if self._transport is not None:
            connection = self._transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._finish()
        self.abort()

    def _finish(self) -> None:
        if not self._over.done():
            self._over.set_result(None)
