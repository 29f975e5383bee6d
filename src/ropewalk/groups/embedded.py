"""Subscriptions and assignments of consumers, as bytes that a broker has to read and write itself.

It does where classic members are in a group whose assignments are made here; in a classic group they are the members'
own business. What cannot be read is refused: who reads what would not be known.
"""

from collections.abc import Iterable

from ropewalk.base.ids import TopicPartition
from ropewalk.groups.errors import InconsistentProtocol
from ropewalk.wire import consumer_protocol
from ropewalk.wire.consumer_protocol import VERSION_MAX, Assignment, Subscription, TopicPartitions


def decode_subscription(metadata: bytes) -> Subscription:
    subscription = consumer_protocol.decode_subscription(metadata)
    if subscription is None:
        raise InconsistentProtocol("the member's metadata is no subscription of a consumer")
    return subscription


def owned_in(subscription: Subscription) -> list[TopicPartition]:
    return _listed(subscription.owned_partitions)


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """Nothing for no bytes: the member has not been assigned anything yet."""
    if not data:
        return []
    assignment = consumer_protocol.decode_assignment(data)
    if assignment is None:
        raise InconsistentProtocol("the member's assignment is none of a consumer")
    return _listed(assignment.assigned_partitions)


def encode_assignment(assigned: Iterable[TopicPartition], *, like: bytes) -> bytes:
    """In the version that the member uses itself, in its metadata `like`."""
    version = int.from_bytes(like[:2], "big", signed=True)
    by_topic: dict[str, list[int]] = {}
    for partition in sorted(assigned):
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    by_name = tuple(TopicPartitions(topic, tuple(partitions)) for topic, partitions in by_topic.items())
    return consumer_protocol.encode(Assignment(by_name), min(max(version, 0), VERSION_MAX))


def _listed(partitions: tuple[TopicPartitions, ...]) -> list[TopicPartition]:
    return [TopicPartition(each.topic, index) for each in partitions for index in each.partitions]
