"""A node that is killed inside a process that lives on leaves what a crash would leave, and can be followed by another."""

from ropewalk.client.calls.client import Client
from ropewalk.client.connections.address import Address
from ropewalk.node import life
from ropewalk.node.config import load
from ropewalk.node.options import NodeOptions
from ropewalk.records.codec import Codec
from ropewalk.records.record import Record
from ropewalk.records.record import build as build_batch
from ropewalk.sim.machines.world import EPOCH_MS, NodePorts, World
from ropewalk.wire.messages.list_offsets import LATEST

CONFIG = load(NodeOptions(kafka="node:9092", data="/data"), {})
BATCH = build_batch([Record(timestamp=EPOCH_MS, value=b"a")], codec=Codec.NONE)


def test_acknowledged_records_survive_and_nothing_claims_a_clean_stop() -> None:
    async def main(world: World) -> tuple[bool, int]:
        machine = world.machine("node")

        async def two_lives(ports: NodePorts) -> tuple[bool, int]:
            node = await life.start(CONFIG, ports)
            client = Client(
                world.network.host("client"),
                world.machine("client").clock,
                world.rng_for("client"),
                (Address("node", 9092),),
            )
            async with client:
                await client.produce("t", 0, bytearray(BATCH))
                await node.kill()
                claims_clean = await ports.pool.run(ports.disk.exists, "/data/clean-shutdown")
                ports.disk.close()
                await life.start(CONFIG, ports)
                return claims_clean, (await client.list_offsets("t", {0: LATEST}))[0].offset

        return await machine.start(two_lives)

    with World(3) as world:
        assert world.run(main(world), limit_s=100) == (False, 1)
