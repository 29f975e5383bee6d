"""The real node on simulated ports, ended the way its own main program ends it."""

import asyncio
import sys

from ropewalk.node import build
from ropewalk.node.config import load
from ropewalk.node.options import NodeOptions
from ropewalk.sim.keeper import RunningNode
from ropewalk.sim.scenario import NODE_NAME, NODE_PORT
from ropewalk.sim.world import NodePorts


async def boot(ports: NodePorts) -> RunningNode:
    options = NodeOptions(
        kafka=f"{NODE_NAME}:{NODE_PORT}", data="/data", settings=("auto.create.topics.enable=false",)
    )
    node = await build.start(load(options, {}), ports)
    node.failed.add_done_callback(_leave)
    return node


def _leave(_: "asyncio.Future[BaseException]") -> None:
    sys.exit(1)
