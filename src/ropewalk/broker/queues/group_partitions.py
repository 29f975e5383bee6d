"""Which partition of a FIFO queue a message group is in, so that each group has one leader.

What a reader could get wrong
    In a topic that was adopted others write, too, and keys are groups: what is sent here goes where Java's clients put the key. A producer that chooses
    otherwise has its groups elsewhere.
    What goes back to the queue it came from goes back to its partition, whoever chose that.
"""

from ropewalk.base.sharding import shard_of
from ropewalk.broker.queues.headers import SOURCE_PARTITION, SOURCE_QUEUE_ID
from ropewalk.broker.queues.opened import group_of, header_of
from ropewalk.client.calls.partitioner import partition_for_key
from ropewalk.metadata.queues import Queue
from ropewalk.records.record import Record


def partition_of_group(queue: Queue, group: str, partition_count: int) -> int:
    if queue.is_adopted:
        return partition_for_key(group.encode(), partition_count)
    return shard_of(group, partition_count)


def partition_for_return(queue: Queue, record: Record, partition_count: int) -> int:
    """Of a dead letter that goes to `queue`, which may be the one it came from."""
    before = header_of(record, SOURCE_PARTITION)
    if header_of(record, SOURCE_QUEUE_ID) == queue.queue_id and before is not None and before.isdigit():
        return int(before[:9]) % partition_count
    return partition_of_group(queue, group_of(record), partition_count)
