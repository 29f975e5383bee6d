"""A broker and two front ends as processes, and HAProxy before these."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final, NamedTuple

from ropewalk.local.ports import free_ports
from tests.balancing.haproxy import FrontEnd, Haproxy
from tests.chaos.node import NodeProcess

DRAIN_MS: Final = 4_000
"""HAProxy takes two seconds to notice that a front end leaves."""
QUEUE: Final = "http://q/000000000000/work"
SECRET: Final = "cluster.secret=a secret of this cluster"
QUIET: Final = ("telemetry.interval.ms=0", "audit.topic=false", "offsets.topic.replication.factor=1", SECRET)


class Site(NamedTuple):
    broker: NodeProcess
    front_ends: list[NodeProcess]
    balancer: Haproxy


@contextmanager
def balanced_site(scratch: Path) -> Iterator[Site]:
    """All of them in service, with a queue `work`."""
    peer, *own = free_ports("127.0.0.1", 10)
    ports = [FrontEnd(*own[3 * number : 3 * number + 3]) for number in range(3)]
    processes = [_broker(scratch, peer)]
    processes += [_front_end(scratch, number, ports[number], ports[2], peer) for number in range(2)]
    try:
        for process in processes:
            process.start()
        with Haproxy(scratch, ports[:2], ports[2]) as balancer:
            for server in ("front-0", "front-1"):
                balancer.wait_until(server, "UP")
            client = Client(balancer.ports.sqs)
            client.ask("CreateQueue", QueueName="work")
            yield Site(processes[0], processes[1:], balancer)
    finally:
        for process in processes:
            if process.is_running:
                process.kill()


def _broker(scratch: Path, peer: int) -> NodeProcess:
    own = _directory(scratch, "broker")
    options = f"--node-id 0 --peer 127.0.0.1:{peer} --http none --role broker --role controller"
    return NodeProcess(own / "data", own, QUIET, options=tuple(options.split()))


def _front_end(scratch: Path, number: int, ports: FrontEnd, balancer: FrontEnd, seed: int) -> NodeProcess:
    own = _directory(scratch, f"front-{number}")
    options = f"--node-id {10 + number} --peer 127.0.0.1:0 --seed 127.0.0.1:{seed} --role frontend"
    options += f" --http 127.0.0.1:{ports.http}"
    settings = (
        f"sqs.listen=127.0.0.1:{ports.sqs}",
        f"node.drain.ms={DRAIN_MS}",
        "kafka.route=proxy",
        f"kafka.advertise=127.0.0.1:{balancer.kafka}",
    )
    return NodeProcess(
        own / "data",
        own,
        (*QUIET, *settings),
        options=tuple(options.split()),
        address=f"127.0.0.1:{ports.kafka}",
    )


def _directory(scratch: Path, name: str) -> Path:
    made = scratch / name
    made.mkdir()
    return made


class Client:
    """Over one connection that is kept, as SDKs do. Raises what SDKs would have to repeat."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, action: str, **body: object) -> dict[str, Any]:
        headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": f"AmazonSQS.{action}",
        }
        began = time.monotonic()
        try:
            self._connection.request("POST", "/", json.dumps(body), headers)
            answer = self._connection.getresponse()
            text = answer.read()
        except (OSError, HTTPException) as error:
            error.add_note(f"{action}, {time.monotonic() - began:.3f} s after it was asked")
            raise
        if answer.status != 200:
            raise HTTPException(f"{action}: {answer.status} {text.decode()}")
        decoded: dict[str, Any] = json.loads(text or b"{}")
        return decoded

    def close(self) -> None:
        self._connection.close()
