"""What releases have left behind is read by this version: records, messages between nodes, and data directories."""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from ropewalk.base.levels import LEVELS
from ropewalk.kafka.peer.apis import PEER_APIS
from ropewalk.metadata.records import decode_records
from tests.chaos.node import NodeProcess
from tests.upgrade.samples import said
from tests.upgrade.wheels import RELEASES
from tests.upgrade.write_fixtures import QUIET, SETTINGS, WITHIN_S

HERE = Path(__file__).parent


def samples(version: str) -> Any:
    return json.loads((HERE / version / "samples.json").read_text())


def says_at_least(now: Any, then: Any) -> bool:
    """Whether everything that was said is said still; there may be more, with its default."""
    if isinstance(then, dict):
        return isinstance(now, dict) and all(
            name in now and says_at_least(now[name], then[name]) for name in then
        )
    if isinstance(then, list):
        return isinstance(now, list) and len(now) == len(then) and all(map(says_at_least, now, then))
    return bool(now == then)


@pytest.mark.parametrize("version", RELEASES)
def test_its_records_say_the_same(version: str) -> None:
    kept = samples(version)["records"]
    assert set(LEVELS[0].records) - {"Endpoint"} <= set(kept)
    for name, (data, then) in kept.items():
        (record,) = decode_records(bytes.fromhex(data))
        assert says_at_least(said(record), then), name


@pytest.mark.parametrize("version", RELEASES)
def test_its_messages_between_nodes_say_the_same(version: str) -> None:
    apis = {api.name: api for api in PEER_APIS}
    for name, (data, then) in samples(version)["frames"].items():
        api_name, side, number = name.split()
        api, body = apis[api_name], memoryview(bytes.fromhex(data))
        decode = api.decode_request if side == "request" else api.decode_response
        now = decode(int(number[1:]), body, 0, len(body))
        assert says_at_least(said(now), then), name


@pytest.mark.chaos
@pytest.mark.parametrize("version", RELEASES)
def test_its_data_directory_is_taken_over(version: str, tmp_path: Path) -> None:
    with tarfile.open(HERE / version / "data.tar.gz") as files:
        files.extractall(tmp_path / "data", filter="data")
    node = NodeProcess(tmp_path / "data", tmp_path, (*SETTINGS, "features.finalize=manual"))
    node.start()
    try:
        reader = Consumer(
            {
                "bootstrap.servers": node.address,
                "group.id": "readers",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                **QUIET,
            }
        )
        (committed,) = reader.committed([TopicPartition("kept", 0)], timeout=WITHIN_S)
        assert committed.offset == 2
        reader.assign([TopicPartition("kept", 0, 0), TopicPartition("kept", 1, 0)])
        read = sorted((message.value() or b"").decode() for message in reader.consume(4, WITHIN_S))
        reader.close()
        assert read == ["in transaction 0", "plain 0", "plain 1", "plain 2"]
        assert node.stop() == 0
    finally:
        if node.is_running:
            node.kill()
