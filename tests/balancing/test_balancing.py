"""Two front ends behind HAProxy, with the configuration of the docs: clients hear nothing of one that leaves."""

import subprocess
import threading
import time
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.balancing.front_ends import DRAIN_MS, QUEUE, Client, Site, balanced_site
from tests.balancing.haproxy import FrontEnd, configuration, program

OPERATING = Path(__file__).parents[2] / "docs/operating"
WORKERS = 4
POLLS = 6

needs_haproxy = pytest.mark.skipif(program("haproxy") is None, reason="haproxy is missing (Debian: haproxy)")
needs_keepalived = pytest.mark.skipif(
    program("keepalived") is None, reason="keepalived is missing (Debian: keepalived)"
)
pytestmark = [pytest.mark.compat, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with balanced_site(tmp_path_factory.mktemp("site")) as made:
        yield made


class Work:
    """Workers that send, receive with long polls and delete, until they are stopped; errors are kept."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._is_stopped = threading.Event()
        self.errors: list[BaseException] = []
        self.deleted_count = 0
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(WORKERS)]

    def __enter__(self) -> "Work":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopped.set()
        for thread in self._threads:
            thread.join()

    def wait_for_more(self, count: int = 20) -> None:
        wanted, deadline = self.deleted_count + count, time.monotonic() + 30
        while self.deleted_count < wanted and not self.errors:
            assert time.monotonic() < deadline, "the workers got nowhere"
            time.sleep(0.01)

    def _run(self, number: int) -> None:
        client = Client(self._port)
        try:
            while not self._is_stopped.is_set():
                client.ask("SendMessage", QueueUrl=QUEUE, MessageBody=f"from {number}")
                received = client.ask(
                    "ReceiveMessage", QueueUrl=QUEUE, WaitTimeSeconds=1, MaxNumberOfMessages=10
                )
                for message in received.get("Messages", ()):
                    client.ask("DeleteMessage", QueueUrl=QUEUE, ReceiptHandle=message["ReceiptHandle"])
                    self.deleted_count += 1
        except (OSError, HTTPException) as error:
            self.errors.append(error)
        finally:
            client.close()


@needs_haproxy
def test_haproxy_takes_the_configuration(tmp_path: Path) -> None:
    ports = FrontEnd(1, 2, 3)
    path = tmp_path / "haproxy.cfg"
    path.write_text(configuration([ports, ports], ports, tmp_path / "socket"))
    found = program("haproxy")
    assert found is not None
    done = subprocess.run([found, "-c", "-f", str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@needs_keepalived
def test_keepalived_takes_the_configuration(tmp_path: Path) -> None:
    interfaces = sorted(each.name for each in Path("/sys/class/net").iterdir() if each.name != "lo")
    if not interfaces:
        pytest.skip("there is no interface but the loopback, which keepalived refuses")
    text = (OPERATING / "keepalived.conf").read_text()
    path = tmp_path / "keepalived.conf"

    def judge(text: str) -> tuple[int, str]:
        path.write_text(text)
        found = program("keepalived")
        assert found is not None
        done = subprocess.run([found, "--config-test", "-f", str(path)], capture_output=True, text=True)
        return done.returncode, done.stderr

    here = text.replace("interface eth0", f"interface {interfaces[0]}")
    assert judge(here) == (0, "")
    assert judge(here.replace("virtual_ipaddress", "virtual_address"))[0] != 0


@needs_haproxy
def test_requests_of_all_doors_are_spread_over_both(site: Site) -> None:
    clients = [Client(site.balancer.ports.sqs) for _ in range(10)]
    for client in clients:
        assert client.ask("GetQueueUrl", QueueName="work")["QueueUrl"].startswith(
            f"http://127.0.0.1:{site.balancer.ports.sqs}/"
        )
    for client in clients:
        client.close()
    counts = [each.session_count for each in site.balancer.servers("sqs").values()]
    assert min(counts) >= 4

    bootstrap = {"bootstrap.servers": f"127.0.0.1:{site.balancer.ports.kafka}"}
    producers = [Producer(bootstrap) for _ in range(4)]
    for producer in producers:
        producer.produce("records", b"one")
        assert producer.flush(30) == 0
    consumer = Consumer({**bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["records"])
    read = consumer.consume(4, timeout=30)
    consumer.close()
    assert [message.value() for message in read] == [b"one"] * 4
    assert all(each.session_count for each in site.balancer.servers("kafka").values())


@needs_haproxy
def test_nobody_hears_of_a_front_end_that_leaves_and_its_long_polls_are_answered(site: Site) -> None:
    leaving = site.front_ends[0]
    answers: list[int] = []
    idle = QUEUE.replace("work", "idle")
    client = Client(site.balancer.ports.sqs)
    client.ask("CreateQueue", QueueName="idle")

    def poll() -> None:
        client = Client(site.balancer.ports.sqs)
        received = client.ask("ReceiveMessage", QueueUrl=idle, WaitTimeSeconds=20)
        answers.append(len(received.get("Messages", ())))

    with Work(site.balancer.ports.sqs) as work:
        polls = [threading.Thread(target=poll) for _ in range(POLLS)]
        for each in polls:
            each.start()
        work.wait_for_more()
        began = time.monotonic()
        stopping = threading.Thread(target=leaving.stop)
        stopping.start()
        site.balancer.wait_until("front-0", "DOWN")
        assert time.monotonic() - began < DRAIN_MS / 1000
        work.wait_for_more()
        stopping.join()
        took_s = time.monotonic() - began
        # Those that waited at the one that left were answered by it; the others wait on.
        deadline = time.monotonic() + 5
        while not answers and time.monotonic() < deadline:
            time.sleep(0.01)
        assert answers
        assert set(answers) == {0}
        assert len(answers) < POLLS
        for _ in range(POLLS - len(answers)):
            client.ask("SendMessage", QueueUrl=idle, MessageBody="for one of them")
        work.wait_for_more()
        for each in polls:
            each.join()
        leaving.start()
        site.balancer.wait_until("front-0", "UP")
        work.wait_for_more()
    assert work.errors == []
    assert len(answers) == POLLS
    assert took_s < DRAIN_MS / 1000 + 5


@needs_haproxy
def test_a_dead_front_end_is_taken_out_and_put_back(site: Site) -> None:
    dead = site.front_ends[1]
    dead.kill()
    client = Client(site.balancer.ports.sqs)
    # From the first moment: a connection that is refused goes to the other.
    for _ in range(20):
        client.ask("GetQueueUrl", QueueName="work")
    site.balancer.wait_until("front-1", "DOWN")
    with Work(site.balancer.ports.sqs) as work:
        work.wait_for_more()
        dead.start()
        site.balancer.wait_until("front-1", "UP")
        work.wait_for_more()
    assert work.errors == []
