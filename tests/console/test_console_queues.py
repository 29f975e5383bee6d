"""Queues on pages: figures, and a look at messages that changes nothing."""

from collections.abc import Iterator

import pytest

from ropewalk import Queue
from ropewalk.testing import Cluster
from tests.console.asking import Browser
from tests.console.tables import row

HOSTILE = "<script>alert('m')</script>\u202e"


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    with Cluster() as cluster:
        cluster.create_queue("jobs", visibility_timeout=600)
        cluster.create_queue("mail.fifo")
        cluster.create_topic("plain")
        with Queue("jobs", endpoint=cluster.sqs) as queue:
            queue.send("first job")
            assert [each.body for each in queue.receive(1)] == ["first job"]
            queue.send(HOSTILE, attributes={"who": "<i>me"})
            queue.send("x" * 5_000)
            queue.send("later", delay_s=600)
        yield cluster


@pytest.fixture
def browser(node: Cluster) -> Browser:
    return Browser(node.http)


def test_the_list_has_what_is_visible_in_flight_and_delayed(browser: Browser) -> None:
    page = browser.get("/console/queues")
    assert page.status == 200
    assert row(page, "jobs").startswith("jobs 2 1 1 ")
    assert row(page, "mail.fifo").startswith("mail.fifo 0 0 0 ")
    assert "plain" not in page.words
    assert "mail.fifo" not in browser.get("/console/queues?filter=JOB").words
    assert "No queue has “none”" in browser.get("/console/queues?filter=none").words


def test_a_look_at_messages_changes_nothing(browser: Browser) -> None:
    before = row(browser.get("/console/queues"), "jobs")
    page = browser.get("/console/queue?name=jobs")
    assert page.status == 200
    assert "first job" not in page.words
    assert "VisibilityTimeout 600" in page.words
    for _ in range(3):
        seen = browser.get("/console/queue?name=jobs&peek=yes")
        assert "first job" in seen.words
        assert "later" in seen.words
        assert "and 3,000 characters more" in seen.words
        assert "<script>alert('m')</script>\\u202e" in seen.words
        assert "who: <i>me" in seen.words
        assert "<script>alert" not in seen.text
        assert "<i>" not in seen.text
    assert row(browser.get("/console/queues"), "jobs") == before


@pytest.mark.parametrize("query", ["", "?name=none", "?name=plain", "?name=%3Cb%3E", "?name=" + "n" * 200])
def test_a_queue_that_is_not_there_is_said_not_to_be(browser: Browser, query: str) -> None:
    page = browser.get("/console/queue" + query)
    assert page.status in (404, 409)
    assert "This cannot be shown now" in page.words
    assert "<b>" not in page.text


def test_a_console_without_messages_shows_none() -> None:
    with Cluster(settings={"console.messages": "off"}) as cluster:
        cluster.create_queue("jobs")
        browser = Browser(cluster.http)
        page = browser.get("/console/queue?name=jobs")
        assert page.status == 200
        assert "This console shows no messages" in page.words
        page = browser.get("/console/queue?name=jobs&peek=yes")
        assert page.status == 422
        assert "console.messages=off" in page.words


def test_who_has_to_log_in_gets_no_figures_by_keys_of_others(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    data = tmp_path_factory.mktemp("data")
    with Cluster(data=data) as cluster:
        cluster.create_queue("jobs")
        fields = {"who": "alice", "password": "p", "mechanism": "SCRAM-SHA-256"}
        done = Browser(cluster.http).submit("/console/access", "/console/access/set-password", **fields)
        assert done.status == 303
    settings = {
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": "none",
    }
    with Cluster(data=data, settings=settings) as cluster:
        browser = Browser(cluster.http)
        browser.submit("/console/login", "/console/login", user="alice", password="p")
        page = browser.get("/console/queues")
        assert row(page, "jobs").startswith("jobs – – – ")
        assert "which asks for keys" in page.words
        assert browser.get("/console/queue?name=jobs&peek=yes").status == 422
