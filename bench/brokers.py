"""Start and stop the brokers that are compared, each on a free port and an empty directory of its own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
CACHE: Final = ROOT / ".cache" / "bench"

KAFKA_VERSION: Final = "4.3.1"
_KAFKA_POM: Final = f"""<project><modelVersion>4.0.0</modelVersion>
<groupId>bench</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA_VERSION}</version></dependency>
</dependencies></project>
"""
# What kafka-server-start.sh gives the JVM.
_KAFKA_JVM: Final = (
    "-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true",
)  # fmt: skip
_KAFKA_CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qk"

NO_SETTINGS: Final[Mapping[str, str]] = {}

_START_SECONDS_MAX: Final = 60.0
_STOP_SECONDS_MAX: Final = 20.0


class Unavailable(Exception):
    """A broker cannot be started on this machine; the text says what is missing."""


@dataclass
class Broker:
    """A running broker. `started_at` is `time.perf_counter()` just before its process was made."""

    name: str
    host: str
    port: int
    process: "subprocess.Popen[bytes]"
    directory: Path
    started_at: float
    topic_settings: dict[str, str] = field(default_factory=dict)
    """Given to every topic a load creates on it."""

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self) -> None:
        """End it, and remove what it wrote."""
        self.halt()
        shutil.rmtree(self.directory, ignore_errors=True)

    def halt(self) -> None:
        """End it in order; its directory stays."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it as kill -9 does; its directory stays."""
        self.process.kill()
        self.process.wait()


def start_ropewalk(
    flush: str, directory: Path | None = None, settings: Mapping[str, str] = NO_SETTINGS
) -> Broker:
    """One embedded node with `flush=os` or `flush=group`; returns when it says that it is ready.

    `directory` is that of a broker that was halted or killed; without one an empty directory is made.
    """
    program = ROOT / ".venv" / "bin" / "ropewalk"
    if not program.exists():
        raise Unavailable(f"{program} is not installed; ./run makes the environment")
    if directory is None:
        directory = _empty_directory(f"ropewalk-{flush}")
    ready_file = directory / "ready.json"
    ready_file.unlink(missing_ok=True)
    command: list[str | Path] = [
        program, "up", "--data", directory / "data", "--kafka", "127.0.0.1:0",
        "--ready-file", ready_file, "--set", f"flush={flush}",
    ]  # fmt: skip
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    started_at = time.perf_counter()
    process = _spawn(command, directory)
    _wait_until(process, directory, lambda: _is_json(ready_file))
    host, _, port = json.loads(ready_file.read_text())["kafka"][0].rpartition(":")
    return Broker(f"Ropewalk flush={flush}", host, int(port), process, directory, started_at)


def start_kafka(
    topic_settings: dict[str, str] | None = None, settings: Mapping[str, str] = NO_SETTINGS
) -> Broker:
    """One KRaft node with Kafka's defaults; returns when its port is open. Formatting is not counted as start."""
    libraries = fetch_kafka()
    directory = _empty_directory("kafka")
    port, controller_port = _free_ports(2)
    properties = directory / "server.properties"
    properties.write_text(
        f"""process.roles=broker,controller
node.id=0
controller.quorum.voters=0@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={directory / "data"}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""
        + "".join(f"{name}={value}\n" for name, value in settings.items())
    )
    java = ("java", "-cp", f"{libraries}/*")
    subprocess.run(
        [*java, "kafka.tools.StorageTool", "format", "-t", _KAFKA_CLUSTER_ID, "-c", properties],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    started_at = time.perf_counter()
    process = _spawn(["java", *_KAFKA_JVM, *java[1:], "kafka.Kafka", properties], directory)
    _wait_until(process, directory, lambda: _is_open(port))
    name = f"Kafka {KAFKA_VERSION}" + "".join(
        f" {key}={value}" for key, value in (topic_settings or {}).items()
    )
    return Broker(name, "127.0.0.1", port, process, directory, started_at, topic_settings or {})


def fetch_kafka() -> Path:
    """The directory with Kafka's jars, fetched with Maven the first time."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise Unavailable(f"Apache Kafka needs {program}, which is not on the PATH")
    home = CACHE / f"kafka-{KAFKA_VERSION}"
    libraries = home / "libs"
    fetched = home / "fetched"
    if not fetched.exists():
        home.mkdir(parents=True, exist_ok=True)
        pom = home / "pom.xml"
        pom.write_text(_KAFKA_POM)
        subprocess.run(
            ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", "-DincludeScope=runtime",
             f"-DoutputDirectory={libraries}"],
            check=True,
        )  # fmt: skip
        fetched.touch()
    return libraries


def _empty_directory(name: str) -> Path:
    directory = CACHE / "run" / f"{name}-{os.getpid()}-{time.monotonic_ns()}"
    directory.mkdir(parents=True)
    return directory


def _spawn(command: Sequence[str | Path], directory: Path) -> "subprocess.Popen[bytes]":
    with (directory / "output.log").open("ab") as output:
        return subprocess.Popen(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )


def _wait_until(process: "subprocess.Popen[bytes]", directory: Path, is_ready: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + _START_SECONDS_MAX
    while not is_ready():
        if process.poll() is not None or time.perf_counter() > deadline:
            process.kill()
            process.wait()
            raise Unavailable(f"it did not start:\n{(directory / 'output.log').read_text()[-2000:]}")
        time.sleep(0.002)


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    return True


def _is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _free_ports(count: int) -> list[int]:
    """Ports below the ephemeral range: a client polling one in it could be connected to itself."""
    found: list[int] = []
    for port in range(21_000 + os.getpid() % 5_000, 32_000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise Unavailable("no free port between 21000 and 32000")
