"""The metadata of a running cluster move from a node's directory to etcd and back, while the mover is killed and clients write."""

import asyncio
from contextlib import suppress

import pytest
from msgspec import structs

from ropewalk.base.errors import InvalidRequest, MetadataLeft, RopewalkError
from ropewalk.client.calls.client import Client
from ropewalk.node.config import load
from ropewalk.node.moving import LOCAL, Moved, move_metadata
from ropewalk.records.batch import iterate
from ropewalk.records.record import Record, build, decode_records
from ropewalk.sim.machines.etcd import ModelledEtcd
from ropewalk.sim.machines.process import Died
from tests.cluster.nodes import Nodes, in_a_cluster
from tests.cluster.test_cluster_leaders import create

SESSION = "node.session.timeout.ms=1500"
ROUNDS = 6


class Mover:
    """Moves the metadata on the machine of node 0, which must not run meanwhile."""

    def __init__(self, nodes: Nodes, etcd: ModelledEtcd) -> None:
        self._nodes = nodes
        self._member = nodes.members[0]
        members = ",".join(url.removeprefix("http://") for url in etcd.urls)
        self.homes = {"etcd": f"etcd://{members}/moved/", "local": LOCAL}

    async def move(self, to: str, *, back: bool = False) -> Moved:
        """As the command does, in a process of its own."""
        config = load(self._member._options, {})
        try:
            return await self._member.machine.start(
                lambda ports: move_metadata(config, ports, self.homes[to], back=back)
            )
        finally:
            self._member.machine.kill()

    async def move_for_certain(self, to: str, dice: float) -> Moved:
        """Begun again until it is done, after having been killed at some instant."""
        killed = asyncio.ensure_future(self.move(to))
        await asyncio.sleep(dice)
        if dice * 1000 % 2 < 1:
            self._member.machine.kill()
        else:
            self._member.machine.cut_power()
        with suppress(Died, RopewalkError):
            await killed
        return await self.move(to)

    async def start_at(self, moved: Moved) -> None:
        """Start node 0 with what the command says that its configuration has to say."""
        options = self._member._options
        kept = tuple(each for each in options.settings if not each.startswith("metadata."))
        said = tuple(f"{name}={value}" for name, value in moved.settings.items())
        self._member._options = structs.replace(options, settings=(*kept, *said))
        await self._member.start()


async def with_etcd_beside(nodes: Nodes) -> Mover:
    etcd = ModelledEtcd(nodes.world)
    await etcd.start()
    return Mover(nodes, etcd)


async def write_all_the_while(client: Client, written: list[str], stop: asyncio.Event) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        with suppress(RopewalkError):
            await client.produce("orders", 0, build([Record(timestamp=0, value=f"{number}".encode())]))
            written.append(str(number))
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("seed", range(5))
def test_the_metadata_of_a_cluster_under_load_go_to_etcd_and_back(seed: int) -> None:
    async def story(nodes: Nodes) -> None:
        mover = await with_etcd_beside(nodes)
        rng = nodes.world.rng_for("mover")
        await create(nodes, "orders", partitions=1)
        cluster_id = nodes[0].image.cluster_id
        written: list[str] = []
        stop = asyncio.Event()
        async with nodes.client() as client:
            writing = asyncio.ensure_future(write_all_the_while(client, written, stop))
            for number in range(ROUNDS):
                to = "etcd" if number % 2 == 0 else "local"
                epoch, position = nodes[0].image.controller_epoch, nodes[1].image.position
                await nodes.members[0].stop()
                moved = await mover.move_for_certain(to, rng.uniform(0.0, 0.05))
                await mover.start_at(moved)
                await nodes.until(lambda: nodes[0].decides)
                image = nodes[0].image
                assert (image.cluster_id, image.controller_epoch > epoch) == (cluster_id, True)
                assert image.holds(position), "nodes that run have followed the same history"
                await nodes.until(
                    lambda: all(
                        nodes.is_serving(one, seen_by=other) for one in range(3) for other in range(3)
                    )
                )
                await create(nodes, f"made-{number}")
            stop.set()
            await writing
            await nodes.until(
                lambda: all(
                    list(nodes[each].image.facts()) == list(nodes[0].image.facts()) for each in (1, 2)
                )
            )
            assert {"orders", *(f"made-{number}" for number in range(ROUNDS))} <= set(nodes[0].image.topics)
            assert len(written) > 20
            assert set(written) <= await everything(nodes)
        assert not any(nodes[each].failed.done() for each in range(3))

    in_a_cluster(story, SESSION, seed=seed)


async def everything(nodes: Nodes) -> set[str]:
    """What the leader of the topic holds."""
    (leader,) = [
        each
        for each in range(3)
        if any(led.name.topic == "orders" for led in nodes[each].partitions.all_led())
    ]
    (led,) = [each for each in nodes[leader].partitions.all_led() if each.name.topic == "orders"]
    found: set[str] = set()
    offset = led.log.start_offset
    while span := led.log.locate(offset, limit_offset=led.log.end_offset, bytes_max=1 << 20):
        data = memoryview(bytes(await nodes[leader]._parts.ports.pool.run(span.read)))
        for position, header in iterate(data):
            for record in decode_records(data[position : position + header.size_bytes]):
                found.add((record.value or b"").decode())
            offset = header.end_offset
    return found


def test_a_node_does_not_start_at_a_home_that_was_left() -> None:
    async def story(nodes: Nodes) -> None:
        mover = await with_etcd_beside(nodes)
        await nodes.members[0].stop()
        await mover.move("etcd")
        with pytest.raises(MetadataLeft, match=r"have moved to etcd at .*: set metadata.home"):
            await nodes.members[0].start()

    in_a_cluster(story, SESSION)


def test_a_node_that_runs_cannot_have_its_home_moved() -> None:
    async def story(nodes: Nodes) -> None:
        mover = await with_etcd_beside(nodes)
        await nodes.members[0].stop()
        moved = await mover.move("etcd")
        await mover.start_at(moved)
        with pytest.raises(
            AssertionError, match="running already"
        ):  # the directory is locked on a real machine
            await mover.move("local")

    in_a_cluster(story, SESSION)


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        pytest.param("nowhere", "say local, or etcd", id="no home"),
        pytest.param("etcd://", "say local, or etcd", id="no members"),
        pytest.param(LOCAL, "already", id="where they are"),
    ],
)
def test_what_makes_no_sense_is_refused(to: str, reason: str) -> None:
    async def story(nodes: Nodes) -> None:
        mover = await with_etcd_beside(nodes)
        mover.homes["there"] = to
        await nodes.members[0].stop()
        with pytest.raises(RopewalkError, match=reason):
            await mover.move("there")
        await nodes.members[0].start()

    in_a_cluster(story, SESSION)


def test_what_has_not_left_is_not_taken_back() -> None:
    async def story(nodes: Nodes) -> None:
        mover = await with_etcd_beside(nodes)
        await nodes.members[0].stop()
        with pytest.raises(InvalidRequest, match="nothing to take back"):
            await mover.move("etcd", back=True)
        await nodes.members[0].start()

    in_a_cluster(story, SESSION)
