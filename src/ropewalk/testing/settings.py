"""A node's settings as a test writes them: Kafka's names with dots in a dictionary, with underscores as keywords; and a queue's attributes."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, structs

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.ids import NodeId
from ropewalk.metadata.queues import FIFO_SUFFIX
from ropewalk.node.addresses import NONE
from ropewalk.node.config import Config, load
from ropewalk.node.options import NodeOptions

SettingValue = str | int | float | bool

TEST_DEFAULTS: Final[Mapping[str, SettingValue]] = {
    "group.initial.rebalance.delay.ms": 0,  # Kafka's three seconds would be spent by every test with a group
    "audit.topic": "false",
    "telemetry.interval.ms": 0,  # nobody looks back on a test's node, and topics appear that it did not make
    "offsets.topic.num.partitions": 1,  # fifty are made for many groups on many nodes
}
"""Where a node for tests differs from Kafka's defaults."""

_DECIDED_HERE: Final = {
    "kafka.listen": "a test's node listens on a free port of the loopback",
    "listeners": "a test's node has one listener for Kafka's clients; kafka.security.protocol says what is spoken there",
    "kafka.advertise": "a test's node is reached where it listens",
    "http.listen": "a test's node listens on a free port of the loopback; ask the cluster's http",
    "sqs.listen": "a test's node listens on a free port of the loopback; ask the cluster's sqs",
    "sqs.advertise": "a test's node is reached where it listens",
    "node.data": "give the directory as data=",
}


def written_out(settings: Mapping[str, SettingValue], named: Mapping[str, SettingValue]) -> dict[str, str]:
    """One table of both, as text.

    >>> written_out({"log.retention.ms": -1}, {"auto_create_topics_enable": False})
    {'log.retention.ms': '-1', 'auto.create.topics.enable': 'false'}
    """
    with_dots = {name.replace("_", "."): value for name, value in named.items()}
    return {name: _text(value) for name, value in {**settings, **with_dots}.items()}


class Among(Struct, frozen=True):
    """A node's place in a cluster of several."""

    node_id: NodeId
    peer: str
    keeper: str
    """Where the node is that keeps the metadata."""
    secret: str
    is_keeper: bool


SEVERAL_DEFAULTS: Final[Mapping[str, SettingValue]] = {
    "node.session.timeout.ms": 3_000,  # a test that kills a leader waits for the next one so long
    "node.heartbeat.interval.ms": 100,
    "leader.imbalance.check.interval.seconds": 3_600,  # leaders stay where a test has put them
}
"""And where one of several does, besides."""


def node_config(
    settings: Mapping[str, str],
    *,
    kafka: str,
    http: str,
    sqs: str,
    data_path: str,
    among: Among | None = None,
) -> Config:
    """Checked; raises `InvalidSetting`. The environment and configuration files have no say in a test."""
    for name in settings:
        if name in _DECIDED_HERE:
            raise InvalidSetting(f"{name} cannot be set: {_DECIDED_HERE[name]}")
    merged = {**written_out(TEST_DEFAULTS, {}), **settings}
    options = NodeOptions(kafka=kafka, http=http, sqs=sqs, data=data_path)
    if among is not None:
        merged = {**written_out(SEVERAL_DEFAULTS, {}), "cluster.secret": among.secret, **merged}
        options = structs.replace(options, peer=among.peer, node_id=among.node_id)
        if among.is_keeper:
            options = structs.replace(options, kafka=NONE, http=NONE, sqs=NONE, roles=("controller",))
        else:
            options = structs.replace(options, seeds=(among.keeper,), roles=("broker", "frontend"))
    settled = structs.replace(options, settings=tuple(f"{name}={value}" for name, value in merged.items()))
    return load(settled, environment={})


def queue_attributes(name: str, named: Mapping[str, SettingValue]) -> dict[str, str]:
    """As SQS spells them.

    >>> queue_attributes("jobs.fifo", {"visibility_timeout": 5, "content_based_deduplication": True})
    {'VisibilityTimeout': '5', 'ContentBasedDeduplication': 'true', 'FifoQueue': 'true'}
    """
    spelled = {
        "".join(word.capitalize() for word in key.split("_")): _text(value) for key, value in named.items()
    }
    return {**spelled, "FifoQueue": "true"} if name.endswith(FIFO_SUFFIX) else spelled


def _text(value: SettingValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
