"""What a node says that a group has committed, asked of it with the client whose answers are simplest."""

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from tests.compat.crew import Partition

_PATIENCE_S = 20


def committed(bootstrap: str, group: str) -> dict[Partition, int]:
    """The next offset to read of every partition for which there is one."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    answers = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    partitions = answers[group].result(_PATIENCE_S).topic_partitions
    return {(partition.topic, partition.partition): partition.offset for partition in partitions}
