"""What it costs a node to look at every record that is produced (`records.validate=full`).

One connection sends the same compressed batch again and again, five requests on their way, to a topic whose batches are opened and to
one of which only the headers are looked at, in turn. Reported is the node's CPU time per request, which other load on the machine
disturbs less than rates.
"""

import argparse
import asyncio
import random
import statistics
import time
from collections import deque
from typing import Final

from bench.brokers import Broker, start_ropewalk
from bench.processes import cpu_seconds
from ropewalk.client.administration.for_applications import Admin
from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import parse_addresses
from ropewalk.records.codec import Codec
from ropewalk.records.record import Record, build
from ropewalk.runtime.ports import SystemClientPorts
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import produce

_VALIDATIONS: Final = ("header", "full")
_BATCHES: Final = ((64, 1024), (500, 100), (10, 100))
"""Records and their bytes."""
_IN_FLIGHT: Final = 5
_VERSION: Final = 9
_PATIENCE_MS: Final = 60_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--requests", type=int, default=500)
    chosen = parser.parse_args()
    broker = start_ropewalk("os")
    try:
        asyncio.run(_report(broker, chosen.pairs, chosen.requests))
    finally:
        broker.stop()


async def _report(broker: Broker, pair_count: int, request_count: int) -> None:
    ports = SystemClientPorts()
    async with Admin(broker.bootstrap) as admin:
        for validation in _VALIDATIONS:
            await admin.create_topic(validation, partitions=1, settings={"records.validate": validation})
    addresses = parse_addresses(broker.bootstrap)
    async with Client(ports.network, ports.clock, ports.rng, addresses) as client:
        print("records × bytes, lz4    CPU µs per request: header    full    full / header [least – most]")
        for record_count, record_bytes in _BATCHES:
            batch = _batch(record_count, record_bytes)
            costs: dict[str, list[float]] = {validation: [] for validation in _VALIDATIONS}
            for validation in _VALIDATIONS:
                await _produce(client, validation, batch, request_count // 10)
            for _ in range(pair_count):
                for validation, found in costs.items():
                    before_s = cpu_seconds(broker.pid)
                    await _produce(client, validation, batch, request_count)
                    found.append((cpu_seconds(broker.pid) - before_s) / request_count * 1e6)
            ratios = [full / header for header, full in zip(costs["header"], costs["full"], strict=True)]
            header, full = (statistics.median(costs[validation]) for validation in _VALIDATIONS)
            print(
                f"{record_count:>7} × {record_bytes:<14}{header:>27.0f}{full:>8.0f}"
                f"{statistics.median(ratios):>10.2f} [{min(ratios):.2f} – {max(ratios):.2f}]"
            )


async def _produce(client: Client, topic: str, batch: bytes, request_count: int) -> None:
    clock = client.session.clock
    view = await client.topic(topic)
    deadline_ms = clock.monotonic_ms() + _PATIENCE_MS
    connection = await client.session.cluster.connection(view.partitions[0].leader, deadline_ms=deadline_ms)
    data = produce.PartitionProduceData(index=0, records=batch)
    request = produce.ProduceRequest(
        acks=1, timeout_ms=_PATIENCE_MS, topics=(produce.TopicProduceData(name=topic, partitions=(data,)),)
    )
    unanswered: deque[asyncio.Future[produce.ProduceResponse]] = deque()
    for _ in range(request_count):
        if len(unanswered) >= _IN_FLIGHT:
            _check(await unanswered.popleft())
        deadline_ms = clock.monotonic_ms() + _PATIENCE_MS
        unanswered.append(connection.send(produce.API, _VERSION, request, deadline_ms=deadline_ms))
    for answer in unanswered:
        _check(await answer)


def _check(response: produce.ProduceResponse) -> None:
    code = response.topics[0].partitions[0].error_code
    assert code == ErrorCode.NONE, f"a batch was refused with {code}"


def _batch(record_count: int, record_bytes: int) -> bytes:
    """Words, so that it can be compressed as text can."""
    dice = random.Random(1)
    words = [bytes(dice.randrange(97, 123) for _ in range(dice.randrange(3, 9))) + b" " for _ in range(2000)]
    now_ms = int(time.time() * 1000)
    records = [
        Record(timestamp=now_ms, value=b"".join(dice.choices(words, k=record_bytes // 3))[:record_bytes])
        for _ in range(record_count)
    ]
    return bytes(build(records, codec=Codec.LZ4))


if __name__ == "__main__":
    main()
