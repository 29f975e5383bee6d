"""What a reader may ask for, in the words of Spark's own Kafka source.

What a reader could get wrong
    Spark hands options over in any case; they are looked up without regard to it and reported as the user should write them.
    `latest` and `earliest` are questions to brokers; nothing here asks them. `ranges.py` is given the answers.
    `isolation` is `read_committed` unless told otherwise: what was aborted has no business in a table.
"""

import json
import re
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.ids import TopicPartition
from ropewalk.client.calls.list_offsets import Isolation
from ropewalk.client.connections.address import Address, parse_addresses
from ropewalk.client.connections.settings import ClientSettings, settings_from
from ropewalk.spark.connector_options import (
    CONSUMER_MEANINGLESS,
    CONSUMER_REFUSED,
    SOURCE_MEANINGLESS,
    without_meaningless,
)
from ropewalk.spark.ranges import IDS, TopicIds
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.security import take_security

LATEST: Final = -1
EARLIEST: Final = -2
NUMBER_MAX: Final = (1 << 63) - 1
"""What offsets and times are counted with, on the wire and in Spark."""
FETCH_BYTES: Final = 8 << 20
"""Of one partition at a time, unless told otherwise: large enough that a request's own cost is lost in it."""

TRIGGER_DELAY_MS: Final = 15 * 60_000
"""How long a batch waits for `minOffsetsPerTrigger`, unless told otherwise; as in Spark's own source."""

