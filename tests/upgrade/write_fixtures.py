"""Writes what a release leaves behind, small, for later versions to read: `python -m tests.upgrade.write_fixtures VERSION`.

VERSION/samples.json   one of each metadata record and of each message between nodes, with what it says
VERSION/data.tar.gz    the data directory of a node that was killed: a topic, a transaction, a group, settings
"""

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.chaos.node import NodeProcess, Program
from tests.upgrade.wheels import unpack_release

HERE = Path(__file__).parent
SETTINGS = (
    "telemetry.interval.ms=0",
    "node.reserve.bytes=65536",
    "offsets.topic.num.partitions=1",
    "transaction.state.log.num.partitions=1",
)
QUIET = {"log_level": 0}
WITHIN_S = 30
LEFT_OUT = ("lock", "reserve")


def main(version: str) -> None:
    target = HERE / version
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        packages = unpack_release(version, scratch)
        environment = {"PYTHONPATH": str(packages)}
        samples = subprocess.run(
            [sys.executable, str(HERE / "samples.py")], env=environment, capture_output=True, check=True
        )
        (target / "samples.json").write_bytes(samples.stdout + b"\n")
        node = NodeProcess(scratch / "data", scratch, SETTINGS)
        node.program = Program((sys.executable, "-m", "ropewalk"), environment)
        node.start()
        try:
            _use(node.address)
        finally:
            node.kill()
        with tarfile.open(target / "data.tar.gz", "w:gz") as files:
            for path in sorted((scratch / "data").iterdir()):
                if path.name not in LEFT_OUT:
                    files.add(path, path.name)


def _use(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    topic = NewTopic("kept", 2, 1, config={"retention.ms": "-1"})
    admin.create_topics([topic])["kept"].result(WITHIN_S)
    plain = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUIET})
    for number in range(3):
        plain.produce("kept", f"plain {number}", partition=0)
    assert plain.flush(WITHIN_S) == 0
    within = Producer({"bootstrap.servers": bootstrap, "transactional.id": "writer", **QUIET})
    within.init_transactions(WITHIN_S)
    for number, ends in enumerate((within.commit_transaction, within.abort_transaction)):
        within.begin_transaction()
        within.produce("kept", f"in transaction {number}", partition=1)
        assert within.flush(WITHIN_S) == 0
        ends(WITHIN_S)
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", **QUIET})
    reader.commit(offsets=[TopicPartition("kept", 0, 2)], asynchronous=False)
    reader.close()


if __name__ == "__main__":
    main(sys.argv[1])
