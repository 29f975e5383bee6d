"""What a writer may ask for, in the words of Spark's own Kafka sink, and what exactly once needs beyond it.

| option | |
|---|---|
| `bootstrap` | where brokers are |
| `topic` | of all rows; without it every row has a column `topic` |
| `kafka.…` | settings of the producer under Kafka's names, like `kafka.compression.type` |
| `exactlyOnce` | `true`: one transaction per task and batch, with a marker in it; a replayed batch is skipped |
| `name` | of the sink: what it wrote is known by it after every restart. One running query per name |
| `tasks` | how many tasks write, as in `repartition(tasks, "key")`; may not change |
| `query`, `batch` | id of the query and number of the batch; known by themselves in `writeStream` |
| `ranges` | what the batch was made from, `{"orders": {"0": [23, 46]}}`, and under `#ids` the ids of these topics; without it the rows themselves are compared |
| `fingerprint` | any text that is another when the same ranges come to other rows |

What a reader could get wrong
    Options of exactly once without `exactlyOnce=true` are refused: somebody believes in something that is not there.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.client.connections.settings import SettingValue
from ropewalk.client.producing.settings import ProducerSettings, producer_settings
from ropewalk.spark.connector_options import PRODUCER_MEANINGLESS, without_meaningless
from ropewalk.spark.options import GivenOptions, take_bootstrap
from ropewalk.spark.ranges import TopicIds
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.security import take_security
from ropewalk.spark.sink.marker import Ranges, parse_ids, parse_ranges

TRANSACTION_MS: Final = 900_000
"""How long a task may take, unless told otherwise: what brokers allow at most by default."""

_PREFIX: Final = "kafka."
_NAMES: Final = {
    "client.id": "client_id",
    "linger.ms": "linger_ms",
    "batch.size": "batch_size",
    "buffer.memory": "buffer_memory",
    "max.request.size": "max_request_size",
    "compression.type": "compression",
    "delivery.timeout.ms": "delivery_timeout_ms",
    "request.timeout.ms": "request_timeout_ms",
    "max.block.ms": "max_block_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "retry.backoff.max.ms": "retry_backoff_max_ms",
    "max.in.flight.requests.per.connection": "max_in_flight",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "socket.connection.setup.timeout.ms": "connect_timeout_ms",
    "transaction.timeout.ms": "transaction_timeout_ms",
}
_FOR_EXACTLY_ONCE: Final = ("name", "tasks", "query", "batch", "ranges", "fingerprint")


class ExactlyOnce(Struct, frozen=True):
    name: str
    tasks: int
    query: str | None = None
    """None where Spark tells it."""
    batch: int | None = None
    ranges: Ranges | None = None
    fingerprint: str = ""
    topic_ids: TopicIds = {}
    """Of the topics that the ranges are in, as far as they were told."""


class SinkOptions(Struct, frozen=True):
    bootstrap: str
    topic: str | None
    """None where every row names its own."""
    settings: ProducerSettings
    exactly_once: ExactlyOnce | None = None
    meaningless: tuple[str, ...] = ()
    """Names that were given and change nothing here; whoever plans the write says so once."""


def parse_sink(given: Mapping[str, str], *, streaming: bool) -> SinkOptions:
    options = GivenOptions(given)
    addresses = take_bootstrap(options)
    # Spark's own, and one that means the same with it and without it: a column `headers` is written where there is one.
    options.names_among(frozenset({"checkpointlocation", "queryname"}))
    options.flag("includeHeaders", False)
    topic, saved = options.take("topic"), options.take("path")
    if saved is not None and topic not in (None, saved):
        raise WrongUse(
            f"save or start was given {saved!r} and the option topic {topic!r}: name the topic once"
        )
    topic = topic if topic is not None else saved
    if topic is not None and not topic.strip():
        raise WrongUse("topic is empty; name one, or leave the option out and have a column topic")
    is_exact = options.flag("exactlyOnce", False)
    settings, ignored = _producer_settings(options)
    exactly_once = _exactly_once(options, topic, streaming=streaming) if is_exact else None
    if not is_exact:
        _refuse_without_exactly_once(options)
    options.refuse_the_rest()
    meaningless = tuple(f"{_PREFIX}{name}" for name in ignored)
    return SinkOptions(",".join(map(str, addresses)), topic, settings, exactly_once, meaningless)


def _exactly_once(options: GivenOptions, topic: str | None, *, streaming: bool) -> ExactlyOnce:
    name, tasks = options.take("name"), options.positive("tasks")
    if not name:
        raise WrongUse(
            'exactlyOnce needs a name that stays the same after every restart: .option("name", "…")'
        )
    if tasks is None:
        raise WrongUse(
            "exactlyOnce needs the number of tasks that write, which may never change:"
            ' .repartition(4, "key") and .option("tasks", 4)'
        )
    if topic is None:
        raise WrongUse('exactlyOnce writes to one topic, where it keeps its markers: .option("topic", "…")')
    query, batch = options.take("query"), options.natural("batch")
    if not streaming and (query is None) != (batch is None):
        raise WrongUse("give query and batch together: a batch is known by both")
    ranges = options.take("ranges")
    return ExactlyOnce(
        name,
        tasks,
        query,
        batch,
        None if ranges is None else parse_ranges(ranges),
        options.take("fingerprint") or "",
        {} if ranges is None else parse_ids(ranges),
    )


def _refuse_without_exactly_once(options: GivenOptions) -> None:
    found = [name for name in _FOR_EXACTLY_ONCE if options.take(name) is not None]
    if found:
        raise WrongUse(
            f"{found[0]} means something with exactlyOnce=true alone; say that, or leave {found[0]} out"
        )


def _producer_settings(options: GivenOptions) -> tuple[ProducerSettings, list[str]]:
    """And the names of those that mean nothing here."""
    given = options.beginning_with(_PREFIX)
    security, given, of_java = take_security(given)
    if given.pop("acks", "all") not in ("all", "-1") or given.pop("enable.idempotence", "true") != "true":
        raise WrongUse(
            "the sink is idempotent and waits for all replicas in sync: leave kafka.acks and kafka.enable.idempotence out"
        )
    given, ignored = without_meaningless(given, PRODUCER_MEANINGLESS, {})
    settings: dict[str, SettingValue] = {
        "client_id": "ropewalk-spark",
        "transaction_timeout_ms": TRANSACTION_MS,
    }
    for name, value in given.items():
        if name not in _NAMES:
            raise WrongUse(
                f"kafka.{name} is not a setting of the sink; there are {', '.join(sorted(_NAMES))}"
            )
        settings[_NAMES[name]] = value
    try:
        made = producer_settings({**settings, "may_create_topics": False, "security": security})
        return made, sorted([*ignored, *of_java])
    except InvalidSetting as error:
        raise WrongUse(f"kafka.…: {error}") from None
