"""`ropewalk audit` as a user meets it, against a node."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ropewalk.cli.audit import line_of
from ropewalk.testing import Cluster
from tests.cli.conftest import Ropewalk


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ropewalk: Ropewalk) -> Iterator[None]:
    """After `ropewalk`, which clears the environment."""
    with Cluster(data=tmp_path / "data", settings={"audit.topic": True}) as cluster:
        monkeypatch.setenv("ROPEWALK_BOOTSTRAP", cluster.bootstrap)
        yield


@pytest.mark.usefixtures("node")
def test_changes_are_shown_and_verified(ropewalk: Ropewalk, tmp_path: Path) -> None:
    early = ropewalk("audit", "tail")
    assert early.exit_code == 1
    assert "there is no topic __audit" in early.stderr
    ropewalk("topic", "create", "__audit")  # it would come by itself, some seconds later
    ropewalk("topic", "create", "orders", "--partitions", "3")
    while True:
        shown = ropewalk("audit", "tail")
        assert shown.exit_code == 0, shown.stderr
        if "orders" in shown.stdout:
            break
    last = shown.stdout.splitlines()[-1]
    assert "User:ANONYMOUS from 127.0.0.1 CreateTopics: topic.created Topic:orders, " in last
    assert last.endswith("topic.partitions Topic:orders - -> 3")
    assert len(ropewalk("audit", "tail", "-n", "1").stdout.splitlines()) == 1
    assert ropewalk("audit", "verify").stdout == (
        "2 events, numbers 1 to 2: nothing was altered, and none is missing between them\n"
    )
    events = ropewalk("audit", "tail", "-o", "json").stdout
    assert [json.loads(line)["metadata"]["sequence"] for line in events.splitlines()] == [1, 2]
    kept = tmp_path / "events.json"
    kept.write_text(events)
    assert ropewalk("audit", "verify", "--file", str(kept)).exit_code == 0
    kept.write_text(events.replace("ANONYMOUS", "somebody else", 1))
    spoilt = ropewalk("audit", "verify", "--file", str(kept))
    assert spoilt.exit_code == 1
    assert "event 2: does not hold the one before it" in spoilt.stdout
    assert "1 fault in 2 events" in spoilt.stderr
    as_json = json.loads(ropewalk("audit", "verify", "-o", "json", "--file", str(kept)).stdout)
    assert (as_json["events"], as_json["first_number"], as_json["last_number"]) == (2, 1, 2)
    assert [fault["event"] for fault in as_json["faults"]] == [2]


def test_what_is_no_event_is_shown_as_it_is() -> None:
    assert line_of(b"{}") == "no event: {}"
    assert line_of(b"\xff") == "no event: \ufffd"
    gap = b'{"time": 0, "message": "changes 1 to 2 are missing"}'
    assert line_of(gap) == "1970-01-01 00:00:00Z changes 1 to 2 are missing"
