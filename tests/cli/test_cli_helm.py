"""The chart for Helm: as Helm itself renders it, and what it starts.

Helm is no part of `./test`, since it has to be built. What it made of the chart lies in `tests/cli/helm`, with the digest of the chart that it was made
of, so that a chart that was changed is rendered again, by Helm:

    HELM=/path/to/helm REWRITE=1 ./test tests/cli/test_cli_helm.py
"""

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ropewalk import __version__
from ropewalk.node.config import load
from ropewalk.node.options import NodeOptions
from tests.cli.conftest import Ropewalk

RENDERED = Path(__file__).parent / "helm"
DIGEST = RENDERED / "chart.sha256"
NAMES = ("default", "full", "small", "alone")
HELM = os.environ.get("HELM") or shutil.which("helm")
KUBERNETES = "1.35.0"
WITHIN_S = 60
PORTS = ("9092", "9095", "9192", "9644", "9324")


@pytest.fixture
def chart(ropewalk: Ropewalk, tmp_path: Path) -> Path:
    folder = tmp_path / "chart"
    assert ropewalk("generate", "helm", str(folder)).exit_code == 0
    return folder


def digest(chart: Path) -> str:
    """Of all but the version."""
    found = hashlib.sha256()
    for path in sorted(chart.rglob("*")):
        if path.is_file() and path.name != "Chart.yaml":
            found.update(f"{path.relative_to(chart)}\n{path.read_text()}".encode())
    for path in sorted(RENDERED.glob("*.values.yaml")):
        found.update(f"{path.name}\n{path.read_text()}".encode())
    return found.hexdigest()


def without_chance(rendered: str) -> str:
    """Without the version, and the secret that Helm makes up."""
    version = re.escape(__version__).replace(r"\.dev", r"[.-]dev")
    return re.sub(r"(?m)^  secret: .+$", "  secret: c2VjcmV0", re.sub(version, "VERSION", rendered))


def documents(name: str) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all((RENDERED / f"{name}.yaml").read_text()) if each]


def only(name: str, kind: str, ending: str = "") -> Any:
    (found,) = [
        each
        for each in documents(name)
        if each["kind"] == kind and each["metadata"]["name"] == f"rope-ropewalk{ending}"
    ]
    return found


def test_what_is_looked_at_here_is_made_of_the_chart_as_it_is(chart: Path) -> None:
    if os.environ.get("REWRITE") and HELM:
        DIGEST.write_text(f"{digest(chart)}\n")
    assert DIGEST.read_text().strip() == digest(chart), "the chart was changed: have Helm render it again"


@pytest.mark.skipif(not HELM, reason="optional: Helm is not here")
@pytest.mark.parametrize("name", NAMES)
def test_helm_makes_of_the_chart_what_is_looked_at_here(name: str, chart: Path) -> None:
    assert HELM is not None
    command = [HELM, "template", "rope", str(chart), "-n", "queues", "--kube-version", KUBERNETES]
    made = subprocess.run(
        [*command, "-f", str(RENDERED / f"{name}.values.yaml")], capture_output=True, text=True, check=True
    )
    path = RENDERED / f"{name}.yaml"
    if os.environ.get("REWRITE"):
        path.write_text(without_chance(made.stdout))
    assert path.read_text() == without_chance(made.stdout)


@pytest.mark.skipif(not HELM, reason="optional: Helm is not here")
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("login.enabled=true", "a password never passes in the open"),
        ("console.ingress.enabled=true", "takes login.enabled and tls.secretName"),
        ("external.enabled=true", "external.hosts names 0 hosts for 3 nodes"),
    ],
)
def test_what_cannot_be_is_refused_by_the_chart(setting: str, words: str, chart: Path) -> None:
    assert HELM is not None
    command = [HELM, "template", "rope", str(chart), "--kube-version", KUBERNETES, "--set", setting]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode != 0
    assert words in made.stderr


