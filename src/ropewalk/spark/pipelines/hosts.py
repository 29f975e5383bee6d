"""Whether every host that Spark works on has what a pipeline needs, found out by one small job before the large one.

What a reader could get wrong
    What the job sends may use nothing of ours: it is to run where ropewalk is missing, and is sent as code and not as a name to import.
    It is a plain function of rows, not one on Arrow, because Arrow may be what is missing.
    Spark does not say which hosts it has, least of all over Connect; hosts that got no task are asked in a later round, or not at all.
"""

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ropewalk import __version__
from ropewalk.spark.job_names import is_remote
from ropewalk.spark.refusals import WrongUse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROUNDS: Final = 3
_TASKS: Final = 32
"""Where Spark does not say how many cores it has."""
_NEEDED: Final = ("pyarrow", "numpy", "numba", "deltalake")


class Host(Struct, frozen=True, order=True):
    """What a worker said about where it is."""

    name: str
    python: str
    """Which interpreter: the first thing to look at when something is missing."""
    version: str | None
    """Of ropewalk; None where there is none."""
    missing: tuple[str, ...] = ()


def check_hosts(session: "SparkSession") -> list[Host]:
    """Those that were asked. Refuses, with their names, if one of them lacks something."""
    found: set[Host] = set()
    for _ in range(_ROUNDS):
        found |= set(_asked(session))
        if len({each.name for each in found}) >= _host_count(session):
            break
    refuse_unfit(found, __version__)
    return sorted(found)


def refuse_unfit(hosts: Iterable[Host], version: str) -> None:
    unfit = sorted(
        {f"{each.name} ({each.python}) {_lack(each, version)}" for each in hosts if _lack(each, version)}
    )
    if unfit:
        raise WrongUse(
            f"not every Spark host can run this: {'; '.join(unfit)}."
            f" Install ropewalk[spark]=={version} there, or name another Python with PYSPARK_PYTHON"
        )


def _lack(host: Host, version: str) -> str:
    if host.version is None:
        return "has no ropewalk"
    if host.version != version:
        return f"has ropewalk {host.version}, this is {version}"
    return f"lacks {', '.join(host.missing)}" if host.missing else ""


def _asked(session: "SparkSession") -> list[Host]:
    from pyspark.sql.functions import udf

    ask = udf(_question(_NEEDED), "string", useArrow=False)
    count = _task_count(session)
    answers = session.range(0, count, 1, count).select(ask("id").alias("answer")).collect()
    return [
        Host(told["host"], told["python"], told["version"], tuple(told["missing"]))
        for told in (json.loads(row.answer) for row in answers)
    ]


def _question(needed: tuple[str, ...]) -> Callable[[int], str]:
    def answer(_row: int) -> str:
        import json
        import socket
        import sys
        from importlib.metadata import PackageNotFoundError, version
        from importlib.util import find_spec

        try:
            installed = version("ropewalk")
        except PackageNotFoundError:
            installed = None
        return json.dumps(
            {
                "host": socket.gethostname(),
                "python": sys.executable,
                "version": installed,
                "missing": [name for name in needed if find_spec(name) is None],
            }
        )

    # Functions of the main module are sent whole; those of others as a name that the worker would have to import.
    answer.__module__ = "__main__"
    return answer


def _task_count(session: "SparkSession") -> int:
    if is_remote(session):
        return _TASKS
    return max(2 * session.sparkContext.defaultParallelism, 4)


def _host_count(session: "SparkSession") -> int:
    """As far as Spark says; the driver is counted by Spark among its executors and does not work."""
    if is_remote(session):
        return 1
    known = session.sparkContext._jsc.sc().getExecutorMemoryStatus().keys().toList()
    names = {str(known.apply(index)).rpartition(":")[0] for index in range(known.size())}
    return max(1, len(names) - 1)
