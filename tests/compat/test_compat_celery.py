"""Celery with kombu's SQS transport against a node as it is."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ropewalk import Queue
from ropewalk.testing import Cluster

pytestmark = pytest.mark.compat

WITHIN_S = 60

TASKS = """
import os

from celery import Celery

app = Celery("ropes", broker=os.environ["BROKER"])
app.conf.update(
    broker_transport_options={"region": "us-east-1", "is_secure": False, "wait_time_seconds": 5, "visibility_timeout": 30},
    task_default_queue="ropes",
    task_acks_late=True,
    task_acks_on_failure_or_timeout=False,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
)


@app.task
def splice(number):
    print(f"spliced {number}", flush=True)


@app.task(bind=True, max_retries=3)
def again(self, number):
    if self.request.retries < 2:
        raise self.retry(countdown=0)
    print(f"again {self.request.retries}", flush=True)


@app.task
def die(number):
    print(f"dying {number}", flush=True)
    if not os.path.exists("died"):
        open("died", "w").close()
        os._exit(1)
    print(f"lived {number}", flush=True)
"""


class Workshop:
    """A place with tasks, and what a program there is told of the node."""

    def __init__(self, directory: Path, cluster: Cluster) -> None:
        self.directory = directory
        self.cluster = cluster
        (directory / "ropes.py").write_text(TASKS)
        address = cluster.sqs.removeprefix("http://")
        self.environment = {**os.environ, "BROKER": f"sqs://any:any@{address}", "PYTHONUNBUFFERED": "1"}

    def call(self, program: str) -> None:
        subprocess.run(
            [sys.executable, "-c", f"import ropes\n{program}"],
            cwd=self.directory,
            env=self.environment,
            check=True,
            timeout=WITHIN_S,
        )

    @contextmanager
    def worker(self) -> "Iterator[subprocess.Popen[str]]":
        process = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "ropes", "worker", "--pool", "solo", "-l", "warning"],
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield process
        finally:
            process.terminate()  # what is done is deleted, and then it ends
            try:
                process.communicate(timeout=WITHIN_S)
            finally:
                process.kill()


def said(worker: "subprocess.Popen[str]", count: int) -> list[str]:
    """The next so many words of tasks, sorted; fewer where the worker ends."""
    assert worker.stdout is not None
    lines: list[str] = []
    for line in worker.stdout:
        text = line.partition("] ")[2]  # what tasks print, Celery logs
        if text.startswith(("spliced", "again", "dying", "lived")):
            lines.append(text.strip())
        if len(lines) == count:
            break
    return sorted(lines)


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    with Cluster() as cluster:
        yield Workshop(tmp_path, cluster)


def test_a_celery_worker_does_each_task_once_and_deletes_it(workshop: Workshop) -> None:
    workshop.call("for number in range(20): ropes.splice.delay(number)")
    with workshop.worker() as worker:
        assert said(worker, 20) == sorted(f"spliced {number}" for number in range(20))
        workshop.call("ropes.again.delay(1)")
        assert said(worker, 1) == ["again 2"]
        workshop.call("ropes.splice.apply_async((7,), countdown=1)")
        assert said(worker, 1) == ["spliced 7"]
    workshop.cluster.advance(minutes=1)
    with Queue("ropes", endpoint=workshop.cluster.sqs) as queue:
        assert queue.receive(wait_s=0) == []


def test_a_task_whose_celery_worker_dies_is_done_by_the_next(workshop: Workshop) -> None:
    workshop.call("ropes.die.delay(1)")
    with workshop.worker() as worker:
        assert said(worker, 2) == ["dying 1"]
    workshop.cluster.advance(minutes=1)
    with workshop.worker() as worker:
        assert said(worker, 2) == ["dying 1", "lived 1"]
