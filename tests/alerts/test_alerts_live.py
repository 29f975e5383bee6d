"""Boards on a real Prometheus that watches real nodes: every query is taken, and answers with something."""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from ropewalk.alerts.boards import BOARDS, WINDOW
from ropewalk.alerts.declared import GROUPS, RULES
from ropewalk.alerts.rule_file import rule_file
from ropewalk.local.ports import free_ports

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not here"),
]

HOST = "127.0.0.1"
WITHIN_S = 120
SELDOM = {"ropewalk_alerts"}
"""What nodes tell of only when it has happened, and does not here."""


class Watched:
    """Three nodes with something to tell, and Prometheus beside them."""

    def __init__(self, place: Path, stack: ExitStack) -> None:
        ready = place / "ready.json"
        command = [sys.executable, "-m", "ropewalk", "up", "--nodes", "3", "--memory", "--insecure"]
        command += [part for door in ("kafka", "http", "sqs", "peer") for part in (f"--{door}", f"{HOST}:0")]
        command += ["--set", "telemetry.interval.ms=0", "--ready-file", str(ready)]
        self.environment = {
            name: text for name, text in os.environ.items() if not name.startswith("ROPEWALK_")
        }
        process = _started(command, place / "nodes.log", stack, self.environment)
        _until(lambda: ready.exists() or process.poll() is not None, "the nodes are ready")
        doors: dict[str, list[str]] = json.loads(ready.read_text())
        self.bootstrap = ",".join(doors["kafka"])
        self.address = f"{HOST}:{free_ports(HOST, 1)[0]}"
        targets = [urllib.parse.urlsplit(address).netloc for address in doors["http"]]
        rules, config = place / "rules.yml", place / "prometheus.yml"
        rules.write_text(rule_file(GROUPS, docs="docs"))
        config.write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                    "rule_files": [str(rules)],
                    "scrape_configs": [{"job_name": "ropewalk", "static_configs": [{"targets": targets}]}],
                }
            )
        )
        command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={place / 'data'}"]
        _started([*command, f"--web.listen-address={self.address}"], place / "prometheus.log", stack)

    def ropewalk(self, *arguments: str, is_refused: bool = False) -> None:
        command = [sys.executable, "-m", "ropewalk", *arguments, "-b", self.bootstrap]
        done = subprocess.run(
            command, check=False, capture_output=True, timeout=WITHIN_S, env=self.environment
        )
        assert (done.returncode != 0) == is_refused, done.stderr.decode()

    def answers(self) -> bool:
        try:
            return bool(self.ask("query", query="up"))
        except OSError:
            return False

    def ask(self, path: str, **parameters: str) -> Any:
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]


def _started(
    command: list[str], log: Path, stack: ExitStack, environment: dict[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return process


def _until(is_so: Any, what: str) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline, f"in time: {what}"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with ExitStack() as stack:
        place = tmp_path_factory.mktemp("watched")
        there = Watched(place, stack)
        _until(there.answers, "Prometheus answers")
        _use(there)
        yield there


def _use(watched: Watched) -> None:
    """A little of everything that boards tell of."""
    watched.ropewalk("topic", "create", "orders", "--partitions", "3")
    watched.ropewalk("queue", "create", "dead")
    watched.ropewalk("queue", "create", "work", "--dead-letters", "dead", "--max-receives", "3")
    watched.ropewalk("queue", "send", "work", "one", "two")
    watched.ropewalk("queue", "send", "dead", "gone")
    watched.ropewalk("queue", "receive", "work", "--wait", "5s")
    watched.ropewalk("topic", "describe", "nowhere", is_refused=True)
    producer = Producer({"bootstrap.servers": watched.bootstrap, "transactional.id": "t", "log_level": 0})
    producer.init_transactions(60)
    producer.begin_transaction()
    for number in range(100):
        producer.produce("orders", f"{number}".encode())
    producer.commit_transaction(60)
    consumer = Consumer(
        {
            "bootstrap.servers": watched.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    consumer.subscribe(["orders"])
    _until(lambda: consumer.poll(1.0) is not None, "a record is read")
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_every_query_of_a_board_answers_with_something(board: Any, watched: Watched) -> None:
    missing = {
        curve.query: panel.title
        for panel in board.panels
        for curve in panel.curves
        if not any(name in curve.query for name in SELDOM)
    }

    def all_answer() -> bool:
        for query in list(missing):
            text = query.replace(WINDOW, "1m").replace("$instance", ".*")
            if watched.ask("query", query=text)["result"]:
                del missing[query]
        return not missing

    deadline = time.monotonic() + WITHIN_S
    while not all_answer():
        assert time.monotonic() < deadline, f"nothing is told of {missing}"
        time.sleep(1)


def test_prometheus_has_all_rules_and_none_fails(watched: Watched) -> None:
    def rules() -> list[dict[str, Any]]:
        return [rule for group in watched.ask("rules")["groups"] for rule in group["rules"]]

    _until(lambda: all(rule["health"] == "ok" for rule in rules()), "all rules were looked at")
    assert {rule["name"] for rule in rules()} == {rule.name for rule in RULES}
    assert not [rule["name"] for rule in rules() if rule["state"] == "firing"]
