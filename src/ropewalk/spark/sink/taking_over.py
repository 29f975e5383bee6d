"""The markers of all tasks: read when nobody who wrote them can write any more, and released for the query that goes on.

What a reader could get wrong
    Reading fences. Whoever still writes under the same name is refused from then on, which is right: there is one query per name.
    A transaction that is decided is finished before the fence is up, so what is read afterwards is what counts.
"""

from collections.abc import Sequence
from typing import Final

from ropewalk.base.ids import TopicPartition
from ropewalk.client.blocking.admin import Admin
from ropewalk.client.blocking.producer import Producer
from ropewalk.client.group_offsets import OffsetToCommit
from ropewalk.spark.sink.marker import Marker, from_text, to_text
from ropewalk.spark.sink.recovery import released

MARKED_PARTITION: Final = 0
"""Of the topic that is written to; in every group there is one offset, whose metadata is the marker."""


def transactional_id(name: str, task: int) -> str:
    return f"ropewalk-{name}-{task}"


def group(name: str, task: int) -> str:
    return f"ropewalk-sink-{name}-{task}"


def fenced_markers(bootstrap: str, topic: str, name: str, task_count: int) -> list[Marker | None]:
    """Of all tasks in their order; None for one that has left none."""
    for task in range(task_count):
        with _producer(bootstrap, name, task):
            pass  # to have begun is all that is wanted
    place = TopicPartition(topic, MARKED_PARTITION)
    with Admin(bootstrap) as admin:
        committed = [admin.committed(group(name, task)).get(place) for task in range(task_count)]
    return [None if each is None else from_text(each.metadata) for each in committed]


def release(bootstrap: str, topic: str, name: str, markers: Sequence[Marker | None]) -> None:
    """From here on another query may go on where these markers end, and no former one."""
    place = TopicPartition(topic, MARKED_PARTITION)
    for task, marker in enumerate(released(markers)):
        with _producer(bootstrap, name, task) as producer, producer.transaction():
            offset = OffsetToCommit(marker.batch + 1, metadata=to_text(marker))
            producer.send_offsets_to_transaction({place: offset}, group(name, task))


def _producer(bootstrap: str, name: str, task: int) -> Producer:
    return Producer(bootstrap, transactional_id=transactional_id(name, task))
