"""The queues of a run: what they promise, and how they are asked for."""

import json
import random
from typing import Final

from msgspec import Struct

FIFO: Final = ".fifo"
RETENTION_S: Final = 1_209_600
"""As long as may be: what a clock that jumps takes for old is not judged here."""

HIDDEN_S_MAX: Final = 6
HIDDEN_LONG_S: Final = 32
"""Longer than a leader waits for a front end that is silent. FIFO queues of some runs hide messages so long."""
DELAY_S_MAX: Final = 4


class QueueSort(Struct, frozen=True, kw_only=True):
    name: str
    partition_count: int = 1
    delay_s: int = 0
    """The queue's own."""
    receives_max: int = 0
    """Of a message before it is a dead letter; 0: there are none."""
    dead_letters: str = ""
    """The queue that they go to."""
    by_group: bool = False
    """FIFO: ids are compared within groups, and groups spread over partitions."""
    topic: str = ""
    """One that was there before; empty: it is made with the queue."""
    is_sent_to: bool = True

    @property
    def is_fifo(self) -> bool:
        return self.name.endswith(FIFO)

    @property
    def topic_name(self) -> str:
        return self.topic or self.name

    def attributes(self) -> dict[str, str]:
        found = {"MessageRetentionPeriod": str(RETENTION_S), "DelaySeconds": str(self.delay_s)}
        if self.is_fifo:
            found["FifoQueue"] = "true"
        if self.by_group:
            found |= {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}
        if self.receives_max:
            target = f"arn:aws:sqs:us-east-1:000000000000:{self.dead_letters}"
            policy = {"deadLetterTargetArn": target, "maxReceiveCount": self.receives_max}
            found["RedrivePolicy"] = json.dumps(policy)
        return found


def draw_sorts(rng: random.Random, fifo_partition_count: int) -> list[QueueSort]:
    """Two or three, and those of their dead letters before them."""
    sorts: list[QueueSort] = []
    kinds = [_standard, _fifo, rng.choice([_adopted, _standard, _fifo])]
    for number, kind in enumerate(rng.sample(kinds, rng.randrange(2, 4))):
        sort = kind(rng, f"q{number}", fifo_partition_count)
        if sort.receives_max:
            name = f"dead{number}" + (FIFO if sort.is_fifo else "")
            sorts.append(QueueSort(name=name, is_sent_to=False))
            sort = QueueSort(
                name=sort.name,
                partition_count=sort.partition_count,
                delay_s=sort.delay_s,
                receives_max=sort.receives_max,
                dead_letters=name,
                by_group=sort.by_group,
                topic=sort.topic,
            )
        sorts.append(sort)
    return sorts


def _standard(rng: random.Random, name: str, _: int) -> QueueSort:
    return QueueSort(
        name=name,
        partition_count=rng.choice([1, 1, 2, 4]),
        delay_s=rng.choice([0, 0, 0, 2]),
        receives_max=rng.choice([0, 2, 3]),
    )


def _fifo(rng: random.Random, name: str, fifo_partition_count: int) -> QueueSort:
    by_group = rng.random() < 0.4
    return QueueSort(
        name=name + FIFO,
        partition_count=fifo_partition_count if by_group else 1,
        delay_s=rng.choice([0, 0, 0, 2]),
        receives_max=rng.choice([0, 2, 3]),
        by_group=by_group,
    )


def _adopted(rng: random.Random, name: str, _: int) -> QueueSort:
    return QueueSort(
        name=name + rng.choice(["", FIFO]),
        partition_count=rng.choice([1, 2, 3]),
        receives_max=rng.choice([0, 2, 3]),
        topic=f"topic-of-{name}",
    )
