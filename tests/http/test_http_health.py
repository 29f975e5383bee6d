"""Alive, ready, well: what each says through a node's life and its troubles."""

import asyncio

import pytest

from ropewalk.base.limits import DISK_FREE_BYTES_MIN
from ropewalk.node import life
from ropewalk.node.config import load
from ropewalk.node.life import Node
from ropewalk.node.options import NodeOptions
from ropewalk.sim.machines.world import Machine, World
from tests.http.client import Line, Page
from tests.kafka.door import Door, at_the_door, batch_of

HTTP = "node:9644"
OPTIONS = NodeOptions(kafka="node:9092", http="node:9644", data="/data")


async def ask(world: World, path: str) -> Page:
    return await (await Line.open(world.network.host("probe"))).get(path)


def start(machine: Machine) -> "asyncio.Task[Node]":
    return asyncio.ensure_future(machine.start(lambda ports: life.start(load(OPTIONS, {}), ports)))


def test_a_node_that_starts_is_alive_before_it_is_ready() -> None:
    async def main(world: World) -> tuple[int, Page, int]:
        machine = world.machine("node")
        starting = start(machine)
        while world.network.listener_at("node", 9644) is None:
            await asyncio.sleep(0.0001)
        machine.platters.stall(world.now_s + 5)
        line = await Line.open(world.network.host("probe"))
        alive, early = await line.get("/livez"), await line.get("/readyz")
        assert not starting.done()
        await starting
        return alive.status, early, (await line.get("/readyz")).status

    with World(1) as world:
        alive, early, late = world.run(main(world), limit_s=100)
    assert (alive, early.status, late) == (200, 503, 200)
    assert "started failed: its logs are being opened" in early.text


def test_a_node_that_stops_is_not_ready_and_the_door_closes_last() -> None:
    async def main(world: World) -> tuple[int, Page]:
        machine = world.machine("node")
        node = await start(machine)
        line = await Line.open(world.network.host("probe"))
        machine.platters.stall(world.now_s + 5)
        stopping = asyncio.ensure_future(node.stop())
        alive, ready = await line.get("/livez"), await line.get("/readyz")
        assert not stopping.done()
        await stopping
        await line.closed
        return alive.status, ready

    with World(1) as world:
        alive, ready = world.run(main(world), limit_s=100)
    assert (alive, ready.status) == (200, 503)
    assert "shutting down" in ready.text


def test_a_node_that_cannot_start_leaves_no_door_open() -> None:
    async def main(world: World) -> None:
        machine = world.machine("node")
        await world.network.host("node").listen(asyncio.Protocol, "node", 9092)
        with pytest.raises(OSError, match="in use"):
            await start(machine)
        with pytest.raises(ConnectionRefusedError):
            await Line.open(world.network.host("probe"))

    with World(1) as world:
        world.run(main(world), limit_s=100)


def test_without_room_a_node_is_ready_to_be_read_and_says_that_it_is_not_well() -> None:
    async def main(world: World) -> tuple[int, Page, str]:
        machine = world.machine("node")
        await start(machine)
        machine.platters.capacity_bytes = machine.platters.used_bytes + DISK_FREE_BYTES_MIN - 1
        page = await ask(world, "/readyz")
        metrics = await ask(world, "/metrics")
        return (await ask(world, "/healthz")).status, page, metrics.text

    with World(1) as world:
        well, ready, metrics = world.run(main(world), limit_s=100)
    assert (well, ready.status) == (503, 200)
    assert f"bytes are free, {DISK_FREE_BYTES_MIN} are wanted" in ready.text
    assert "ropewalk_ready 1" in metrics
    assert "ropewalk_disk_full 0" in metrics


def test_a_damaged_partition_makes_a_node_unwell_but_not_unready() -> None:
    async def story(door: Door) -> tuple[int, Page]:
        await door.create("t", segment_bytes="1048576")
        for _ in range(2):
            await door.produce("t", batch_of("a" * 900_000))
        first = next(
            file for path, file in door.machine.platters.files() if path.endswith("t-0/" + "0" * 20 + ".log")
        )
        first.rot(1000, 1)
        door.machine.platters.evict()
        while await door.node.housekeeping.scrub():
            pass
        ready = await ask(door.world, "/readyz")
        return ready.status, await ask(door.world, "/healthz?verbose")

    ready, well = at_the_door(story, http=HTTP)
    assert (ready, well.status) == (200, 503)
    assert "records failed: 1 partitions are damaged: t-0" in well.text
    assert "disk ok" in well.text


def test_what_is_well_is_not_listed_unless_asked_for() -> None:
    async def story(door: Door) -> tuple[str, str]:
        await door.create("t")
        await door.produce("t", batch_of("a"))
        quiet = await ask(door.world, "/healthz")
        return quiet.text, (await ask(door.world, "/healthz?verbose")).text

    quiet, verbose = at_the_door(story, http=HTTP)
    assert quiet == "ok\n"
    assert verbose.splitlines() == [
        "process ok",
        "started ok",
        "groups ok",
        "transactions ok",
        "disk ok",
        "room ok",
        "records ok",
        "hanging transactions ok",
        "ok",
    ]