def test_the_chart_has_the_version_of_the_package_and_is_written_once(
    chart: Path, ropewalk: Ropewalk
) -> None:
    said = yaml.safe_load((chart / "Chart.yaml").read_text())
    assert said["appVersion"] == __version__
    assert re.fullmatch(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?", said["version"]), "as Helm wants versions"
    again = ropewalk("generate", "helm", str(chart))
    assert again.exit_code == 1
    assert "is there and not empty" in again.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_node_takes_the_settings_that_the_chart_writes(name: str, tmp_path: Path) -> None:
    says = only(name, "ConfigMap")["data"]
    path = tmp_path / "node.toml"
    path.write_text(says["node.toml"])
    secret = {"ROPEWALK_CLUSTER__SECRET": "s" * 32}
    config = load(NodeOptions(config=str(path), settings=("node.id=0",)), secret)
    pod = only(name, "StatefulSet")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounts = {each["mountPath"] for each in container["volumeMounts"]}
    assert any(config["node.data"].startswith(f"{each}/") for each in mounts)
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert config["http.listen"] == f"0.0.0.0:{ports['http']}"
    assert config["peer.listen"] == f"0.0.0.0:{ports['peer']}"
    assert f"INSIDE://0.0.0.0:{ports['kafka']}" in config["listeners"]
    scheme = "HTTPS" if config["http.security.protocol"] == "SSL" else "HTTP"
    for probe, page in (
        ("startupProbe", "/livez"),
        ("livenessProbe", "/livez"),
        ("readinessProbe", "/readyz"),
    ):
        asked = container[probe]["httpGet"]
        assert (asked["path"], asked["port"], asked["scheme"]) == (page, "http", scheme)
    assert len(config.seeds) == only(name, "StatefulSet")["spec"]["replicas"]


def test_a_pod_has_no_rights_that_it_does_not_need() -> None:
    pod = only("full", "StatefulSet")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    grace_s = pod["terminationGracePeriodSeconds"]
    assert grace_s > 240, "who waits to be safe still has time to stop in order"


def test_nodes_find_each_other_and_clients_every_node_from_outside() -> None:
    assert only("default", "Service", "-nodes")["spec"]["publishNotReadyAddresses"] is True
    names = {each["metadata"]["name"] for each in documents("full") if each["kind"] == "Service"}
    assert {f"rope-ropewalk-{ordinal}" for ordinal in range(3)} <= names
    for ordinal in range(3):
        selector = only("full", "Service", f"-{ordinal}")["spec"]["selector"]
        assert selector["statefulset.kubernetes.io/pod-name"] == f"rope-ropewalk-{ordinal}"
    labels = only("full", "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    for each in documents("full"):
        if each["kind"] == "Service" and "etcd" not in each["metadata"]["name"]:
            rest = {
                key: value
                for key, value in each["spec"]["selector"].items()
                if key != "statefulset.kubernetes.io/pod-name"
            }
            assert rest.items() <= labels.items()
    scraped = only("full", "ServiceMonitor")["spec"]["selector"]["matchLabels"]
    chosen = [
        each["metadata"]["name"]
        for each in documents("full")
        if each["kind"] == "Service" and scraped.items() <= each["metadata"]["labels"].items()
    ]
    assert chosen == ["rope-ropewalk-nodes"], "each node is scraped once"


def test_of_the_http_port_the_console_alone_is_let_out() -> None:
    (rule,) = only("full", "Ingress", "-console")["spec"]["rules"]
    assert [each["path"] for each in rule["http"]["paths"]] == ["/console"]
    settings = tomllib.loads(only("full", "ConfigMap")["data"]["node.toml"])
    assert settings["http.security.protocol"] == "SSL"
    assert settings["http.hosts"] == rule["host"]
    assert "OAUTHBEARER" in settings["sasl.enabled.mechanisms"].split(",")


def test_every_member_of_etcd_knows_the_others_and_nodes_know_them_all() -> None:
    etcd = only("default", "StatefulSet", "-etcd")
    command = etcd["spec"]["template"]["spec"]["containers"][0]["command"]
    (cluster,) = [each for each in command if each.startswith("--initial-cluster=")]
    members = [each.partition("=")[0] for each in cluster.removeprefix("--initial-cluster=").split(",")]
    assert members == [f"rope-ropewalk-etcd-{ordinal}" for ordinal in range(etcd["spec"]["replicas"])]
    endpoints = tomllib.loads(only("default", "ConfigMap")["data"]["node.toml"])["metadata.etcd.endpoints"]
    assert [each.partition("//")[2].partition(".")[0] for each in endpoints.split(",")] == members
    assert all(
        each["kind"] != "StatefulSet" or "etcd" not in each["metadata"]["name"] for each in documents("small")
    )


class Pods:
    """What the pods of the chart would run, as processes on this machine, each with ports of its own."""

    def __init__(self, folder: Path, count: int) -> None:
        self._folder = folder
        self.ports = [{port: _free_port() for port in PORTS} for _ in range(count)]
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        for ordinal in range(len(self.ports)):
            home = self._folder / str(ordinal)
            (home / "var").mkdir(parents=True)
            for name, text in only("alone", "ConfigMap")["data"].items():
                (home / name).write_text(self._local(text, ordinal))
            command = ["/bin/sh", str(home / "start.sh")]
            output = (home / "journal").open("wb")
            self.processes.append(
                subprocess.Popen(command, env=self.environment(ordinal), stdout=output, stderr=output)
            )

    def environment(self, ordinal: int) -> dict[str, str]:
        said_by_the_image = {
            "ROPEWALK_NODE__DATA": "/var/lib/ropewalk",
            "ROPEWALK_KAFKA__LISTEN": "0.0.0.0:9092",
            "ROPEWALK_HTTP__LISTEN": "127.0.0.1:9644",
        }
        return {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "POD_NAME": f"rope-ropewalk-{ordinal}",
            "POD_NAMESPACE": "queues",
            "ZONE": f"zone-{ordinal}",
            "ROPEWALK_CLUSTER__SECRET": "s" * 32,
            **said_by_the_image,
        }

    def script(self, ordinal: int, name: str) -> list[str]:
        return ["/bin/sh", str(self._folder / str(ordinal) / name)]

    def journals(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self._folder.glob("*/journal")))

    def _local(self, text: str, ordinal: int) -> str:
        nodes = r"\.rope-ropewalk-nodes\.(?:queues|\$POD_NAMESPACE)\.svc:(\d+)"
        here = self.ports[ordinal]
        text = re.sub(rf"\$POD_NAME{nodes}", lambda found: f"127.0.0.1:{here[found[1]]}", text)
        text = re.sub(
            rf"rope-ropewalk-(\d){nodes}",
            lambda found: f"127.0.0.1:{self.ports[int(found[1])][found[2]]}",
            text,
        )
        text = re.sub(
            rf"(?:0\.0\.0\.0|127\.0\.0\.1):({'|'.join(PORTS)})\b",
            lambda found: f"127.0.0.1:{here[found[1]]}",
            text,
        )
        home = self._folder / str(ordinal)
        return text.replace("/etc/ropewalk", str(home)).replace("/var/lib/ropewalk", str(home / "var"))


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def pods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pods]:
    pods = Pods(tmp_path_factory.mktemp("pods"), 3)
    pods.start()
    yield pods
    for process in pods.processes:
        process.kill()
        process.wait()


