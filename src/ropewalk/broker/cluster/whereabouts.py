"""Which node leads a partition, or the shard that a key belongs to, as the image has it; None where nobody does."""

from ropewalk.base.ids import NodeId
from ropewalk.base.sharding import shard_of
from ropewalk.metadata.image import Image, Topic


def leader(topic: Topic | None, index: int) -> NodeId | None:
    if topic is None or not 0 <= index < len(topic.partitions):
        return None
    return topic.partitions[index].leader


def shard_leader(image: Image, topic_name: str, key: str) -> NodeId | None:
    topic = image.topics.get(topic_name)
    if topic is None or not topic.partitions:
        return None
    return topic.partitions[shard_of(key, len(topic.partitions))].leader
