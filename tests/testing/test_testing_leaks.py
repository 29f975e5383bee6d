"""Two hundred of everything leave nothing behind: descriptors, threads, tasks, objects, memory."""

import asyncio
import gc
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import uvloop

from ropewalk.base.ids import TopicPartition
from ropewalk.base.limits import DISK_THREADS
from ropewalk.client.administration.groups import Groups
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import parse_addresses
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.network import TcpNetwork
from ropewalk.testing import Cluster, Namespace

pytestmark = pytest.mark.compat

ROUNDS = 200
WARM_UP_ROUNDS = 20
"""Codecs are compiled, caches filled and allocators warm after these."""

OBJECTS_PER_ROUND_MAX = 5
"""A node is thousands of objects. A deleted topic leaves two: the image remembers its id."""

OBJECTS_MORE_MAX = OBJECTS_PER_ROUND_MAX * (ROUNDS - WARM_UP_ROUNDS)

MEMORY_BYTES_MAX = 12 << 20

STRANGERS_MAX = 4
"""Descriptors and tasks that come and go in this process without us: clients of other tests that connect anew, say. One left by each round
would be many more."""


class Held(NamedTuple):
    descriptors: int
    threads: int
    tasks: int
    objects: int
    frozen: int
    memory_bytes: int


def held() -> Held:
    gc.collect()
    objects = gc.get_objects()
    resident_pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Held(
        descriptors=len(os.listdir("/proc/self/fd")),
        threads=threading.active_count(),
        tasks=sum(issubclass(type(each), asyncio.Task) for each in objects),  # a dead proxy has a type, too
        objects=len(objects),
        frozen=gc.get_freeze_count(),  # is not among the objects, and never collected
        memory_bytes=resident_pages * os.sysconf("SC_PAGE_SIZE"),
    )


def nothing_is_left(before: Held, after: Held, *, threads_more_max: int = 0) -> None:
    assert after.descriptors - before.descriptors <= STRANGERS_MAX
    assert after.threads - before.threads <= threads_more_max
    assert after.tasks - before.tasks <= STRANGERS_MAX
    assert after.objects - before.objects < OBJECTS_MORE_MAX
    assert after.frozen == before.frozen, "the collector belongs to the process that a cluster is in"
    assert after.memory_bytes - before.memory_bytes < MEMORY_BYTES_MAX


def measured(one_round: Callable[[], None], *, rounds: int = ROUNDS) -> tuple[Held, Held]:
    """Once more where objects have become more: on a slow machine a codec may be compiled after the warm-up, but only once; a leak
    comes with every round.
    """
    for _ in range(WARM_UP_ROUNDS):
        one_round()
    before = after = held()
    for _ in range(2):
        before = after
        for _ in range(rounds - WARM_UP_ROUNDS):
            one_round()
        after = held()
        if after.objects - before.objects < OBJECTS_MORE_MAX:
            break
    return before, after


@pytest.mark.parametrize("end", ["leave", "kill"])
def test_starting_and_stopping_leaves_nothing(end: str) -> None:
    def one_round() -> None:
        with Cluster() as cluster:
            cluster.create_topic("orders")
            if end == "kill":
                cluster.kill()

    nothing_is_left(*measured(one_round))


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_starting_and_stopping_on_one_loop_leaves_nothing(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def one_round() -> None:
        async with Cluster() as cluster:
            await cluster.topics()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        nothing_is_left(*measured(lambda: runner.run(one_round())))


def test_a_directory_is_let_go_of(tmp_path: Path) -> None:
    def one_round() -> None:
        with Cluster(data=tmp_path) as cluster:
            cluster.kill()
            cluster.restart()

    # Every start waits for a real disk several times: enough rounds to see a descriptor, no more.
    nothing_is_left(*measured(one_round, rounds=WARM_UP_ROUNDS + 10))


def test_namespaces_leave_nothing_on_the_node_they_share() -> None:
    async def commit(bootstrap: str, group: str, topic: str) -> None:
        addresses = parse_addresses(bootstrap)
        async with Client(TcpNetwork(), SystemClock(), random.SystemRandom(), addresses) as client:
            await Groups(client).commit(group, {TopicPartition(topic, 0): 0})

    with Cluster() as cluster, asyncio.Runner() as runner:

        def one_round() -> None:
            namespace = Namespace(cluster)
            orders = namespace.topic("orders", partitions=2)
            runner.run(commit(cluster.bootstrap, namespace.group("billing"), orders))
            namespace.close()

        before, after = measured(one_round)
        assert (cluster.topics(), cluster.groups()) == ([], [])
    nothing_is_left(before, after, threads_more_max=DISK_THREADS)  # the running node's pool grows by need
