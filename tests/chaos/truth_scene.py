"""A cluster of real processes that is watched: three nodes that can be made to err, Prometheus with our rules, and etcd where it is wanted."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ropewalk.alerts.declared import GROUPS
from ropewalk.alerts.rule_file import rule_file
from ropewalk.local.ports import free_ports
from tests.chaos.etcd import EtcdProcesses
from tests.chaos.node import NodeProcess

HOST = "127.0.0.1"
NODES = range(3)
REPOSITORY = Path(__file__).parents[2]
ROPEWALK = str(Path(sys.executable).parent / "ropewalk")
READY_WITHIN_S = 60.0
DISK_BYTES = 192 << 20
KEYS = "/ropewalk/"


class Scene:
    """Use it as a context manager. Node 2 has a small disk of its own."""

    def __init__(self, place: Path, *, with_etcd: bool) -> None:
        self._place = place
        self._with_etcd = with_etcd
        self._stack = ExitStack()
        self.etcd: EtcdProcesses | None = None
        self.nodes: list[NodeProcess] = []
        self._prometheus = ""

    def __enter__(self) -> "Scene":
        with ExitStack() as stack:
            self._begin(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _begin(self, stack: ExitStack) -> None:
        if self._with_etcd:
            self.etcd = stack.enter_context(EtcdProcesses(self._place / "etcd", member_count=1))
        disk = self._place / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "truth", disk], check=True)
        stack.callback(lambda: subprocess.run(["umount", "-l", disk], check=True))
        ports = free_ports(HOST, 7)
        peers = [f"{HOST}:{port}" for port in ports[:3]]
        https = [f"{HOST}:{port}" for port in ports[3:6]]
        for number in NODES:
            self.nodes.append(self._node(number, peers, https[number], disk))
        stack.callback(self._end_nodes)
        for node in self.nodes:
            node.begin()
        for node in self.nodes:
            node.wait_until_ready()
        self._prometheus = f"{HOST}:{ports[6]}"
        self._start_prometheus(stack, https)

    def _node(self, number: int, peers: list[str], http: str, disk: Path) -> NodeProcess:
        own = self._place / f"node-{number}"
        own.mkdir()
        control = own / "control.json"
        options = ["--node-id", str(number), "--peer", peers[number], "--http", http]
        for seed in peers:
            options += ["--seed", seed]
        settings = ["cluster.secret=a secret of this cluster", "telemetry.interval.ms=0", "audit.topic=false"]
        settings += ["offsets.topic.num.partitions=3", "transaction.state.log.num.partitions=3"]
        if self.etcd is not None:
            settings += ["metadata.home=etcd", f"metadata.etcd.endpoints={self.etcd.endpoints}"]
        elif number > 0:
            options += ["--role", "broker", "--role", "frontend"]
        return NodeProcess(
            (disk if number == 2 else own) / "data",
            own,
            tuple(settings),
            address=f"{HOST}:{free_ports(HOST, 1)[0]}",
            options=tuple(options),
            place=(sys.executable, str(Path(__file__).parent / "odd_node.py"), str(control)),
        )

    def _end_nodes(self) -> None:
        for node in self.nodes:
            if node.is_running:
                node.thaw()
                node.kill()

    def _start_prometheus(self, stack: ExitStack, targets: list[str]) -> None:
        own = self._place / "prometheus"
        own.mkdir()
        rules = own / "rules.yml"
        rules.write_text(rule_file(GROUPS, docs="docs"))
        jobs = {"job_name": "ropewalk", "static_configs": [{"targets": targets}]}
        (own / "prometheus.yml").write_text(
            json.dumps(
                {
                    "global": {
                        "scrape_interval": "1s",
                        "scrape_timeout": "1s",
                        "evaluation_interval": "1s",
                    },
                    "rule_files": [str(rules)],
                    "scrape_configs": [jobs],
                }
            )
        )
        command = [
            "prometheus",
            f"--config.file={own / 'prometheus.yml'}",
            f"--storage.tsdb.path={own / 'data'}",
        ]
        command += [f"--web.listen-address={self._prometheus}"]
        with (own / "log").open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        stack.callback(process.wait)
        stack.callback(process.kill)
        deadline = time.monotonic() + READY_WITHIN_S
        while True:
            try:
                self.alerts()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.nodes)

    # What is told.

    def command_line(self) -> tuple[int, str]:
        """`cluster health`: its exit code, and what it said."""
        command = [ROPEWALK, "cluster", "health", "-b", self.bootstrap]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def page(self, number: int, path: str) -> tuple[int, str]:
        """Status 0 where nobody answers."""
        try:
            return self.nodes[number].page(path)
        except OSError as error:
            return 0, str(error)

    def metric(self, name: str) -> float | None:
        """The largest of those that nodes tell; some are told by the controller alone."""
        lines = [line for number in NODES for line in self.page(number, "/public_metrics")[1].splitlines()]
        return max(
            (float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} ")), default=None
        )

    def alerts(self) -> set[str]:
        """Those that fire."""
        with urllib.request.urlopen(f"http://{self._prometheus}/api/v1/alerts", timeout=5) as answer:
            found = json.load(answer)["data"]["alerts"]
        return {alert["labels"]["alertname"] for alert in found if alert["state"] == "firing"}

    def built_in_alerts(self) -> set[str]:
        """Those that nodes say fire; of a node that does not answer nothing is known."""
        command = [ROPEWALK, "alerts", "ls", "--firing", "-o", "json", "-b", self.bootstrap]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return {alert["alert"] for alert in json.loads(done.stdout or "[]")}

    # What is done.

    def control(self, number: int, **wishes: Any) -> None:
        path = self._place / f"node-{number}" / "control.json"
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(wishes))
        os.replace(temporary, path)

    def create(self, topic: str, replicas: list[list[int]], settings: dict[str, str] | None = None) -> None:
        """`replicas`: for each partition."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        wanted = NewTopic(topic, len(replicas), replica_assignment=replicas, config=settings or {})
        admin.create_topics([wanted], operation_timeout=30)[topic].result(timeout=30)

    def delete(self, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        admin.delete_topics([topic], operation_timeout=30)[topic].result(timeout=30)

    def produce(self, topic: str, count: int) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})
        for number in range(count):
            producer.produce(topic, f"{number}".encode() * 100)
        assert producer.flush(30) == 0, "all is written"

    def etcd_call(self, path: str, **body: Any) -> Any:
        assert self.etcd is not None, "the metadata is in etcd"
        url = f"{self.etcd.endpoints.split(',')[0]}/v3/{path}"
        with urllib.request.urlopen(
            urllib.request.Request(url, json.dumps(body).encode()), timeout=10
        ) as answer:
            return json.load(answer)

    def etcd_member(self) -> str:
        (member,) = self.etcd_call("cluster/member/list")["members"]
        return str(member["ID"])

    def disarm_etcd(self) -> None:
        self.etcd_call("maintenance/alarm", action="DEACTIVATE", memberID=self.etcd_member(), alarm="NOSPACE")

    def try_to_create(self, topic: str) -> None:
        """Whether it succeeds is not asked."""
        command = [ROPEWALK, "topic", "create", topic, "-b", self.bootstrap, "-X", "request.timeout.ms=2000"]
        subprocess.run(command, capture_output=True, check=False)

    def signal_etcd(self, number: signal.Signals) -> None:
        assert self.etcd is not None, "the metadata is in etcd"
        self.etcd.signal(number)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
