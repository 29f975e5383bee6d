"""What a reader may ask for, in the words of Spark's own Kafka source.

What a reader could get wrong
    Spark hands options over in any case; they are looked up without regard to it and reported as the user should write them.
    `latest` and `earliest` are questions to brokers; nothing here asks them. `ranges.py` is given the answers.
    `isolation` is `read_committed` unless told otherwise: what was aborted has no business in a table.
"""

import json
import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.ids import TopicPartition
from ropewalk.client.address import Address, parse_addresses
from ropewalk.client.list_offsets import Isolation
from ropewalk.client.settings import ClientSettings, settings_from
from ropewalk.spark.refusals import WrongUse

LATEST: Final = -1
EARLIEST: Final = -2
FETCH_BYTES: Final = 8 << 20
"""Of one partition at a time, unless told otherwise: large enough that a request's own cost is lost in it."""

_CLIENT_PREFIX: Final = "kafka."


class Subscription(Struct, frozen=True):
    """One of the three."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[TopicPartition, ...] = ()

    def takes(self, topic: str) -> bool:
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.topics


class AtOffsets(Struct, frozen=True):
    """`default`, or what is said of a partition: an offset, `LATEST` or `EARLIEST`."""

    default: int
    offsets: dict[TopicPartition, int] = {}


class AtTimestamp(Struct, frozen=True):
    """The first record that is not older. Milliseconds, for all or by partition."""

    default: int | None
    timestamps: dict[TopicPartition, int] = {}


Bound: TypeAlias = AtOffsets | AtTimestamp


class SourceOptions(Struct, frozen=True):
    bootstrap: tuple[Address, ...]
    subscription: Subscription
    starting: Bound
    ending: Bound
    client: ClientSettings
    offsets_per_trigger_max: int | None = None
    partitions_min: int | None = None
    fails_on_data_loss: bool = True
    includes_headers: bool = False
    isolation: Isolation = Isolation.READ_COMMITTED
    late_start_is_latest: bool = False
    """What to do with a starting timestamp that no record has reached: begin at the end, or refuse."""


def parse_source(given: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    options = GivenOptions(given)
    parsed = SourceOptions(
        bootstrap=take_bootstrap(options),
        subscription=_subscription(options),
        starting=_bound(options, "starting", LATEST if streaming else EARLIEST),
        ending=_bound(options, "ending", LATEST),
        client=_client_settings(options),
        offsets_per_trigger_max=options.positive("maxOffsetsPerTrigger"),
        partitions_min=options.positive("minPartitions"),
        fails_on_data_loss=options.flag("failOnDataLoss", True),
        includes_headers=options.flag("includeHeaders", False),
        isolation=_isolation(options),
        late_start_is_latest=options.choice(
            "startingOffsetsByTimestampStrategy", ("error", "latest"), "error"
        )
        == "latest",
    )
    options.refuse_the_rest()
    if streaming and parsed.ending != AtOffsets(LATEST):
        raise WrongUse("a stream has no end: leave endingOffsets and endingTimestamp out, or read a batch")
    if isinstance(parsed.starting, AtOffsets) and not streaming and parsed.starting.default == LATEST:
        raise WrongUse("a batch that starts at latest is empty; say startingOffsets=earliest or name offsets")
    if isinstance(parsed.ending, AtOffsets) and EARLIEST in (
        parsed.ending.default,
        *parsed.ending.offsets.values(),
    ):
        raise WrongUse("endingOffsets cannot be earliest")
    return parsed


class GivenOptions:
    """Takes options out one by one, so that what is left is what nobody knows."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._left = {name.lower(): (name, value) for name, value in given.items()}

    def take(self, *names: str) -> str | None:
        found = [(name, self._left.pop(name.lower())[1]) for name in names if name.lower() in self._left]
        if len(found) > 1:
            raise WrongUse(f"give one of {' and '.join(name for name, _ in found)}, not both")
        return found[0][1] if found else None

    def positive(self, name: str) -> int | None:
        text = self.take(name)
        if text is None:
            return None
        if not text.strip().isdecimal() or int(text) < 1:
            raise WrongUse(f"{name} is {text!r}, must be a positive number")
        return int(text)

    def natural(self, name: str) -> int | None:
        text = self.take(name)
        if text is None:
            return None
        if not text.strip().isdecimal():
            raise WrongUse(f"{name} is {text!r}, must be a number from 0 on")
        return int(text)

    def flag(self, name: str, default: bool) -> bool:
        return self.choice(name, ("true", "false"), "true" if default else "false") == "true"

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        text = self.take(name)
        if text is None:
            return default
        if text.lower() not in allowed:
            raise WrongUse(f"{name} is {text!r}, must be {' or '.join(allowed)}")
        return text.lower()

    def beginning_with(self, prefix: str) -> dict[str, str]:
        names = [name for name in self._left if name.startswith(prefix)]
        return {name[len(prefix) :]: self._left.pop(name)[1] for name in names}

    def refuse_the_rest(self) -> None:
        self._left.pop("path", None)  # what `load("…")` was given; there is nothing to do with it
        if self._left:
            names = ", ".join(sorted(name for name, _ in self._left.values()))
            raise WrongUse(f"unknown option: {names}")


