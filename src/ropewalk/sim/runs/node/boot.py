"""The real node on simulated ports, ended the way its own main program ends it."""

import asyncio
import sys
from typing import Final

from ropewalk.node import life
from ropewalk.node.config import load
from ropewalk.node.options import NodeOptions
from ropewalk.sim.machines.world import NodePorts
from ropewalk.sim.runs.node.keeper import RunningNode
from ropewalk.sim.runs.node.scenario import NODE_NAME, NODE_PORT

_SETTINGS: Final = (
    "auto.create.topics.enable=false",
    "telemetry.interval.ms=0",
    "audit.topic=false",
    "node.reserve.bytes=65536",
    # A run lasts some twenty seconds.
    "log.cleaner.backoff.ms=500",
    "log.retention.check.interval.ms=1500",
    "log.roll.ms=1500",
    "log.cleaner.min.cleanable.ratio=0.2",
    "log.cleaner.delete.retention.ms=1000",
    "offsets.topic.num.partitions=2",
    "offsets.retention.minutes=60",
    "offsets.retention.check.interval.ms=1000",
    "group.min.session.timeout.ms=500",
    "group.initial.rebalance.delay.ms=300",
)


async def boot(ports: NodePorts) -> RunningNode:
    options = NodeOptions(
        kafka=f"{NODE_NAME}:{NODE_PORT}", http="none", sqs="none", data="/data", settings=_SETTINGS
    )
    node = await life.start(load(options, {}), ports)
    node.failed.add_done_callback(_leave)
    return node


def _leave(_: "asyncio.Future[BaseException]") -> None:
    sys.exit(1)
