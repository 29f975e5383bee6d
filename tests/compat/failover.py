"""A large group whose coordinator is killed while it reads: told once, for every protocol of groups."""

import os
import signal
import time
from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.compat.crew import (
    Member,
    Partition,
    Position,
    received,
    wait_until,
    wait_until_left,
    wait_until_read,
    wait_until_shared,
)
from tests.compat.node_process import NodeProcess
from tests.compat.writing import write, writing

MEMBER_COUNT: Final = 20
PARTITION_COUNT: Final = 60
CONTROLLER: Final = 0
"""The node that keeps the metadata. While it is away no other can come to lead."""
_WITHIN_S: Final = 60
_ASKED_WITHIN_S: Final = 5
_RECORDS: Final = 600


def make_topic(admin: AdminClient, topic: str) -> set[Partition]:
    admin.create_topics([NewTopic(topic, PARTITION_COUNT, 3)])[topic].result(_WITHIN_S)
    return {(topic, partition) for partition in range(PARTITION_COUNT)}


def coordinator_of(bootstrap: str, group: str) -> int:
    """As soon as somebody says who it is: while it changes nobody may know.

    With a client of its own each time, since librdkafka's administrator believes for long what it was told once; and not for long, since
    it asks nobody else when the node that it waits for has gone.
    """
    deadline_s = time.monotonic() + _WITHIN_S
    while True:
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        try:
            asked = admin.describe_consumer_groups([group], request_timeout=_ASKED_WITHIN_S)
            return int(asked[group].result(_WITHIN_S).coordinator.id)
        except KafkaException:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.05)


def wait_until_in_sync(admin: AdminClient, *topics: str) -> None:
    """Every partition has all of its replicas: a node that was killed is back, and another may go."""
    deadline_s = time.monotonic() + _WITHIN_S
    while True:
        found = admin.list_topics(timeout=_WITHIN_S).topics
        partitions = [partition for topic in topics for partition in found[topic].partitions.values()]
        if all(len(partition.isrs) == 3 for partition in partitions):
            return
        assert time.monotonic() < deadline_s, [(each.id, each.isrs) for each in partitions]
        time.sleep(0.05)


def group_off_the_controller(bootstrap: str) -> str:
    """A group whose coordinator can be lost without the node that decides who the next one is."""
    for number in range(100):
        group = f"billing-{number}"
        if coordinator_of(bootstrap, group) != CONTROLLER:
            return group
    raise AssertionError("the controller looks after all of them")


def lose_the_coordinator(
    cluster: NodeProcess, members: Sequence[Member], group: str, topic: str, partitions: set[Partition]
) -> None:
    """Kill whoever looks after the group, under a load; then everything must have been read, and once."""
    bootstrap = ",".join(cluster.ready["kafka"])
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    wait_until_shared(members, partitions)
    before: list[Position] = write(bootstrap, topic, partitions=PARTITION_COUNT, count=_RECORDS)
    wait_until_read(members, before)
    wait_until_in_sync(admin, topic, "__consumer_offsets")
    lost = coordinator_of(bootstrap, group)
    assert lost != CONTROLLER
    with writing(bootstrap, topic, partitions=PARTITION_COUNT) as written:
        os.kill(cluster.ready["pids"][lost], signal.SIGKILL)
        while coordinator_of(bootstrap, group) == lost:
            time.sleep(0.05)
        for member in members:
            member.commit()
        wait_until(lambda: all(member.commit_count for member in members), f"{list(members)} have committed")
    wait_until_read(members, written)
    after = write(bootstrap, topic, partitions=PARTITION_COUNT, count=_RECORDS)
    wait_until_read(members, after)
    # The coordinator moves once more when the node is back, and librdkafka gives a commit up that it waits with while it closes.
    wait_until_in_sync(admin, topic, "__consumer_offsets")
    wait_until_left(members)
    counts = received(members)
    assert {position: count for position, count in counts.items() if count > 1} == {}
    assert counts.keys() >= {*before, *written, *after}
    refusals = [member.refusals for member in members if member.refusals]
    assert not refusals, refusals
