"""Volleys: what one connection sends, made from a seed and a number and from nothing else.

Requests that need no spoiling come from a corpus of hostile but well-formed frames in every version of every API that the
node serves. Nearly half are mutated on top. A volley ends with the first frame after which a connection
cannot simply go on; most of those are left out, or every connection would live for two requests.
"""

import random
from enum import Enum, auto
from struct import Struct as Layout
from typing import Final

from msgspec import Struct

from ropewalk.wire.api import AnyApi
from ropewalk.wire.frames import frame
from ropewalk.wire.headers import encode_request_header
from tests.fuzz.forecast import Due, Forecast, Forecaster, Then
from tests.fuzz.hostile_values import invent_request
from tests.fuzz.mutations import mutate

FRAMES_PER_VERSION: Final = 12
VOLLEYS_PER_CORPUS: Final = 2_000
"""So many volleys are made from one corpus before another is invented."""

_LENGTHS: Final = (1, 16, 40, 80, 160)
_MUTATED_SHARE: Final = 0.45
_ENDED_SHARE: Final = 0.03
"""Of the frames that would end the connection, those that are sent."""

_WAITING_SHARE: Final = 0.1
"""Of those that would wait: there is no other way into a group."""

_COSTLY: Final = frozenset(
    {
        *(
            "CreateTopics",
            "DeleteTopics",
            "CreatePartitions",
            "DeleteRecords",
            "DescribeLogDirs",
            "ElectLeaders",
        ),
        *("AlterConfigs", "IncrementalAlterConfigs", "AlterClientQuotas", "DescribeConfigs", "ListGroups"),
    }
)
"""Their handlers take ten times as long as the others; a run would be about nothing else."""

_CHEAP_WEIGHT: Final = 6
_TRIES_MAX: Final = 5_000
_CORRELATION_ID: Final = Layout(">i").pack_into
_CLIENT_IDS: Final = (None, "", "fuzzed-1", "fuzzed-2", "x" * 200, "\U0001f9f5")


class Manner(Enum):
    """How a connection ends whose requests do not end it."""

    LEAVE = auto()
    """Close when everything is answered."""
    HALF_CLOSE = auto()
    """Say that nothing more comes, and expect all the answers and then the node's close."""
    VANISH = auto()
    """Reset the connection while answers are under way."""


class Volley(Struct, frozen=True):
    number: int
    body: bytes
    due: tuple[Due, ...]
    ending: bytes
    """Sent when all of the body is answered, or at once with `hurried`."""
    ending_due: tuple[Due, ...]
    then: Then
    manner: Manner
    hurried: bool
    dripping: bool
    """In pieces of a few bytes, cut anywhere."""
    frame_count: int


class Entry(Struct, frozen=True):
    frame: bytes
    forecast: Forecast


class Corpus:
    """Frames as a client could send them: hostile in what they ask for, not in their bytes."""

    def __init__(
        self, apis: list[tuple[AnyApi, int]], forecaster: Forecaster, chance: random.Random, per_version: int
    ) -> None:
        by_api: dict[AnyApi, list[Entry]] = {}
        for api, version in apis:
            entries = by_api.setdefault(api, [])
            entries += [_entry(api, version, forecaster, chance) for _ in range(per_version)]
        self._entries = [
            entries
            for api, entries in by_api.items()
            for _ in range(1 if api.name in _COSTLY else _CHEAP_WEIGHT)
        ]

    def pick(self, chance: random.Random) -> Entry:
        """Every API is as likely as any other, however many versions it has; those that cost much come less often."""
        return chance.choice(chance.choice(self._entries))


class Battery:
    """Volley by number. Numbers that follow one another are cheap; any other invents a corpus first."""

    def __init__(self, apis: list[tuple[AnyApi, int]], forecaster: Forecaster, seed: int) -> None:
        self._apis = apis
        self._forecaster = forecaster
        self._seed = seed
        self._corpus: tuple[int, Corpus] | None = None

    def volley(self, number: int) -> Volley:
        corpus = self._corpus_for(number // VOLLEYS_PER_CORPUS)
        chance = random.Random(f"{self._seed} volley {number}")
        pieces: list[bytes] = []
        due: list[Due] = []
        last: tuple[bytes, Forecast] | None = None
        frame_count = 0
        for _ in range(chance.choice(_LENGTHS)):
            stream, forecast = self._next(corpus, chance, frame_count)
            frame_count += forecast.frame_count
            if forecast.then is not Then.OPEN:
                last = stream, forecast
                break
            pieces.append(stream)
            due += forecast.due
        return Volley(
            number=number,
            body=b"".join(pieces),
            due=tuple(due),
            ending=b"" if last is None else last[0],
            ending_due=() if last is None else last[1].due,
            then=Then.OPEN if last is None else last[1].then,
            manner=chance.choices(list(Manner), (8, 1, 1))[0],
            hurried=chance.random() < 0.3,
            dripping=chance.random() < 0.02,
            frame_count=frame_count,
        )

    def _next(self, corpus: Corpus, chance: random.Random, correlation_id: int) -> tuple[bytes, Forecast]:
        """A frame, or what a frame became, that is fair to send."""
        for _ in range(_TRIES_MAX):
            entry = corpus.pick(chance)
            if chance.random() < _MUTATED_SHARE:
                stream = mutate(_numbered(entry.frame, correlation_id), corpus.pick(chance).frame, chance)
                forecast = self._forecaster.forecast(stream)
            else:
                stream = _numbered(entry.frame, correlation_id)
                forecast = _renumbered(entry.forecast, correlation_id)
            if forecast.then is Then.OPEN:
                return stream, forecast
            share = _WAITING_SHARE if forecast.then is Then.WAITING else _ENDED_SHARE
            if forecast.then is not Then.UNFAIR and chance.random() < share:
                return stream, forecast
        raise AssertionError(f"{_TRIES_MAX} frames in a row could not be sent")

    def _corpus_for(self, epoch: int) -> Corpus:
        if self._corpus is None or self._corpus[0] != epoch:
            chance = random.Random(f"{self._seed} corpus {epoch}")
            self._corpus = epoch, Corpus(self._apis, self._forecaster, chance, FRAMES_PER_VERSION)
        return self._corpus[1]


def _entry(api: AnyApi, version: int, forecaster: Forecaster, chance: random.Random) -> Entry:
    for _ in range(_TRIES_MAX):
        request = invent_request(api.request, version, chance)
        header = encode_request_header(api, version, 0, chance.choice(_CLIENT_IDS))
        encoded = b"".join(frame([header, *api.encode_request(version, request)]))
        forecast = forecaster.forecast(encoded)
        assert forecast.then is not Then.CLOSED, (
            f"{api} v{version} does not read what it wrote: {encoded.hex()}"
        )
        if forecast.then is not Then.UNFAIR:
            return Entry(encoded, forecast)
    raise AssertionError(f"{_TRIES_MAX} requests {api} v{version} were all unfair")


def _numbered(encoded: bytes, correlation_id: int) -> bytes:
    numbered = bytearray(encoded)
    _CORRELATION_ID(numbered, 8, correlation_id)
    return bytes(numbered)


def _renumbered(forecast: Forecast, correlation_id: int) -> Forecast:
    if not forecast.due:
        return forecast
    (due,) = forecast.due
    return Forecast((Due(due.api, due.version, correlation_id),), forecast.then, 1)
