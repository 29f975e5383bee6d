"""Where the markers of a sink are: in a compacted topic of the cluster's, which keeps the newest of each key for good.

    key      ["copy-orders","vPeOCWypqUOSepEvx0cbog",3]    the sink's name, the id of the topic it writes to, the task
    value    the marker, as `marker.py` writes it

Under null in place of a task stands what whoever was first has marked for all.

What a reader could get wrong
    The key has the topic's id: a topic that was deleted and made anew under its name has nothing of what was written to the former one.
    Markers of former releases are offsets of groups, which expire. They are looked for where the topic has none, and the next marker takes their place.
    Such an offset goes with the topic that it belongs to, so no marker of another topic is ever taken over.
"""

from typing import Final

import msgspec

from ropewalk.base.ids import TOPIC_ID_NONE, TopicPartition, format_id
from ropewalk.client.blocking.admin import Admin
from ropewalk.client.blocking.producer import Producer
from ropewalk.client.connections.cluster import TopicView
from ropewalk.spark.refusals import NotWritten, WrongUse
from ropewalk.spark.sink.marker import Marker, from_text, to_text
from ropewalk.spark.sink.options import SinkOptions

MARKERS_TOPIC: Final = "__spark_markers"
_SETTINGS: Final = {"cleanup.policy": "compact"}
"""For brokers that do not lay it out by themselves, as Ropewalk's do."""


class MarkerStore:
    """Of one sink, through the producer that is to write. That has taken over its transactional id, so what was marked under it is decided."""

    def __init__(self, producer: Producer, options: SinkOptions) -> None:
        """Makes the markers' topic where there is none. Refuses a topic that is not there with `WrongUse`."""
        exactly_once, topic = options.exactly_once, options.topic
        assert exactly_once is not None
        assert topic is not None
        self._producer = producer
        self._name = exactly_once.name
        self._topic = topic
        found = producer.describe_topics([topic, MARKERS_TOPIC])
        if topic not in found:
            raise WrongUse(f"there is no topic {topic}; create it first")
        self._id = identity(found[topic])
        if MARKERS_TOPIC not in found:
            with Admin(options.bootstrap, security=options.settings.security) as admin:
                admin.create_topic(MARKERS_TOPIC, settings=_SETTINGS, exists_ok=True)

    def read(self, task: int) -> Marker | None:
        return self._newest(task) or self._former(former_group(self._name, task), stable=True)

    def read_first(self) -> Marker | None:
        """Not waiting for others who are about to commit: theirs may be a transaction that only their next attempt ends."""
        return self._newest(None) or self._former(former_first_group(self._name), stable=False)

    def write(self, task: int | None, marker: Marker) -> None:
        """Counts when the transaction does that it is called in."""
        self._producer.send(MARKERS_TOPIC, to_text(marker).encode(), key=self._key(task))

    def refuse_another_topic(self) -> None:
        """Before the marker is written: rows went to the topic by its name, which may have come to be another's since."""
        found = self._producer.describe_topics([self._topic]).get(self._topic)
        found_id = None if found is None else identity(found)
        if found_id != self._id:
            raise NotWritten(
                f"topic {self._topic} was deleted{'' if found is None else ' and made anew'} while it was written to: it had the id"
                f" {self._id}, and now there is {found_id or 'none'}. Nothing of this batch counts. Look at what it holds, then begin"
                " with a new checkpoint and another name"
            )

    def _newest(self, task: int | None) -> Marker | None:
        key = self._key(task)
        record = self._producer.newest(MARKERS_TOPIC, [key]).get(key)
        return None if record is None or record.value is None else from_text(bytes(record.value).decode())

    def _former(self, group: str, *, stable: bool) -> Marker | None:
        place = TopicPartition(self._topic, 0)
        committed = self._producer.committed(group, [place], stable=stable).get(place)
        return None if committed is None else from_text(committed.metadata)

    def _key(self, task: int | None) -> bytes:
        return msgspec.json.encode([self._name, self._id, task])


def identity(topic: TopicView) -> str:
    """Its id; its name where brokers have none."""
    return topic.name if topic.topic_id == TOPIC_ID_NONE else format_id(topic.topic_id)


def former_group(name: str, task: int) -> str:
    """In whose offsets former releases kept the marker of a task."""
    return f"ropewalk-sink-{name}-{task}"


def former_first_group(name: str) -> str:
    return f"ropewalk-sink-{name}"
