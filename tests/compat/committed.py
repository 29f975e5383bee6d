"""What a node says that a group has committed, asked of it with the client whose answers are simplest."""

import time
from typing import Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka.admin import AdminClient

from tests.compat.crew import Partition

_PATIENCE_S: Final = 20
_COORDINATOR_LOAD_IN_PROGRESS: Final = 14


def committed(bootstrap: str, group: str) -> dict[Partition, int]:
    """The next offset to read of every partition for which there is one.

    A node that has just started says for a moment that it is still reading; then the question is asked again.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group]
            partitions = answer.result(_PATIENCE_S).topic_partitions
        except KafkaException as error:
            if error.args[0].code() != _COORDINATOR_LOAD_IN_PROGRESS or time.monotonic() > deadline_s:
                raise
            time.sleep(0.02)
            continue
        return {(partition.topic, partition.partition): partition.offset for partition in partitions}
