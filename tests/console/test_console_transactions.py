"""Transactions on a page: those that are open, an end to one, and that none hangs."""

from collections.abc import Iterator

import pytest

from ropewalk import Producer, RopewalkError
from ropewalk.testing import Cluster
from tests.console.asking import Browser
from tests.console.tables import row

HOSTILE = "<b>till</b>"


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    with Cluster() as cluster:
        cluster.create_topic("orders")
        yield cluster


def test_an_open_transaction_is_shown_and_aborted(node: Cluster) -> None:
    browser = Browser(node.http)
    assert "There is no transactional id yet." in browser.get("/console/transactions").words
    producer = Producer(node.bootstrap, transactional_id=HOSTILE)
    producer.start()
    producer.begin_transaction()
    producer.send("orders", b"x")
    producer.flush()
    page = browser.get("/console/transactions")
    assert page.status == 200
    assert "1 open, 1 ids" in page.words
    assert row(page, HOSTILE).startswith(f"{HOSTILE} ! open ")
    assert "orders-0" in row(page, HOSTILE)
    assert HOSTILE not in page.text
    assert "No transaction hangs" in browser.get("/console/transactions?hanging=yes").words
    assert "No id has “none”" in browser.get("/console/transactions?filter=none").words

    assert browser.post("/console/transactions/abort", {"transaction": HOSTILE}).status == 403
    done = browser.submit("/console/transactions", "/console/transactions/abort", transaction=HOSTILE)
    page = browser.get(done.location)
    assert "is aborted, and its producer has to begin anew" in page.words
    assert "! open" not in row(page, HOSTILE)
    with pytest.raises(RopewalkError):
        producer.commit_transaction()
    producer.close()
    done = browser.submit("/console/topics", "/console/transactions/abort", transaction=HOSTILE)
    assert "has none open" in browser.get(done.location).words


@pytest.mark.parametrize(
    ("action", "fields", "status", "said"),
    [
        ("abort", {}, 422, "say which"),
        ("abort", {"transaction": "none"}, 404, "TRANSACTIONAL_ID_NOT_FOUND"),
        ("end", {}, 422, "write a number"),
        (
            "end",
            {"topic": "orders", "partition": "0", "producer": "7", "first": "0"},
            422,
            "does not hang any more",
        ),
        ("end", {"topic": "none", "partition": "0", "producer": "7", "first": "0"}, 422, "does not hang"),
    ],
)
def test_what_cannot_be_ended_is_said(
    node: Cluster, action: str, fields: dict[str, str], status: int, said: str
) -> None:
    browser = Browser(node.http)
    page = browser.submit("/console/topics", f"/console/transactions/{action}", **fields)
    assert page.status == status, page.words
    assert said in page.words
