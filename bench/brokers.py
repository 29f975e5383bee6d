"""Start and stop the brokers that are compared, each on a free port and an empty directory of its own.

A broker may be a cluster of several nodes: then its process is the one above them all, and `host` and `port` are the first node's.
"""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.processes import descendants

ROOT: Final = Path(__file__).resolve().parent.parent
CACHE: Final = ROOT / ".cache" / "bench"

KAFKA_VERSION: Final = "4.3.1"
_KAFKA_POM: Final = f"""<project><modelVersion>4.0.0</modelVersion>
<groupId>bench</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA_VERSION}</version></dependency>
</dependencies></project>
"""
ELASTICMQ_VERSION: Final = "1.7.1"
_ELASTICMQ_POM: Final = f"""<project><modelVersion>4.0.0</modelVersion>
<groupId>bench</groupId><artifactId>elasticmq</artifactId><version>1</version><packaging>pom</packaging><dependencies>
<dependency><groupId>org.elasticmq</groupId><artifactId>elasticmq-server_3</artifactId><version>{ELASTICMQ_VERSION}</version></dependency>
</dependencies></project>
"""
_QUIET_LOGBACK: Final = """<configuration><appender name="out" class="ch.qos.logback.core.ConsoleAppender">
<encoder><pattern>%d %p %m%n</pattern></encoder></appender><root level="WARN"><appender-ref ref="out"/></root></configuration>
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
    node_count: int = 1
    """Every topic has a replica on each."""

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
    flush: str,
    directory: Path | None = None,
    settings: Mapping[str, str] = NO_SETTINGS,
    *,
    node_count: int = 1,
    etcd: bool = False,
    source: Path | None = None,
) -> Broker:
    """One embedded node, or several, with `flush=os` or `flush=group`; returns when it says that it is ready.

    `directory` is that of a broker that was halted or killed; without one an empty directory is made. With `etcd` several
    nodes keep their metadata in three members of it, and a node that is killed is started again. `source` is that of another
    revision (`source_of`), in the environment of this one.
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
    if node_count > 1:
        command += ["--nodes", str(node_count), "--peer", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    if etcd:
        command += ["--etcd", "auto", "--restart"]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    started_at = time.perf_counter()
    process = _spawn(command, directory, source)
    _wait_until(process, directory, lambda: _is_json(ready_file))
    host, _, port = json.loads(ready_file.read_text())["kafka"][0].rpartition(":")
    return Broker(
        f"Ropewalk flush={flush}{f' of {source.name}' if source else ''}",
        host,
        int(port),
        process,
        directory,
        started_at,
        node_count=node_count,
    )


def start_kafka(
    topic_settings: dict[str, str] | None = None,
    settings: Mapping[str, str] = NO_SETTINGS,
    *,
    node_count: int = 1,
) -> Broker:
    """KRaft nodes with Kafka's defaults; returns when their ports are open. Formatting is not counted as start."""
    libraries = fetch_kafka()
    directory = _empty_directory("kafka")
    ports = _free_ports(2 * node_count)
    kafka_ports, controller_ports = ports[:node_count], ports[node_count:]
    java = ("java", "-cp", f"{libraries}/*")
    commands: list[list[str | Path]] = []
    for node_id in range(node_count):
        properties = directory / f"server-{node_id}.properties"
        properties.write_text(
            _kafka_properties(node_id, kafka_ports, controller_ports, directory / f"data-{node_id}")
            + "".join(f"{name}={value}\n" for name, value in settings.items())
        )
        subprocess.run(
            [*java, "kafka.tools.StorageTool", "format", "-t", _KAFKA_CLUSTER_ID, "-c", properties],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        commands.append(["java", *_KAFKA_JVM, *java[1:], "kafka.Kafka", properties])
    started_at = time.perf_counter()
    process = _spawn(commands[0] if node_count == 1 else _together(commands), directory)
    _wait_until(process, directory, lambda: all(map(_is_open, kafka_ports)))
    name = f"Kafka {KAFKA_VERSION}" + "".join(
        f" {key}={value}" for key, value in (topic_settings or {}).items()
    )
    return Broker(
        name, "127.0.0.1", kafka_ports[0], process, directory, started_at, topic_settings or {}, node_count
    )


def _kafka_properties(
    node_id: int, kafka_ports: Sequence[int], controller_ports: Sequence[int], data: Path
) -> str:
    voters = ",".join(f"{voter}@127.0.0.1:{port}" for voter, port in enumerate(controller_ports))
    listen = f"127.0.0.1:{kafka_ports[node_id]}"
    factor = len(kafka_ports)
    return f"""process.roles=broker,controller
node.id={node_id}
controller.quorum.voters={voters}
listeners=PLAINTEXT://{listen},CONTROLLER://127.0.0.1:{controller_ports[node_id]}
advertised.listeners=PLAINTEXT://{listen}
controller.listener.names=CONTROLLER
log.dirs={data}
default.replication.factor={factor}
min.insync.replicas={min(2, factor)}
offsets.topic.replication.factor={factor}
transaction.state.log.replication.factor={factor}
transaction.state.log.min.isr=1
"""


def _together(commands: Sequence[Sequence[str | Path]]) -> list[str]:
    """One process above all of them, which ends them when it is told to end."""
    lines = ["trap 'kill $(jobs -p); wait' TERM"]
    lines += [" ".join(shlex.quote(str(word)) for word in command) + " &" for command in commands]
    return ["sh", "-c", "\n".join([*lines, "wait"])]


def node_processes(broker: Broker) -> dict[int, int]:
    """The process of every node, by the node's id, of a broker that is a cluster."""
    ready_file = broker.directory / "ready.json"
    if ready_file.exists():
        return dict(enumerate(json.loads(ready_file.read_text())["pids"]))
    found: dict[int, int] = {}
    for pid in descendants(broker.pid):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        for node_id in range(broker.node_count):
            if str(broker.directory / f"server-{node_id}.properties").encode() in words:
                found[node_id] = pid
    return found


def fetch_kafka() -> Path:
    """The directory with Kafka's jars, fetched with Maven the first time."""
    return _fetch_jars(f"kafka-{KAFKA_VERSION}", _KAFKA_POM)


def start_elasticmq() -> Broker:
    """One node that keeps queues in memory, with its own defaults; returns when its port is open."""
    libraries = _fetch_jars(f"elasticmq-{ELASTICMQ_VERSION}", _ELASTICMQ_POM)
    directory = _empty_directory("elasticmq")
    (port,) = _free_ports(1)
    configuration, logback = directory / "elasticmq.conf", directory / "logback.xml"
    configuration.write_text(
        f"""include classpath("application.conf")
node-address {{ protocol = http, host = "127.0.0.1", port = {port}, context-path = "" }}
rest-sqs {{ enabled = true, bind-hostname = "127.0.0.1", bind-port = {port}, sqs-limits = strict }}
rest-stats {{ enabled = false }}
"""
    )
    logback.write_text(_QUIET_LOGBACK)
    started_at = time.perf_counter()
    process = _spawn(
        [
            "java", f"-Dconfig.file={configuration}", f"-Dlogback.configurationFile={logback}",
            "-cp", f"{libraries}/*", "org.elasticmq.server.Main",
        ],
        directory,
    )  # fmt: skip
    _wait_until(process, directory, lambda: _is_open(port))
    return Broker(f"ElasticMQ {ELASTICMQ_VERSION}", "127.0.0.1", port, process, directory, started_at)


def _fetch_jars(name: str, project: str) -> Path:
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise Unavailable(f"{name} needs {program}, which is not on the PATH")
    home = CACHE / name
    libraries = home / "libs"
    fetched = home / "fetched"
    if not fetched.exists():
        home.mkdir(parents=True, exist_ok=True)
        pom = home / "pom.xml"
        pom.write_text(project)
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


def source_of(revision: str) -> Path:
    """The package as it was in that revision, in a directory that is named for it."""
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "--verify", f"{revision}^{{commit}}"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if asked.returncode:
        raise Unavailable(f"there is no revision {revision}")
    source = CACHE / "source" / asked.stdout.strip()
    if not (source / "src" / "ropewalk").is_dir():
        source.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(
            ["git", "archive", asked.stdout.strip(), "src"], cwd=ROOT, capture_output=True, check=True
        )
        subprocess.run(["tar", "-x", "-C", source], input=archive.stdout, check=True)
    return source


def _spawn(
    command: Sequence[str | Path], directory: Path, source: Path | None = None
) -> "subprocess.Popen[bytes]":
    environment = os.environ if source is None else {**os.environ, "PYTHONPATH": str(source / "src")}
    with (directory / "output.log").open("ab") as output:
        return subprocess.Popen(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
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
