"""The truth table: every fault is told by the command line, /cluster/healthz, the node's own pages, a metric, an alert of Prometheus's and
the node's own alert, and by none of them when it is healed.

Each fault is brought about on real processes. Six watchers look at once until each has been told; then the fault is healed, and they
look until each is quiet. How long both took is the table.
"""

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer

from tests.chaos.truth_scene import DISK_BYTES, KEYS, Scene, b64

TOLD_WITHIN_S = 15.0
QUIET_WITHIN_S = 120.0
LOOK_EVERY_S = 0.25
WATCHERS: Final = ("command line", "/cluster/healthz", "own page", "metric", "alert", "built-in alert")


class Fault(NamedTuple):
    name: str
    bring_about: Callable[[Scene], Callable[[], None]]
    """Answers how it is healed."""
    words: str
    """In what `cluster health` and /cluster/healthz say."""
    asked: int
    """The node that is asked for /cluster/healthz."""
    page: tuple[int, str, int, str]
    """A node, one of its own pages, the status it has then (0: no answer), and words in it."""
    metric: tuple[str, Callable[[float], bool]]
    alert: str
    needs_etcd: bool = False


class Row(NamedTuple):
    fault: str
    told_s: dict[str, float | None]
    """By watcher; None: never."""
    quiet_s: dict[str, float | None]

    @property
    def holds(self) -> bool:
        return all(seconds is not None for seconds in (*self.told_s.values(), *self.quiet_s.values()))


def examine(scene: Scene, fault: Fault, *, told_within_s: float = TOLD_WITHIN_S) -> Row:
    """The scene must be well before, and is after."""
    before = _wait(scene, fault, _quiet, QUIET_WITHIN_S)
    if None in before.values():
        raise RuntimeError(f"before {fault.name}: not all was well: {before} {scene.command_line()}")
    heal = fault.bring_about(scene)
    try:
        told = _wait(scene, fault, _told, told_within_s)
    finally:
        heal()
    return Row(fault.name, told, _wait(scene, fault, _quiet, QUIET_WITHIN_S))


Judge = Callable[[Scene, Fault, str], bool]


def _wait(scene: Scene, fault: Fault, judge: Judge, within_s: float) -> dict[str, float | None]:
    began = time.monotonic()

    def watch(watcher: str) -> float | None:
        while True:
            if judge(scene, fault, watcher):
                return round(time.monotonic() - began, 1)
            if time.monotonic() - began > within_s:
                return None
            time.sleep(LOOK_EVERY_S)

    with ThreadPoolExecutor(len(WATCHERS)) as pool:
        return dict(zip(WATCHERS, pool.map(watch, WATCHERS), strict=True))


def _told(scene: Scene, fault: Fault, watcher: str) -> bool:
    match watcher:
        case "command line":
            code, text = scene.command_line()
            return code == 1 and fault.words in text
        case "/cluster/healthz":
            status, text = scene.page(fault.asked, "/cluster/healthz")
            return status == 503 and fault.words in text
        case "own page":
            number, path, expected, words = fault.page
            status, text = scene.page(number, path)
            return status == expected and words in text
        case "metric":
            name, is_told = fault.metric
            value = scene.metric(name)
            return value is not None and is_told(value)
        case "built-in alert":
            return fault.alert in scene.built_in_alerts()
        case _:
            return fault.alert in scene.alerts()


def _quiet(scene: Scene, fault: Fault, watcher: str) -> bool:
    match watcher:
        case "command line":
            return scene.command_line()[0] == 0
        case "/cluster/healthz":
            return scene.page(fault.asked, "/cluster/healthz") == (200, "ok\n")
        case "own page":
            return scene.page(fault.page[0], fault.page[1]) == (200, "ok\n")
        case "metric":
            value = scene.metric(fault.metric[0])
            return value is not None and not fault.metric[1](value)
        case "built-in alert":
            return fault.alert not in scene.built_in_alerts()
        case _:
            return fault.alert not in scene.alerts()


def _above(limit: float) -> Callable[[float], bool]:
    return lambda value: value > limit


