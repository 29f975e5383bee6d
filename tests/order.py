"""Which tests are run in one process, and which of them first, where several processes share the work.

A file is one piece of work, and the longest come first: whatever is long at the end keeps one process busy while the others have
nothing left. How long files took is in `seconds.json`, which `./test --write-seconds` writes; one that is not there is taken for
short. Two things differ from that:

- What shares a session of Spark is dealt to as many processes as have one, and each is one piece of work: starting Spark
  takes longer than most of its tests.
- Tests of some files share nothing that costs anything, and each takes long. These are pieces of work of their own.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

SESSION: Final = "tests/spark/session/"
SESSION_COUNT: Final = 2
"""Each is a Java of its own with a gigabyte, and keeps one core busy."""

SPARK: Final = ("tests/spark/", "tests/chaos/test_chaos_spark.py")

APART: Final = frozenset({"tests/chaos/test_chaos_cluster.py", "tests/chaos/test_chaos_node.py"})
"""Files whose tests share nothing."""

SECONDS: Final[Mapping[str, float]] = json.loads((Path(__file__).parent / "seconds.json").read_text())


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def piece_of(nodeid: str, sessions: Mapping[str, str]) -> str:
    """What a test must be run together with, by name; `sessions` says it of files that share a session of Spark."""
    name = file_of(nodeid)
    return nodeid if name in APART else sessions.get(name, name)


def deal(files: Iterable[str], seconds: Mapping[str, float] = SECONDS) -> dict[str, str]:
    """The session for each file that needs one, such that all sessions take about as long: the longest file goes to who has least."""
    loads = {f"{SESSION}{number}": 0.0 for number in range(SESSION_COUNT)}
    dealt = {}
    for name in sorted(set(files), key=lambda name: (-seconds.get(name, 0), name)):
        if name.startswith(SESSION):
            least = min(loads, key=lambda session: loads[session])
            dealt[name] = least
            loads[least] += seconds.get(name, 0) + 1
    return dealt


def turn_of(
    nodeid: str, sessions: Mapping[str, str], seconds: Mapping[str, float] = SECONDS
) -> tuple[int, float, str]:
    """What is sorted by: sessions of Spark, then the rest of Spark, then all others; within these by time."""
    name = file_of(nodeid)
    kind = 0 if name in sessions else 1 if name.startswith(SPARK) else 2
    return kind, -seconds.get(name, 0), sessions.get(name, "")
