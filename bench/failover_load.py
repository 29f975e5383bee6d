"""A coordinator that is lost: how long until its group can commit again.

The node that looks after the group is killed, as kill -9 does, and the others are asked for the next one, and that one to
commit, until it does. In a cluster of Ropewalk whose metadata is in one node the coordinator is one of the others; which
of Kafka's nodes is its active controller is not known, and it may be that one.
"""

import asyncio
import os
import signal
import time
from typing import Final

from bench.brokers import Broker, node_processes
from bench.client_load import LoadFailed, create_topic
from bench.wire_client import run
from ropewalk.base.errors import RopewalkError
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.connection import Connection
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.network import TcpNetwork
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import find_coordinator, metadata, offset_commit

_SECONDS_MAX: Final = 120.0
_ATTEMPT_MS: Final = 500
_PAUSE_SECONDS: Final = 0.01
_COMMIT_VERSION: Final = 8
_clock: Final = SystemClock()


def lose_coordinator(broker: Broker) -> dict[str, float]:
    """`broker` is not whole afterwards."""
    topic = create_topic(broker, "failover", 1)
    return run(_lose_coordinator(broker, topic))


async def _lose_coordinator(broker: Broker, topic: str) -> dict[str, float]:
    async with asyncio.timeout(_SECONDS_MAX):
        nodes = await _nodes(Address(broker.host, broker.port))
        group, coordinator = await _group_off_node_0(nodes)
        await _commit_until_taken(nodes, group, topic, 1)
        await asyncio.sleep(1)  # until every replica is in sync, as in a cluster that has run for a while
        began_at = time.perf_counter()
        os.kill(node_processes(broker)[coordinator], signal.SIGKILL)
        survivors = {node_id: address for node_id, address in nodes.items() if node_id != coordinator}
        await _commit_until_taken(survivors, group, topic, 2)
        return {"ms": (time.perf_counter() - began_at) * 1000}


async def _group_off_node_0(nodes: dict[int, Address]) -> tuple[str, int]:
    for number in range(10_000):
        group = f"bench-failover-{number}"
        coordinator = await _find(nodes, group)
        if coordinator is None:
            await asyncio.sleep(_PAUSE_SECONDS)  # the topic of the offsets is being made
        elif coordinator != 0:
            return group, coordinator
    raise LoadFailed("node 0 looks after every group")


async def _commit_until_taken(nodes: dict[int, Address], group: str, topic: str, offset: int) -> None:
    partition = offset_commit.OffsetCommitRequestPartition(0, offset)
    request = offset_commit.OffsetCommitRequest(
        group_id=group, topics=(offset_commit.OffsetCommitRequestTopic(topic, partitions=(partition,)),)
    )
    while True:
        coordinator = await _find(nodes, group)
        if coordinator in nodes:
            try:
                connection = await _open(nodes[coordinator])
            except RopewalkError:
                continue
            try:
                answer = await connection.call(
                    offset_commit.API, request, deadline_ms=_deadline_ms(), version_max=_COMMIT_VERSION
                )
                if answer.topics[0].partitions[0].error_code == ErrorCode.NONE:
                    return
            except RopewalkError:
                pass  # it did not answer in time: another may be the coordinator by now
            finally:
                connection.close()
        await asyncio.sleep(_PAUSE_SECONDS)


async def _find(nodes: dict[int, Address], group: str) -> int | None:
    """By the first node that says; None if none does."""
    request = find_coordinator.FindCoordinatorRequest(key=group, coordinator_keys=(group,))
    for address in nodes.values():
        try:
            connection = await _open(address)
        except RopewalkError:
            continue
        try:
            answer = await connection.call(find_coordinator.API, request, deadline_ms=_deadline_ms())
        except RopewalkError:
            continue
        finally:
            connection.close()
        if answer.coordinators[0].error_code == ErrorCode.NONE:
            return answer.coordinators[0].node_id
    return None


async def _nodes(address: Address) -> dict[int, Address]:
    connection = await _open(address)
    try:
        request = metadata.MetadataRequest(topics=())
        answer = await connection.call(metadata.API, request, deadline_ms=_deadline_ms())
    finally:
        connection.close()
    return {node.node_id: Address(node.host, node.port) for node in answer.brokers}


async def _open(address: Address) -> Connection:
    return await Connection.open(TcpNetwork(), _clock, address, client_id="bench", deadline_ms=_deadline_ms())


def _deadline_ms() -> float:
    return _clock.monotonic_ms() + _ATTEMPT_MS