def test_what_pods_run_becomes_a_cluster_with_zones_as_racks_and_stops_in_order(
    pods: Pods, ropewalk: Ropewalk
) -> None:
    bootstrap = f"127.0.0.1:{pods.ports[0]['9092']}"
    wanted = [(ordinal, "active", f"zone-{ordinal}") for ordinal in range(3)]
    found: list[tuple[int, str, str]] = []
    until = time.monotonic() + WITHIN_S
    while found != wanted and time.monotonic() < until:
        told = ropewalk("cluster", "nodes", "-b", bootstrap, "-o", "json")
        nodes = json.loads(told.stdout) if told.exit_code == 0 else []
        found = [(each["node"], each["state"], each["rack"]) for each in nodes]
    assert found == wanted, pods.journals()
    drained = subprocess.run(
        pods.script(1, "drain.sh"),
        env=pods.environment(1),
        capture_output=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert drained.returncode == 0, drained.stderr
    pods.processes[1].send_signal(signal.SIGTERM)
    assert pods.processes[1].wait(WITHIN_S) == 0, (
        "the shell has made way for the node, which hears signals itself"
    )


def test_a_node_waits_until_it_may_stop(tmp_path: Path) -> None:
    """By what the command answers: unsafe twice, and then safe."""
    script = tmp_path / "drain.sh"
    script.write_text(only("alone", "ConfigMap")["data"]["drain.sh"])
    asked = tmp_path / "asked"
    (tmp_path / "ropewalk").write_text(
        f'#!/bin/sh\necho "$@" >> {asked}\n'
        f'if [ "$(wc -l < {asked})" -gt 2 ]; then echo \'  "safe": true\'; else echo \'  "safe": false\'; exit 1; fi\n'
    )
    (tmp_path / "sleep").write_text("#!/bin/sh\n")
    for name in ("ropewalk", "sleep"):
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "POD_NAME": "rope-ropewalk-2"}
    subprocess.run(["/bin/sh", str(script)], env=environment, check=True, timeout=WITHIN_S)
    assert asked.read_text().splitlines() == ["cluster restart-check 2 -b 127.0.0.1:9095 -o json"] * 3


def test_a_node_that_can_ask_nobody_is_kept_from_nothing(tmp_path: Path) -> None:
    script = tmp_path / "drain.sh"
    script.write_text(only("alone", "ConfigMap")["data"]["drain.sh"])
    (tmp_path / "ropewalk").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "ropewalk").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "POD_NAME": "rope-ropewalk-2"}
    subprocess.run(["/bin/sh", str(script)], env=environment, check=True, timeout=WITHIN_S)
