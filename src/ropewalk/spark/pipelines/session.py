"""A Spark session for a job: on this machine, on a cluster, or behind a Connect server.

What a reader could get wrong
    Spark tries for a minute to reach a master that is not there and then tells a stack of Java. So whether somebody listens is found out first.
    The Python of the workers is this one where they run on this machine; elsewhere it is what the environment says, or the same path.
    A session asked for by `remote` has no `sparkContext`.
"""

import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from ropewalk.spark.job_names import is_remote
from ropewalk.spark.pipelines.causes import cause_of
from ropewalk.spark.pipelines.definition import Job
from ropewalk.spark.pipelines.java import check_java
from ropewalk.spark.pipelines.nearest import nearest
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.storage import is_object_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL: Final = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?|local-cluster\[.*\]")
_MASTERS: Final = re.compile(r"(spark|k8s|yarn)(://.+)?")
_EXAMPLES: Final = ("local[*]", "local[2]", "spark://HOST:7077", "yarn", "k8s://https://HOST:6443")
_CONNECT_PORT: Final = 15002
_PATIENCE_S: Final = 5.0
_S3A: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_PAGES: Final = "spark.ui.enabled"
_ATTEMPTS: Final = 4
"""At a task on this machine, as Spark has it on clusters. Here it would have one: a worker that is slow to start on a busy machine would end
the job."""
_SPECULATION: Final = "spark.speculation"

SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_PER_CORE: Final = 2
"""Shuffle partitions on one machine. Each costs a task and a state of its own in every batch, and Spark's default of 200 is for
clusters: a batch over four rows takes ten seconds with it, and one with four."""

_QUIET: Final = {
    _PAGES: "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
}
_ON_THIS_MACHINE: Final = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def check_place(job: Job, environment: Mapping[str, str]) -> None:
    """Refuses what cannot work, before anything is started."""
    refuse_speculation(job.conf.get(_SPECULATION, "false"))
    if job.remote is not None and job.conf.get(_PAGES) == "true":
        raise WrongUse("a Connect server serves its own pages: leave --ui out, and look at the server's")
    for host, port in _addresses(job):
        if _listens(host, port):
            break
    else:
        if job.remote is not None:
            raise WrongUse(
                f"nobody answers at {job.remote}: start the Connect server, or leave --remote out to run on this machine"
            )
        if job.master is not None and job.master.startswith("spark://"):
            raise WrongUse(
                f"nobody answers at {job.master}: start the master, or leave --master out to run on this machine"
            )
    if job.remote is None:
        check_java(environment)


def open_session(job: Job) -> "SparkSession":
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(f"ropewalk {job.name}")
    for name, value in settings_of(job).items():
        builder = builder.config(name, value)
    if job.remote is not None:
        builder = builder.remote(job.remote)
    else:
        assert job.master is not None
        if is_local(job) or "PYSPARK_PYTHON" not in os.environ:
            os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = builder.master(with_attempts(job.master))
    try:
        session = builder.getOrCreate()
        speculation = session.conf.get(_SPECULATION, "false")
    except (PySparkException, Py4JError, OSError) as error:
        raise WrongUse(
            f"Spark does not start on {job.remote or job.master}: {cause_of(str(error))}"
        ) from error
    refuse_speculation(speculation or "false")
    return session


def hand_storage(job: Job, session: "SparkSession") -> None:
    """Where Spark itself is to write to an object store, it gets the keys as well. Not as options of Spark, which are on a command line."""
    if job.remote is not None or not is_object_store(job.checkpoint):
        return
    from py4j.protocol import Py4JJavaError

    context = session.sparkContext
    assert context._jvm is not None, "it is not remote"
    try:
        context._jvm.java.lang.Class.forName(_S3A)
    except Py4JJavaError:
        raise WrongUse(
            f"the checkpoint is to be in {job.checkpoint}, and this Spark has no file system for it (hadoop-aws);"
            " leave --checkpoint out to keep it on this machine, or name a directory"
        ) from None
    settings = context._jsc.hadoopConfiguration()
    for name, value in job.storage.for_hadoop().items():
        settings.set(name, value)


def settings_of(job: Job) -> dict[str, str]:
    """What the user says wins. A Connect server has its own, and refuses to be told most of ours."""
    if job.remote is not None:
        return dict(job.conf)
    if not is_local(job):
        return {**_QUIET, **job.conf}
    assert job.master is not None
    partitions = {SHUFFLE_PARTITIONS: str(_PER_CORE * cores_of(job.master))}
    return {**_QUIET, **_ON_THIS_MACHINE, **partitions, **job.conf}


def pages_of(session: "SparkSession") -> str | None:
    """The address of Spark's own pages, where it serves them."""
    return None if is_remote(session) else session.sparkContext.uiWebUrl


def with_attempts(master: str) -> str:
    """The same place, with a task of it tried again, unless the user has said how often."""
    match = _LOCAL.fullmatch(master)
    if match is None or match[3] is not None or master.startswith("local-cluster["):
        return master
    return f"local[{match[2] or 1},{_ATTEMPTS}]"


def cores_of(master: str) -> int:
    """How many tasks run at once on this machine."""
    if master.startswith("local-cluster["):
        workers, cores, _ = master.removeprefix("local-cluster[").split(",", 2)
        return int(workers) * int(cores)
    match = _LOCAL.fullmatch(master)
    assert match is not None
    told = match[2] or "1"
    return len(os.sched_getaffinity(0)) if told == "*" else int(told)


def is_local(job: Job) -> bool:
    return job.master is not None and _LOCAL.fullmatch(job.master) is not None


def refuse_speculation(value: str) -> None:
    if value.lower() == "true":
        raise WrongUse(
            "spark.speculation is on: two attempts at one task would write at the same time. Run the job with --conf spark.speculation=false"
        )


def _addresses(job: Job) -> Iterator[tuple[str, int]]:
    """Where somebody must listen."""
    if job.remote is not None:
        match = re.fullmatch(r"sc://(\[[^\]]+\]|[^:/;]+)(?::(\d+))?(?:/.*)?", job.remote)
        if match is None:
            raise WrongUse(f"{job.remote!r} is no Connect server: write --remote sc://HOST:{_CONNECT_PORT}")
        yield match[1].strip("[]"), int(match[2] or _CONNECT_PORT)
        return
    assert job.master is not None
    if _LOCAL.fullmatch(job.master):
        return
    if _MASTERS.fullmatch(job.master) is None:
        raise WrongUse(f"{job.master!r} is no master{nearest(job.master, _EXAMPLES)}")
    if job.master.startswith("spark:"):
        for each in job.master.removeprefix("spark://").split(","):
            host, _, port = each.rpartition(":")
            if not host or not port.isdecimal():
                raise WrongUse(f"{job.master!r} is no master: write spark://HOST:PORT")
            yield host.strip("[]"), int(port)


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_PATIENCE_S):
            return True
    except OSError:
        return False
