"""One partition on a simulated disk, with its group commit run by hand."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ropewalk.base.ids import LeaderEpoch, NodeId, TopicId, TopicPartition
from ropewalk.base.limits import OPEN_FILES_MAX
from ropewalk.broker.partitions.acknowledgements import Acks, Ticket
from ropewalk.broker.partitions.group_commit import GroupCommit
from ropewalk.broker.partitions.partition import Partition
from ropewalk.log.directory import DataDirectory
from ropewalk.log.log import Log
from ropewalk.log.settings import LogSettings
from ropewalk.log.storage import Storage
from ropewalk.records.batch import iterate
from ropewalk.records.record import Record, build, decode_records
from ropewalk.records.validate import Rules
from ropewalk.sim.machines.platters import Platters
from ropewalk.sim.machines.world import EPOCH_MS, NodePorts, World
from tests.broker.reading import read

T = TypeVar("T")
NAME = TopicPartition("t", 0)
TOPIC_ID = TopicId(b"t" * 16)


class Bench:
    """A partition on a simulated disk, with its group commit run by hand."""

    def __init__(self, ports: NodePorts, log: Log, *, durable_first: bool) -> None:
        self.ports = ports
        self.commits = GroupCommit(ports.disk, ports.pool, ports.clock)
        self.partition = Partition(
            NAME,
            TOPIC_ID,
            log,
            leader_epoch=LeaderEpoch(0),
            rules=Rules(bytes_max=1 << 20),
            durable_first=durable_first,
            in_memory=False,
            commits=self.commits,
            clock=ports.clock,
        )

    platters: Platters

    def append(self, *values: str, timeout_ms: int = 1000, acks: Acks = Acks.ALL) -> Ticket:
        batch = build([Record(timestamp=EPOCH_MS, value=value.encode()) for value in values])
        return self.partition.append(self.partition.prepare(memoryview(batch)), acks, timeout_ms)

    async def read(self, offset: int, *, wait_ms: int = 0, bytes_min: int = 1) -> list[str]:
        view = await read(self.partition, offset, self.ports.pool, wait_ms=wait_ms, bytes_min=bytes_min)
        return [
            (record.value or b"").decode()
            for start, header in iterate(view)
            for record in decode_records(view[start : start + header.size_bytes])
        ]


def open_log(ports: NodePorts, files_max: int = OPEN_FILES_MAX) -> Log:
    storage = Storage(ports.disk, files_max=files_max)
    directory = DataDirectory.open(storage, "/data", node_id=NodeId(0), rng=ports.rng)
    directory.create_partition(NAME, TOPIC_ID)
    settings = LogSettings(segment_bytes=2000)
    return directory.open_log(NAME, TOPIC_ID, settings, now_ms=ports.clock.now_ms())


def at_the_bench(
    story: Callable[[Bench], Awaitable[T]],
    *,
    durable_first: bool = True,
    kernel_syncs: bool = False,
    files_max: int = OPEN_FILES_MAX,
) -> T:
    async def main(world: World) -> T:
        machine = world.machine("node")

        async def life(ports: NodePorts) -> T:
            log = await ports.pool.run(open_log, ports, files_max)
            bench = Bench(ports, log, durable_first=durable_first)
            bench.platters = machine.platters
            return await story(bench)

        return await machine.start(life)

    with World(0, kernel_syncs=kernel_syncs) as world:
        return world.run(main(world), limit_s=100)