# How each fault is brought about; the answer heals it.


def _kill(scene: Scene, number: int) -> Callable[[], None]:
    scene.nodes[number].kill()
    return scene.nodes[number].start


def _kill_the_only_leader(scene: Scene) -> Callable[[], None]:
    scene.create("single", [[2]])
    start = _kill(scene, 2)

    def heal() -> None:
        start()
        scene.delete("single")

    return heal


def _go_below_minimum(scene: Scene) -> Callable[[], None]:
    scene.create("strict", [[0, 1, 2]], {"min.insync.replicas": "3"})
    start = _kill(scene, 2)

    def heal() -> None:
        start()
        scene.delete("strict")

    return heal


def _freeze_etcd(scene: Scene) -> Callable[[], None]:
    scene.signal_etcd(signal.SIGSTOP)
    return lambda: scene.signal_etcd(signal.SIGCONT)


def _fill_etcd(scene: Scene) -> Callable[[], None]:
    scene.etcd_call("maintenance/alarm", action="ACTIVATE", memberID=scene.etcd_member(), alarm="NOSPACE")
    # A full home is noticed by whoever writes to it.
    scene.try_to_create("full")
    return lambda: scene.disarm_etcd()


def _write_unreadable_record(scene: Scene) -> Callable[[], None]:
    end_offset = int(scene.metric("ropewalk_metadata_offset") or 0)
    key = b64(f"{KEYS}log/{end_offset:020d}")
    scene.etcd_call("kv/put", key=key, value=b64("no record"))
    return lambda: scene.etcd_call("kv/deleterange", key=key)


def _stick_the_feed(scene: Scene) -> Callable[[], None]:
    scene.control(0, feed="stuck")
    scene.create("heard", [[0]])  # those who wait for news get these yet
    scene.create("unheard", [[0]])

    def heal() -> None:
        scene.control(0)
        scene.delete("heard")
        scene.delete("unheard")

    return heal


def _put_the_clock_wrong(scene: Scene) -> Callable[[], None]:
    scene.control(2, clock_s=90)
    return lambda: scene.control(2)


def _fill_the_disk(scene: Scene) -> Callable[[], None]:
    ballast = scene.nodes[2].data.parent / "ballast"
    with ballast.open("wb") as file:
        file.write(bytes(DISK_BYTES - (32 << 20)))
    return ballast.unlink


def _damage_a_range(scene: Scene) -> Callable[[], None]:
    scene.create("rotten", [[1]])
    scene.produce("rotten", 1_000)
    (segment,) = scene.nodes[1].data.rglob("*rotten*/*.log")
    scene.nodes[1].stop()  # in order: after a crash what fails its checksum at the end is cut
    with segment.open("r+b") as file:
        file.seek(200)
        file.write(b"\xff" * 64)
    scene.nodes[1].start()
    _read("rotten", scene)
    return lambda: scene.delete("rotten")


