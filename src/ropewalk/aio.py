"""The client for asyncio: the same as `from ropewalk import …`, on the caller's event loop."""

from ropewalk.base.ids import TopicPartition
from ropewalk.client.administration.for_applications import Admin
from ropewalk.client.calls.group_offsets import Committed, GroupIdentity, OffsetToCommit
from ropewalk.client.consuming.consumer import Consumer
from ropewalk.client.consuming.message import Message
from ropewalk.client.producing.batch import Acknowledged, Delivery
from ropewalk.client.producing.producer import Producer
from ropewalk.client.queues.queue import Queue
from ropewalk.client.queues.sending import Outgoing, Sent

__all__ = [
    "Acknowledged",
    "Admin",
    "Committed",
    "Consumer",
    "Delivery",
    "GroupIdentity",
    "Message",
    "OffsetToCommit",
    "Outgoing",
    "Producer",
    "Queue",
    "Sent",
    "TopicPartition",
]
