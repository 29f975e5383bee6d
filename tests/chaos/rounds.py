"""Rounds of destruction: load, an end without warning, a restart, a check of everything.

kill   kill -9, the file system lives on
fuse   power cut on a FUSE file system that forgets what was not synced; every other cut is torn
ext4   power cut on an ext4 image: what has not reached its device is gone
"""

import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.chaos.load import PARTITION_COUNT, TOPIC, Load
from tests.chaos.mounts import CuttableMount, Ext4Mount, LossyMount
from tests.chaos.node import NodeProcess

KINDS = ("stop", "kill", "fuse", "ext4")


class Totals(NamedTuple):
    """What a run amounted to. Lists of words are complaints; a good run has none."""

    kind: str
    rounds: int
    acknowledged: int
    consumed: int
    topics: int
    restart_median_s: float
    restart_max_s: float
    forgotten_bytes: int | None
    """What power cuts took from a file system that can tell."""
    violations: list[str]

    def __str__(self) -> str:
        return (
            f"{self.kind}: {self.rounds} rounds, {self.acknowledged} records acknowledged, "
            f"{self.consumed} consumed, {self.topics} topics made, restart {self.restart_median_s:.2f} s "
            f"(longest {self.restart_max_s:.2f} s), "
            + (f"{self.forgotten_bytes} bytes forgotten, " if self.forgotten_bytes is not None else "")
            + f"{len(self.violations)} violations"
        )


def run(
    kind: str,
    rounds: int,
    *,
    seed: int = 0,
    settings: tuple[str, ...] = (),
    records_per_round: int = 1_000,
    progress: Callable[[str], None] = lambda _: None,
) -> Totals:
    """`settings` are given to the node as they are, `NAME=VALUE`. Stops at the first round with a violation."""
    random = Random(seed)
    with _scratch() as scratch, _data(kind, scratch, seed) as (data, mount):
        node = NodeProcess(data, scratch, settings)
        node.start()
        load = Load(node.address)
        load.make_topic(TOPIC, PARTITION_COUNT)
        completed = 0
        exit_codes: list[int] = []
        try:
            with load.running():
                while completed < rounds and not complaints(load):
                    # Topics first, then records in flight: far more are sent than are waited for.
                    load.make_topic(f"round-{completed}")
                    if completed % 2:
                        load.delete_topic(f"round-{completed - 1}")
                    load.grant(2 * records_per_round)
                    load.wait_for(random.randrange(1, records_per_round), within_s=60)
                    exit_codes.append(_end(kind, node, mount))
                    node.start()
                    load.check()
                    completed += 1
                    progress(f"round {completed}: {load.acknowledged_count} acknowledged")
            load.check()
        except Exception as error:
            error.add_note(f"the node's last words: {node.last_words()}")
            raise
        finally:
            exit_codes.append(node.stop())
        violations = complaints(load)
        violations += [f"the node ended with {code} when asked to stop" for code in exit_codes if code != 0]
        violations += node.held_loops()
        restarts = node.start_times_s[1:] or node.start_times_s
        return Totals(
            kind,
            completed,
            load.acknowledged_count,
            load.consumed_count,
            len(load.topics_made) + len(load.topics_deleted),
            statistics.median(restarts),
            max(restarts),
            mount.forgotten_bytes if isinstance(mount, LossyMount) else None,
            violations,
        )


def complaints(load: Load) -> list[str]:
    broken = [f"{claim}: {detail}" for tally in load.tallies for claim, detail in tally.violations]
    return [*broken, *load.failures]


def _end(kind: str, node: NodeProcess, mount: CuttableMount | None) -> int:
    """Returns the exit code of a node that was asked to stop, 0 for one that was not asked.

    On ext4 the node is frozen before its disk is copied, so that nothing is acknowledged after the moment that counts.
    """
    if kind == "stop":
        return node.stop()
    if isinstance(mount, Ext4Mount):
        node.freeze()
        mount.cut_power_of_frozen(node.kill)
        return 0
    node.kill()
    if mount is not None:
        mount.cut_power()
    return 0


@contextmanager
def _scratch() -> Iterator[Path]:
    """In memory where possible: the images are copied every round, and real disks would only make that slow."""
    in_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="chaos-", dir=in_memory if in_memory.is_dir() else None) as path:
        yield Path(path)


@contextmanager
def _data(kind: str, scratch: Path, seed: int) -> Iterator[tuple[Path, CuttableMount | None]]:
    match kind:
        case "stop" | "kill":
            yield scratch / "data", None
        case "fuse":
            with LossyMount(scratch, seed) as lossy:
                yield lossy.path / "data", lossy
        case "ext4":
            with Ext4Mount(scratch) as ext4:
                yield ext4.path / "data", ext4
        case _:
            raise ValueError(f"{kind!r} is none of {', '.join(KINDS)}")