_CLIENT_PREFIX: Final = "kafka."
_OFFSETS_EXAMPLE: Final = 'like {"orders": {"0": 23, "1": -1}}'
_UNIT_MS: Final = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class Subscription(Struct, frozen=True):
    """One of the three."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[TopicPartition, ...] = ()

    def takes(self, topic: str) -> bool:
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.topics


OnNewTopic: TypeAlias = Literal["refuse", "append", "leave_out"]
"""What becomes of a topic that has taken the place of one whose records were read: the reader ends, it is read from its start, or the others go on."""


class AtOffsets(Struct, frozen=True):
    """`default`, or what is said of a partition: an offset, `LATEST` or `EARLIEST`."""

    default: int
    offsets: dict[TopicPartition, int] = {}
    topic_ids: TopicIds = {}
    """Of the topics that these are offsets of, as far as that was said."""


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
    offsets_per_trigger_min: int | None = None
    bytes_per_trigger_max: int | None = None
    trigger_delay_max_ms: int = TRIGGER_DELAY_MS
    partitions_min: int | None = None
    records_per_partition_max: int | None = None
    fails_on_data_loss: bool = True
    takes_new_topics: bool = False
    """Whether a topic that was made anew under its name is read from its start."""
    includes_headers: bool = False
    isolation: Isolation = Isolation.READ_COMMITTED
    late_start_is_latest: bool = False
    """What to do with a starting timestamp that no record has reached: begin at the end, or refuse."""
    meaningless: tuple[str, ...] = ()
    """Names that were given and change nothing here; whoever plans the read says so once."""

    @property
    def topic_ids(self) -> TopicIds:
        """Of the topics that offsets were given of, as far as that was said. What has their names by now may be others."""
        given = (bound for bound in (self.ending, self.starting) if isinstance(bound, AtOffsets))
        return {name: id_ for bound in given for name, id_ in bound.topic_ids.items()}

    @property
    def on_new_topic(self) -> OnNewTopic:
        """Of a pattern the other topics go on in any case."""
        if self.takes_new_topics:
            return "append"
        return "refuse" if self.subscription.pattern is None else "leave_out"


def parse_source(given: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    options = GivenOptions(given)
    meaningless = options.names_among(SOURCE_MEANINGLESS)
    bootstrap = take_bootstrap(options)
    isolation = _isolation(options)
    fails_on_data_loss = options.flag("failOnDataLoss", True)
    client, ignored = _client_settings(options)
    parsed = SourceOptions(
        bootstrap=bootstrap,
        subscription=_subscription(options),
        starting=_bound(options, "starting", LATEST if streaming else EARLIEST),
        ending=_bound(options, "ending", LATEST),
        client=client,
        offsets_per_trigger_max=options.positive("maxOffsetsPerTrigger"),
        offsets_per_trigger_min=options.positive("minOffsetsPerTrigger"),
        bytes_per_trigger_max=options.positive("maxBytesPerTrigger"),
        trigger_delay_max_ms=options.duration_ms("maxTriggerDelay", TRIGGER_DELAY_MS),
        partitions_min=options.positive("minPartitions"),
        records_per_partition_max=options.positive("maxRecordsPerPartition"),
        fails_on_data_loss=fails_on_data_loss,
        takes_new_topics=options.choice(
            "onNewTopic", ("refuse", "append"), "refuse" if fails_on_data_loss else "append"
        )
        == "append",
        includes_headers=options.flag("includeHeaders", False),
        isolation=isolation,
        late_start_is_latest=options.choice(
            "startingOffsetsByTimestampStrategy", ("error", "latest"), "error"
        )
        == "latest",
        meaningless=(*meaningless, *(f"{_CLIENT_PREFIX}{name}" for name in ignored)),
    )
    options.refuse_the_rest()
    least, most = parsed.offsets_per_trigger_min, parsed.offsets_per_trigger_max
    if least is not None and most is not None and least > most:
        raise WrongUse(
            f"minOffsetsPerTrigger is {least}, must not be above maxOffsetsPerTrigger, which is {most}"
        )
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

    def duration_ms(self, name: str, default_ms: int) -> int:
        """A number of milliseconds, or with a unit: `30s`, `15m`."""
        text = self.take(name)
        if text is None:
            return default_ms
        found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
        if found is None or found[2] not in _UNIT_MS:
            raise WrongUse(f"{name} is {text!r}, must be a time like 30s, 15m or 2h")
        return int(found[1]) * _UNIT_MS[found[2]]

    def names_among(self, known: frozenset[str]) -> tuple[str, ...]:
        """Takes out those of `known`, in small letters, that were given, and says how they were written."""
        return tuple(sorted(self._left.pop(name)[0] for name in known if name in self._left))

    def beginning_with(self, prefix: str) -> dict[str, str]:
        names = [name for name in self._left if name.startswith(prefix)]
        return {name[len(prefix) :]: self._left.pop(name)[1] for name in names}

    def refuse_the_rest(self) -> None:
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
    loaded = options.take("path")
    if loaded is not None:
        if (topics, pattern, assigned) != (None, None, None):
            raise WrongUse(
                f"load({loaded!r}) names the topic to read, and so does an option: call load() without a name, or leave the option out"
            )
        topics = loaded
    if sum(each is not None for each in (topics, pattern, assigned)) != 1:
        raise WrongUse(
            'say what to read with one of subscribe, subscribePattern and assign, or load("TOPIC") it by its name'
        )
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
        if not by_time.strip().isdecimal() or int(by_time) > NUMBER_MAX:
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
    option = f"{side}Offsets"
    given = _json(by_offset, option, _OFFSETS_EXAMPLE)
    ids = given.pop(IDS, {})
    if not isinstance(ids, dict) or not all(isinstance(id_, str) for id_ in ids.values()):
        raise WrongUse(f"{option}: {IDS} must name topics and the id of each")
    return AtOffsets(unsaid, _numbers(given, option, least=EARLIEST), ids)


def _by_partition(text: str, option: str, *, least: int) -> dict[TopicPartition, int]:
    return _numbers(_json(text, option, _OFFSETS_EXAMPLE), option, least=least)


def _numbers(topics: Mapping[str, object], option: str, *, least: int) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, partitions in topics.items():
        if not isinstance(partitions, dict):
            raise WrongUse(f"{option}: {topic!r} must name partitions and a number for each")
        for index, number in partitions.items():
            if not index.isdecimal() or type(number) is not int or not least <= number <= NUMBER_MAX:
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
    """Under Kafka's name for it, too; unlike Kafka's consumers nobody sees here what was aborted unless they say so."""
    given = [
        options.choice(name, ("read_committed", "read_uncommitted"), "")
        for name in ("isolation", f"{_CLIENT_PREFIX}isolation.level")
    ]
    if all(given) and given[0] != given[1]:
        raise WrongUse("isolation and kafka.isolation.level say different things: give one of them")
    chosen = given[0] or given[1] or "read_committed"
    return Isolation.READ_COMMITTED if chosen == "read_committed" else Isolation.READ_UNCOMMITTED


def _client_settings(options: GivenOptions) -> tuple[ClientSettings, list[str]]:
    """Settings of the client under Kafka's names, each with `kafka.` before it, and those that mean nothing here."""
    given = options.beginning_with(_CLIENT_PREFIX)
    security, given, of_java = take_security(given)
    given, ignored = without_meaningless(given, CONSUMER_MEANINGLESS, CONSUMER_REFUSED)
    given.setdefault("max.partition.fetch.bytes", str(FETCH_BYTES))
    try:
        return replace(settings_from(given), security=security), sorted([*ignored, *of_java])
    except InvalidSetting as error:
        raise WrongUse(f"kafka.{error}") from None
