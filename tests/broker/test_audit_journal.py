"""`audit.file`: who logged in and who was refused, bounded, counted together, and whole over restarts and full disks."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ropewalk.base.errors import InvalidSetting
from ropewalk.broker.watching import audit_journal
from ropewalk.broker.watching.audit_journal import AuditJournal
from ropewalk.node import audit_file
from ropewalk.node.audit_file import open_audit
from ropewalk.node.config import load
from ropewalk.node.options import NodeOptions
from ropewalk.security.access import Asker, ResourceType
from ropewalk.security.audit_chain import verify
from ropewalk.security.identity import Identity
from ropewalk.wire.messages import create_topics, delete_topics, metadata
from tests.kafka.rights_world import ADMIN, ALICE, RightsWorld, in_a_world_of_rights

ALICE_ASKS = Asker((ALICE,), "10.0.0.1")


class HandClock:
    def __init__(self) -> None:
        self.ms = 0

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> float:
        return float(self.ms)


class AtOnce:
    async def run(self, work: Callable[..., Any], *args: Any) -> Any:
        return work(*args)


class Written:
    """In place of a file; it may be full."""

    def __init__(self) -> None:
        self.data = b""
        self.is_full = False

    def append(self, data: bytes) -> None:
        if self.is_full:
            raise OSError(28, "No space left on device")
        self.data += data

    @property
    def events(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(line) for line in self.data.splitlines()]

    @property
    def faults(self) -> list[str]:
        return [fault.text for fault in verify(enumerate(self.data.splitlines()))]


def a_journal(written: Written, clock: HandClock) -> AuditJournal:
    pool: Any = AtOnce()
    return AuditJournal(clock, pool, written.append, last_number=0, last_hash="")


def test_logins_are_told_with_who_by_what_and_from_where() -> None:
    written, clock = Written(), HandClock()
    journal = a_journal(written, clock)
    journal.on_started("1.0")
    journal.on_login(Identity("User:ann", method="SCRAM-SHA-256"), "10.0.0.1", "SASL_SSL")
    journal.on_login_failed("bob" * 1000, "the password is wrong", "10.0.0.2", "SASL_SSL")
    asyncio.run(journal.finish())
    started, known, failed = written.events
    assert (started["class_uid"], started["activity_name"]) == (6002, "Start")
    assert (known["class_uid"], known["status"], known["auth_protocol"]) == (3002, "Success", "SCRAM-SHA-256")
    assert known["user"] == {"name": "ann", "type": "User"}
    assert known["src_endpoint"] == {"ip": "10.0.0.1", "interface_name": "SASL_SSL"}
    assert (failed["status"], failed["status_detail"]) == ("Failure", "the password is wrong")
    assert len(failed["user"]["name"]) < 300
    assert written.faults == []


def test_equal_refusals_of_a_minute_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_journal, "AUDIT_DENIALS_MAX", 2)
    written, clock = Written(), HandClock()
    journal = a_journal(written, clock)
    for _ in range(1000):
        journal.on_denied(ALICE_ASKS, "READ", ResourceType.TOPIC, "orders")
    journal.on_denied(ALICE_ASKS, "WRITE", ResourceType.TOPIC, "orders")
    for _ in range(5):
        journal.on_denied(ALICE_ASKS, "WRITE", ResourceType.TOPIC, "others")
    journal._tell_denied(clock.ms - 1)
    assert not written.data, "the minute is not over"
    asyncio.run(journal.finish())
    read, write, lost = written.events
    assert (read["api"], read["resources"], read["count"]) == (
        {"operation": "READ"},
        [{"type": "Topic", "name": "Topic:orders"}],
        1000,
    )
    assert (read["actor"]["user"]["name"], read["src_endpoint"]) == ("alice", {"ip": "10.0.0.1"})
    assert (write["count"], lost["unmapped"]) == (1, {"dropped_count": 5})
    assert written.faults == []


def test_a_full_disk_stops_nothing_and_what_was_lost_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_journal, "AUDIT_LINES_WAITING_MAX", 10)
    written, clock = Written(), HandClock()
    written.is_full = True
    journal = a_journal(written, clock)

    async def story() -> None:
        for _ in range(25):
            journal.on_login(Identity("User:ann"), "10.0.0.1", "SASL")
            await journal.finish()
        assert not written.data
        written.is_full = False
        await journal.finish()
        journal.on_login(Identity("User:bob"), "10.0.0.1", "SASL")
        await journal.finish()

    asyncio.run(story())
    assert len(written.events) == 12
    assert written.events[10]["unmapped"] == {"dropped_count": 15}
    assert [event["metadata"]["sequence"] for event in written.events] == list(range(1, 13))
    assert written.faults == []


def test_a_file_is_gone_on_with_and_a_line_that_was_cut_is_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    assert audit_file._last_line(path) == b""
    audit_file._append(path, b'{"a": 1}\n')
    audit_file._append(path, b'{"b": 2}\n{"c"')
    assert audit_file._last_line(path) == b'{"b": 2}'
    assert path.read_bytes() == b'{"a": 1}\n{"b": 2}\n'
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_written_whole_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "audit.json"
    audit_file._append(path, b"one\n")
    true_write, written = os.write, list[int]()

    def write(descriptor: int, data: Any) -> int:
        if written:
            raise OSError(28, "No space left on device")
        written.append(1)
        return true_write(descriptor, bytes(data)[:2])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="No space"):
        audit_file._append(path, b"two\n")
    assert path.read_bytes() == b"one\n"


def test_a_node_writes_who_was_refused_what(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    async def story(world: RightsWorld) -> None:
        made = create_topics.CreateTopicsRequest((create_topics.CreatableTopic("orders", 1, 1),))
        await world.ask(create_topics.API, 7, made, principal=ADMIN)
        await world.ask(create_topics.API, 7, made, principal=ALICE)
        deletion = delete_topics.DeleteTopicsRequest((), ("orders",), 1000)
        for _ in range(3):
            await world.ask(delete_topics.API, 5, deletion, principal=ALICE)
        hidden = await world.ask(metadata.API, 12, metadata.MetadataRequest(None), principal=ALICE)
        assert hidden.response.topics == ()
        await world.door.node.stop()

    in_a_world_of_rights(story, "audit.file=-")
    lines = [line for line in capsysbinary.readouterr().err.splitlines() if line.startswith(b'{"class_uid"')]
    events = [msgspec.json.decode(line) for line in lines]
    assert list(verify(enumerate(lines))) == []
    assert [event["activity_name"] for event in events] == ["Start", "Stop", "Other", "Other"]
    assert {
        (event["api"]["operation"], event["resources"][0]["name"], event["count"]) for event in events[2:]
    } == {("CREATE", "Topic:orders", 1), ("DELETE", "Topic:orders", 3)}


def test_a_node_goes_on_where_its_file_ends(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    config = load(NodeOptions(http="none", data="/data", settings=(f"audit.file={path}",)), {})
    pool: Any = AtOnce()

    async def story() -> None:
        for _ in range(3):
            journal = await open_audit(config, HandClock(), pool)
            assert journal is not None
            journal.on_started("1.0")
            journal.on_stopping("1.0")
            await journal.finish()
        path.write_bytes(path.read_bytes() + b"no event\n")
        with pytest.raises(InvalidSetting, match=r"audit\.file"):
            await open_audit(config, HandClock(), pool)

    asyncio.run(story())
    lines = path.read_bytes().splitlines()[:-1]
    assert [msgspec.json.decode(line)["metadata"]["sequence"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert list(verify(enumerate(lines))) == []


def test_without_a_file_nothing_is_kept() -> None:
    config = load(NodeOptions(http="none", data="/data"), {})
    pool: Any = AtOnce()
    assert asyncio.run(open_audit(config, HandClock(), pool)) is None
