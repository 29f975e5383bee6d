"""Messages on a page: where to begin, which are wanted, how they are shown, and that looking changes nothing."""

import re
from collections.abc import Iterator

import pytest

from ropewalk import Admin, Producer, TopicPartition
from ropewalk.base.limits import CONSOLE_LOOKED_AT_MAX, CONSOLE_VALUE_CHARACTERS_MAX
from ropewalk.testing import Cluster
from tests.console.asking import Browser, Page

HOSTILE = '<img src=x onerror="alert(1)">\u202e\x1b[31m'


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    with Cluster() as cluster, Producer(cluster.bootstrap) as producer:
        for topic in ("orders", "strange", "many", "empty"):
            cluster.create_topic(topic, partitions=2)
        for number in range(60):
            order = b'{"id": %d, "who": {"city": "Bergen"}}' % number
            producer.send("orders", order, partition=number % 2, timestamp_ms=1_000_000 + number)
        producer.send(
            "strange",
            HOSTILE.encode(),
            key=HOSTILE.encode(),
            headers=[("<b>h</b>", b"<i>v</i>"), ("raw", b"\xff\x00")],
            partition=0,
            timestamp_ms=1,
        )
        values: list[bytes | None] = [
            b"\xff\xfe\x00",
            b"[" * 10_000,
            b"x" * (CONSOLE_VALUE_CHARACTERS_MAX + 5),
            None,
        ]
        for value in values:
            producer.send("strange", value, key=b"k", partition=1, timestamp_ms=2)
        for number in range(CONSOLE_LOOKED_AT_MAX + 1_000):
            producer.send("many", b"needle" if number == CONSOLE_LOOKED_AT_MAX + 500 else b"hay", partition=0)
        producer.flush()
        yield cluster


@pytest.fixture
def browser(node: Cluster) -> Browser:
    return Browser(node.http)


def places(page: Page) -> list[tuple[int, int]]:
    """Partition and offset of each message."""
    found = re.findall(r"<strong>(\d+) · (\d+)</strong>", page.text)
    return [(int(index), int(offset)) for index, offset in found]


def onward(page: Page) -> str | None:
    found = re.search(r'rel="next" href="([^"]+)"', page.text)
    return None if found is None else found[1].replace("&amp;", "&")


def test_the_last_come_first(browser: Browser) -> None:
    page = browser.get("/console/messages?name=orders&count=20")
    assert page.status == 200
    assert places(page) == [(number % 2, number // 2) for number in range(59, 39, -1)]
    assert '"city": "Bergen"' in page.words
    assert "20 of 40 that were looked at" in page.words
    assert 'href="/console/messages?name=orders"' in browser.get("/console/topic?name=orders").text


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("from=offset&value=28&partitions=0", [(0, 28), (0, 29)]),
        ("from=offset&value=30&partitions=1", []),
        ("from=time&value=1000057", [(1, 28), (0, 29), (1, 29)]),
        ("from=time&value=1970-01-01T00:16:40.058", [(0, 29), (1, 29)]),
        ("from=beginning&text=%22id%22%3A%207%2C", [(1, 3)]),
        ("from=beginning&expression=id.: (11|12),", [(1, 5), (0, 6)]),
        ("from=beginning&path=id+%3E%3D+58", [(0, 29), (1, 29)]),
        ("from=beginning&path=who.city+%3D+Bergen&text=59", [(1, 29)]),
        ("from=last&path=id+%3D+3", [(1, 1)]),
        ("from=beginning&text=none", []),
    ],
)
def test_what_is_wanted_is_shown(browser: Browser, query: str, expected: list[tuple[int, int]]) -> None:
    page = browser.get("/console/messages?name=orders&" + query.replace(" ", "%20"))
    assert page.status == 200, page.words
    assert places(page) == expected


def test_one_goes_on_until_the_end_and_sees_every_message_once(browser: Browser) -> None:
    page = browser.get("/console/messages?name=orders&from=beginning&count=20")
    seen = places(page)
    while (address := onward(page)) is not None:
        page = browser.get(address)
        seen += places(page)
    assert sorted(seen) == [(index, offset) for index in (0, 1) for offset in range(30)]
    assert "That was the end." in page.words