def _read(topic: str, scene: Scene) -> None:
    """As far as it goes: what is damaged is noticed by whoever reads it."""
    consumer = Consumer(
        {
            "bootstrap.servers": scene.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    try:
        consumer.poll(5)
    except KafkaException:
        return
    finally:
        consumer.close()


def _let_a_transaction_hang(scene: Scene) -> Callable[[], None]:
    scene.create("undecided", [[0]])
    producer = Producer({"bootstrap.servers": scene.bootstrap, "transactional.id": "idle", "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("undecided", b"?")
    producer.flush(30)

    def heal() -> None:
        producer.abort_transaction(30)
        scene.delete("undecided")

    return heal


FAULTS: Final = (
    Fault(
        "controller killed",
        lambda scene: _kill(scene, 0),
        "no controller",
        1,
        (1, "/readyz", 200, "controller degraded"),
        ("ropewalk_controller_heard_seconds", _above(6)),
        "RopewalkControllerUnheard",
    ),
    Fault(
        "node killed",
        lambda scene: _kill(scene, 2),
        "node is fenced",
        0,
        (2, "/readyz", 0, ""),
        ('ropewalk_nodes{state="fenced"}', _above(0)),
        "RopewalkNodeFenced",
    ),
    Fault(
        "leader of a topic without copies lost",
        _kill_the_only_leader,
        "nobody leads",
        0,
        (2, "/readyz", 0, ""),
        ("ropewalk_partitions_without_leader", _above(0)),
        "RopewalkPartitionWithoutLeader",
    ),
    Fault(
        "below minimum",
        _go_below_minimum,
        "below its minimum",
        0,
        (2, "/readyz", 0, ""),
        ("ropewalk_partitions_below_minimum", _above(0)),
        "RopewalkPartitionBelowMinimum",
    ),
    Fault(
        "clock off",
        _put_the_clock_wrong,
        "clock",
        0,
        (2, "/readyz", 200, "clock degraded"),
        ("ropewalk_nodes_unwell", _above(0)),
        "RopewalkClock",
    ),
    Fault(
        "feed stuck",
        _stick_the_feed,
        "node is behind",
        0,
        (2, "/readyz", 200, "following degraded"),
        ("ropewalk_nodes_behind", _above(0)),
        "RopewalkNodeBehind",
    ),
    Fault(
        "damaged range",
        _damage_a_range,
        "damaged",
        0,
        (1, "/healthz", 503, "records failed"),
        ("ropewalk_nodes_unwell", _above(0)),
        "RopewalkPartitionDamaged",
    ),
    Fault(
        "hanging transaction",
        _let_a_transaction_hang,
        "hanging transactions",
        0,
        (0, "/healthz", 503, "hanging transactions failed"),
        ("ropewalk_nodes_unwell", _above(0)),
        "RopewalkTransactionHanging",
    ),
    Fault(
        "disk full",
        _fill_the_disk,
        "disk:",
        0,
        (2, "/healthz", 503, "disk failed"),
        ("ropewalk_nodes_unwell", _above(0)),
        "RopewalkNodeUnwell",
    ),
    Fault(
        "etcd frozen",
        _freeze_etcd,
        "nothing can change",
        1,
        (0, "/readyz", 200, "metadata degraded"),
        ("ropewalk_controller_heard_seconds", _above(6)),
        "RopewalkControllerUnheard",
        needs_etcd=True,
    ),
    Fault(
        "unreadable metadata record",
        _write_unreadable_record,
        "nothing can change",
        1,
        (0, "/readyz", 200, "metadata degraded"),
        ("ropewalk_controller_heard_seconds", _above(6)),
        "RopewalkControllerUnheard",
        needs_etcd=True,
    ),
    Fault(
        "etcd full",
        _fill_etcd,
        "nothing can change",
        1,
        (0, "/readyz", 200, "metadata degraded"),
        ("ropewalk_nodes_unwell", _above(0)),
        "RopewalkNodeUnwell",
        needs_etcd=True,
    ),
)


def table(
    place: Path, names: list[str], *, told_within_s: float = TOLD_WITHIN_S, progress: Callable[[str], None]
) -> list[Row]:
    """The rows of the faults that are named, on two clusters: one with its metadata on node 0, one with etcd."""
    rows: list[Row] = []
    for needs_etcd in (False, True):
        faults = [fault for fault in FAULTS if fault.name in names and fault.needs_etcd is needs_etcd]
        if not faults:
            continue
        with _scene(place / ("etcd" if needs_etcd else "local"), needs_etcd) as scene:
            for fault in faults:
                rows.append(examine(scene, fault, told_within_s=told_within_s))
                progress(written(rows[-1]))
    return rows


@contextmanager
def _scene(place: Path, with_etcd: bool) -> Iterator[Scene]:
    place.mkdir(parents=True)
    with Scene(place, with_etcd=with_etcd) as scene:
        yield scene


def written(row: Row) -> str:
    def seconds(found: dict[str, float | None]) -> str:
        return "  ".join(f"{'never' if found[each] is None else found[each]!s:>5}" for each in WATCHERS)

    return f"{row.fault:38} told {seconds(row.told_s)}   quiet {seconds(row.quiet_s)}"
