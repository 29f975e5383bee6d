"""Spark's own daemons on the loopback: a standalone cluster and a Connect server, at free ports, ended whatever happens.

What a reader could get wrong
    Each is the leader of a process group of its own, which its executors join: ending the group by its id ends them all.
    A port of 0 is chosen by the daemon and told in its log; nobody else can have taken it meanwhile.
"""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pyspark

from tests.spark.quick_java import LIGHT_JVM

_PROGRAMS: Final = Path(pyspark.__file__).parent / "bin"
_PATIENCE_S: Final = 90.0
DRIVER_MEGABYTES: Final = 512
ENVIRONMENT: Final = {
    "PYSPARK_PYTHON": sys.executable,
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_DAEMON_MEMORY": f"{DRIVER_MEGABYTES}m",  # a Connect server counts as one, and needs as much
    "SPARK_DAEMON_JAVA_OPTS": LIGHT_JVM,
}
SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": f"{DRIVER_MEGABYTES}m",
    "spark.driver.extraJavaOptions": LIGHT_JVM,
    "spark.executor.memory": "500m",
    "spark.executor.extraJavaOptions": LIGHT_JVM,
    "spark.sql.shuffle.partitions": "2",
}


class Daemon:
    def __init__(self, name: str, command: list[str], directory: Path) -> None:
        self._name = name
        self._log = directory / f"{name}.log"
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                cwd=directory,
                env={**os.environ, **ENVIRONMENT},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def told(self, pattern: str) -> str:
        """What the first group of `pattern` is in the log, as soon as it stands there."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            text = self._log.read_text(errors="replace")
            if found := re.search(pattern, text):
                return found[1]
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{self._name} did not start:\n{text[-4000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """With everything below it; its executors would go on otherwise."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, number)
            except ProcessLookupError:
                break
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                continue
        self._process.wait()


def start_cluster(stack: ExitStack, directory: Path, *, worker_count: int = 2) -> str:
    """A master and workers of one core each; the master's address, once all of them have registered."""
    spark_class = str(_PROGRAMS / "spark-class")
    anywhere = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    master = Daemon("master", [spark_class, "org.apache.spark.deploy.master.Master", *anywhere], directory)
    stack.callback(master.stop)
    address = master.told(r"Starting Spark master at (spark://\S+)")
    small = ["--cores", "1", "--memory", "1g", "--work-dir", str(directory / "work")]
    workers: list[Daemon] = []
    for number in range(worker_count):
        command = [spark_class, "org.apache.spark.deploy.worker.Worker", *anywhere, *small, address]
        workers.append(Daemon(f"worker-{number}", command, directory))
        stack.callback(workers[-1].stop)
    for worker in workers:
        worker.told(r"(Successfully registered with master)")
    return address


def start_connect(stack: ExitStack, directory: Path, *, master: str = "local[2]") -> str:
    """A Connect server; what to give as `remote`."""
    settings = {
        **SETTINGS,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
    }
    command = [str(_PROGRAMS / "spark-submit"), "--master", master]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    server = Daemon(
        "connect",
        [*command, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"],
        directory,
    )
    stack.callback(server.stop)
    port = server.told(r"Spark Connect server started at: \S*:(\d+)")
    return f"sc://127.0.0.1:{port}"