def test_a_search_ends_after_so_much_and_goes_on_from_there(browser: Browser) -> None:
    page = browser.get("/console/messages?name=many&from=beginning&text=needle")
    assert places(page) == []
    assert "Nothing fits among the" in page.words
    address = onward(page)
    assert address is not None
    found = browser.get(address)
    assert places(found) == [(0, CONSOLE_LOOKED_AT_MAX + 500)]
    assert onward(found) is None


def test_what_strangers_wrote_is_text(browser: Browser) -> None:
    page = browser.get("/console/messages?name=strange")
    assert page.status == 200
    seen = '<img src=x onerror="alert(1)">\\u202e\\x1b[31m'
    assert f"Key {seen} {seen}" in page.words
    assert "<b>h</b> <i>v</i>" in page.words
    assert "raw ff00" in page.words
    assert "ff fe00" in page.words
    assert "and 5 characters more" in page.words
    assert "No value" in page.words
    for markup in ("<img src=x", "<b>h", "<i>v", "\u202e", "\x1b"):
        assert markup not in page.text


@pytest.mark.parametrize("form", ["auto", "json", "text", "hex", "none"])
def test_every_way_to_show_takes_any_bytes(browser: Browser, form: str) -> None:
    page = browser.get(f"/console/messages?name=strange&form={form}")
    assert (page.status, len(places(page))) == (200, 5)
    assert "<img" not in page.text.partition("<main")[2]


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("", 404, "say which topic"),
        ("name=none", 404, "there is no topic 'none'"),
        ("name=orders&partitions=7", 404, "there is no topic"),
        ("name=orders&partitions=x", 422, "is not a list of partitions"),
        ("name=orders&from=nowhere", 422, "choose where to begin"),
        ("name=orders&from=offset", 422, "write a number"),
        ("name=orders&from=offset&value=99&partitions=0", 422, "has offsets 0 to 30"),
        ("name=orders&from=time&value=soon", 422, "is not a time"),
        ("name=orders&expression=(", 422, "missing )"),
        ("name=orders&path=%3D", 422, "does not begin with a path"),
        ("name=orders&text=" + "x" * 5_000, 422, "longer than"),
        ("name=orders&at=0", 422, "write a number"),
        ("name=orders&at=0:x", 422, "write a number"),
        ("name=orders&at=9:0", 404, "there is no topic"),
    ],
)
def test_what_cannot_be_meant_is_said(browser: Browser, query: str, status: int, said: str) -> None:
    page = browser.get(f"/console/messages?{query}")
    assert page.status == status, page.words
    assert said in page.words


@pytest.mark.parametrize("query", ["at=0:9999", "count=999999", "at=0:30", "partitions=0"])
def test_what_is_too_much_is_brought_back(browser: Browser, query: str) -> None:
    page = browser.get(f"/console/messages?name=orders&{query}")
    assert page.status == 200
    assert len(places(page)) <= 50


def test_looking_changes_nothing(node: Cluster, browser: Browser) -> None:
    with Admin(node.bootstrap) as admin:
        admin.commit("billing", {TopicPartition("orders", 0): 7})
        before = ([each.group for each in admin.groups()], admin.committed("billing"))
        for query in ("", "&from=beginning", "&text=Bergen"):
            assert browser.get(f"/console/messages?name=orders{query}").status == 200
        assert before == ([each.group for each in admin.groups()], admin.committed("billing"))


def test_a_console_without_messages_has_no_such_page() -> None:
    with Cluster(settings={"console.messages": "off"}) as cluster:
        cluster.create_topic("orders")
        browser = Browser(cluster.http)
        assert browser.get("/console/messages?name=orders").status == 404
        assert "/console/messages" not in browser.get("/console/topic?name=orders").text


def test_a_topic_without_records_says_so(browser: Browser) -> None:
    assert "There is nothing there." in browser.get("/console/messages?name=empty").words