def take_bootstrap(options: GivenOptions) -> tuple[Address, ...]:
    text = options.take("bootstrap", "kafka.bootstrap.servers")
    if not text:
        raise WrongUse('say where brokers are: .option("bootstrap", "host:9092")')
    try:
        return parse_addresses(text)
    except ValueError as error:
        raise WrongUse(f"bootstrap: {error}") from None


def _subscription(options: GivenOptions) -> Subscription:
    topics, pattern, assigned = (options.take(name) for name in ("subscribe", "subscribePattern", "assign"))
    if sum(each is not None for each in (topics, pattern, assigned)) != 1:
        raise WrongUse("say what to read with one of subscribe, subscribePattern and assign")
    if topics is not None:
        names = tuple(dict.fromkeys(name.strip() for name in topics.split(",") if name.strip()))
        if not names:
            raise WrongUse("subscribe names no topic")
        return Subscription(topics=names)
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            raise WrongUse(f"subscribePattern {pattern!r} is no regular expression: {error}") from None
        return Subscription(pattern=pattern)
    assert assigned is not None
    partitions = _json(assigned, "assign", 'like {"orders": [0, 1]}')
    chosen: list[TopicPartition] = []
    for topic, indexes in partitions.items():
        if not isinstance(indexes, list) or not all(type(index) is int and index >= 0 for index in indexes):
            raise WrongUse(f"assign: partitions of {topic!r} must be a list of numbers")
        chosen += [TopicPartition(topic, index) for index in indexes]
    if not chosen:
        raise WrongUse("assign names no partition")
    return Subscription(assigned=tuple(chosen))


def _bound(options: GivenOptions, side: str, default: int) -> Bound:
    by_offset, by_time, by_times = (
        options.take(f"{side}{what}") for what in ("Offsets", "Timestamp", "OffsetsByTimestamp")
    )
    if sum(each is not None for each in (by_offset, by_time, by_times)) > 1:
        raise WrongUse(f"give one of {side}Offsets, {side}Timestamp and {side}OffsetsByTimestamp")
    if by_time is not None:
        if not by_time.strip().isdecimal():
            raise WrongUse(f"{side}Timestamp is {by_time!r}, must be milliseconds since 1970")
        return AtTimestamp(int(by_time))
    if by_times is not None:
        return AtTimestamp(None, _by_partition(by_times, f"{side}OffsetsByTimestamp", least=0))
    if by_offset is None:
        return AtOffsets(default)
    named = {"earliest": EARLIEST, "latest": LATEST}.get(by_offset.strip().lower())
    if named is not None:
        return AtOffsets(named)
    # A partition that is left out may have come into being since: whatever it has is to be read, rather than skipped unseen.
    unsaid = EARLIEST if side == "starting" else LATEST
    return AtOffsets(unsaid, _by_partition(by_offset, f"{side}Offsets", least=EARLIEST))


def _by_partition(text: str, option: str, *, least: int) -> dict[TopicPartition, int]:
    topics = _json(text, option, 'like {"orders": {"0": 23, "1": -1}}')
    found: dict[TopicPartition, int] = {}
    for topic, partitions in topics.items():
        if not isinstance(partitions, dict):
            raise WrongUse(f"{option}: {topic!r} must name partitions and a number for each")
        for index, number in partitions.items():
            if not index.isdecimal() or type(number) is not int or number < least:
                raise WrongUse(
                    f"{option}: {topic!r} has {index!r}: {number!r}, which is no partition and number"
                )
            found[TopicPartition(topic, int(index))] = number
    return found


def _json(text: str, option: str, example: str) -> dict[str, object]:
    try:
        parsed = json.loads(text)
    except json.JSONDecodeError:
        parsed = None
    if not isinstance(parsed, dict):
        raise WrongUse(f"{option} is {text!r}, must be JSON {example}")
    return parsed


def _isolation(options: GivenOptions) -> Isolation:
    chosen = options.choice("isolation", ("read_committed", "read_uncommitted"), "read_committed")
    return Isolation.READ_COMMITTED if chosen == "read_committed" else Isolation.READ_UNCOMMITTED


def _client_settings(options: GivenOptions) -> ClientSettings:
    """Settings of the client under Kafka's names, each with `kafka.` before it."""
    given = options.beginning_with(_CLIENT_PREFIX)
    protocol = given.pop("security.protocol", "PLAINTEXT")
    if protocol.upper() != "PLAINTEXT":
        raise WrongUse(f"kafka.security.protocol is {protocol}; this release reads over PLAINTEXT only")
    given.setdefault("max.partition.fetch.bytes", str(FETCH_BYTES))
    try:
        return settings_from(given)
    except InvalidSetting as error:
        raise WrongUse(f"kafka.{error}") from None
