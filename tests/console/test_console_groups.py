"""Groups on pages: the list, one group, a reset that is shown before it is done, and what can be deleted."""

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from ropewalk import Admin, Consumer, Producer, TopicPartition
from ropewalk.console.pages.reset import read, written
from ropewalk.testing import Cluster
from ropewalk.views.group_reset import Move
from tests.console.asking import Browser
from tests.console.tables import row

HOSTILE = '"><img src=x onerror=alert(1)>\u202e\x1b[31m'


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    with Cluster() as cluster, Producer(cluster.bootstrap) as producer, Admin(cluster.bootstrap) as admin:
        cluster.create_topic("orders", partitions=3)
        cluster.create_topic("payments")
        for number in range(10):
            producer.send("orders", b"%d" % number, partition=0, timestamp_ms=1_000 + number)
        producer.send("orders", b"x", partition=1)
        producer.flush()
        admin.commit("billing", {TopicPartition("orders", 0): 4, TopicPartition("payments", 0): 0})
        admin.commit(HOSTILE, {TopicPartition("orders", 0): 10})
        with Consumer(cluster.bootstrap, group="live", client_id="<i>reader</i>") as consumer:
            consumer.subscribe(["orders"])
            while len(consumer.assignment) < 3:
                consumer.poll()
            consumer.commit()
            yield cluster


@pytest.fixture
def browser(node: Cluster) -> Browser:
    return Browser(node.http)


@pytest.fixture
def admin(node: Cluster) -> Iterator[Admin]:
    with Admin(node.bootstrap) as client:
        yield client


def test_the_list_begins_with_who_is_furthest_behind(browser: Browser) -> None:
    page = browser.get("/console/groups")
    assert page.status == 200
    assert page.words.index("billing") < page.words.index("live")
    assert row(page, "billing").startswith("billing 6 ")
    assert "nobody reads" in row(page, "billing")
    assert row(page, "live").endswith("1 ✓ reads")
    assert row(browser.get("/console/groups?filter=LIV"), "live")
    assert "No group has “none”" in browser.get("/console/groups?filter=none").words
    assert browser.get("/console/groups?order=x&page=x").status == 200


def test_a_group_says_how_far_and_for_how_long_it_is_behind(browser: Browser) -> None:
    page = browser.get("/console/group?name=billing")
    assert page.status == 200
    words = row(page, "orders -0").split()
    assert words[2] == "6"
    assert "d" in words, "its records are of 1970"
    assert row(page, "payments -0") == "payments -0 0 – 0 0 –"
    assert "Nobody reads in its name" in page.words
    live = browser.get("/console/group?name=live")
    assert row(live, "<i>reader</i>").startswith("<i>reader</i> 127.0.0.1 orders: 0, 1, 2")


def test_names_of_strangers_are_text_and_lead_where_they_should(browser: Browser) -> None:
    seen = '"><img src=x onerror=alert(1)>\\u202e\\x1b[31m'
    for path in (
        "/console/groups",
        f"/console/group?name={quote(HOSTILE)}",
        f"/console/reset?name={quote(HOSTILE)}",
    ):
        page = browser.get(path)
        assert page.status == 200
        assert "<img src=x" not in page.text
        assert "<i>reader" not in page.text
        assert "\u202e\x1b" not in page.words
        assert seen in page.words
    assert "name=%22%3E%3Cimg+src%3Dx" in browser.get("/console/groups").text


@pytest.mark.parametrize(
    "path", ["group", "group?name=", "group?name=none", "group?name=" + "n" * 999, "reset"]
)
def test_a_group_that_is_not_there_is_said_not_to_be(browser: Browser, path: str) -> None:
    page = browser.get(f"/console/{path}")
    assert page.status == 404
    assert "This cannot be shown now" in page.words


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("to=earliest&topics=orders:0", "orders-0 4 0 4 again"),
        ("to=latest&topics=orders:0", "orders-0 4 10 6 skipped"),
        ("to=latest&topics=orders:1", "orders-1 – 1 –"),
        ("to=offset&value=7&topics=orders:0", "orders-0 4 7 3 skipped"),
        ("to=offset&value=99&topics=orders:0", "orders-0 4 10 6 skipped"),
        ("to=shift&value=-3&topics=orders:0", "orders-0 4 1 3 again"),
        ("to=time&value=1004&topics=orders:0", "orders-0 4 4 none"),
        ("to=time&value=1970-01-01T00:00:01.002&topics=orders:0", "orders-0 4 2 2 again"),
        ("to=ago&value=1h&topics=orders:0", "orders-0 4 10 6 skipped"),
        ("to=earliest", "payments-0 0 0 none"),
    ],
)
def test_a_reset_is_shown_and_changes_nothing(browser: Browser, admin: Admin, query: str, said: str) -> None:
    before = admin.committed("billing")
    page = browser.get(f"/console/reset?name=billing&{query}")
    assert page.status == 200
    assert row(page, said.split()[0]) == said
    assert admin.committed("billing") == before


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("to=nowhere", "choose where to"),
        ("to=offset", "write a number"),
        ("to=offset&value=-1", "write a number"),
        ("to=time&value=soon", "'soon' is not a time"),
        ("to=ago&value=1w", "is not a duration"),
        ("to=shift&value=1&topics=orders:1", "nothing to shift"),
        ("to=latest&topics=none", "none"),
        ("to=latest&topics=orders:x", "is not a list of partitions"),
        ("to=latest&topics=orders:9", "is not there"),
        ("to=latest&topics=%3Cb%3E", "<b>"),
    ],
)
def test_a_reset_that_cannot_be_is_said_not_to(browser: Browser, query: str, said: str) -> None:
    page = browser.get(f"/console/reset?name=billing&{query}")
    assert page.status == 200
    assert said in page.words
    assert "Do it" not in page.words
    assert "<b>" not in page.text.replace("<body>", "")


def test_a_reset_does_what_was_shown(browser: Browser, admin: Admin) -> None:
    admin.commit("moved", {TopicPartition("orders", 0): 4})
    about = "/console/reset?name=moved&to=latest&topics=orders"
    shown = browser.get(about)
    assert 'name="move" value="orders:0.10-1.1-2.0"' in shown.text
    done = browser.submit(about, "/console/reset/now", name="moved", move=["orders:0.10-1.1-2.0"])
    assert done.status == 303
    assert "moved goes on elsewhere in 3 partitions" in browser.get(done.location).words
    assert {at: each.offset for at, each in admin.committed("moved").items()} == {
        TopicPartition("orders", 0): 10,
        TopicPartition("orders", 1): 1,
        TopicPartition("orders", 2): 0,
    }


def test_offsets_of_topics_and_groups_are_deleted(browser: Browser, admin: Admin) -> None:
    admin.commit("old", {TopicPartition("orders", 0): 4, TopicPartition("payments", 0): 0})
    about = "/console/group?name=old"
    done = browser.submit(about, "/console/group/forget", name="old", topic=["orders"])
    assert done.location.startswith("/console/group?name=old&said=")
    assert list(admin.committed("old")) == [TopicPartition("payments", 0)]
    done = browser.submit(about, "/console/group/delete", name="old", typed="old")
    assert done.location.startswith("/console/groups?said=")
    assert admin.committed("old") == {}
    assert browser.get(about).status == 404


@pytest.mark.parametrize(
    ("action", "fields", "status", "said"),
    [
        ("reset/now", {"name": "billing"}, 422, "nothing to reset"),
        ("reset/now", {"name": "billing", "move": "orders:0"}, 422, "write a number"),
        ("reset/now", {"name": "billing", "move": "orders:x.1"}, 422, "write a number"),
        ("reset/now", {"name": "live", "move": "orders:0.1"}, 409, "UNKNOWN_MEMBER_ID"),
        ("group/forget", {"name": "billing"}, 422, "choose the topics"),
        ("group/forget", {"name": "billing", "topic": "none"}, 422, "has committed no offsets"),
        ("group/forget", {"name": "live", "topic": "orders"}, 409, "GROUP_SUBSCRIBED_TO_TOPIC"),
        ("group/delete", {"name": "billing", "typed": "bill"}, 422, "nothing was done"),
        ("group/delete", {"name": "live", "typed": "live"}, 409, "NON_EMPTY_GROUP"),
    ],
)
def test_what_cannot_be_done_is_said_where_it_was_asked(
    browser: Browser, admin: Admin, action: str, fields: dict[str, str], status: int, said: str
) -> None:
    before = [admin.committed(group) for group in ("billing", "live")]
    page = browser.submit("/console/group?name=billing", f"/console/{action}", **fields)
    assert page.status == status, page.words
    assert said in page.words
    assert [admin.committed(group) for group in ("billing", "live")] == before


@pytest.mark.parametrize("action", ["reset/now", "group/forget", "group/delete"])
def test_nothing_changes_without_the_token(browser: Browser, admin: Admin, action: str) -> None:
    browser.get("/console/groups")
    fields = {"name": "billing", "typed": "billing", "topic": "orders", "move": "orders:0.0"}
    assert browser.post(f"/console/{action}", fields).status == 403
    assert admin.committed("billing")[TopicPartition("orders", 0)].offset == 4


def test_a_console_that_only_reads_shows_a_reset_and_does_none() -> None:
    with Cluster(settings={"console.readonly": "true"}) as cluster, Admin(cluster.bootstrap) as admin:
        cluster.create_topic("orders")
        admin.commit("billing", {TopicPartition("orders", 0): 0})
        browser = Browser(cluster.http)
        for path in ("group?name=billing", "reset?name=billing&to=latest"):
            page = browser.get(f"/console/{path}")
            assert page.status == 200
            assert 'method="post"' not in page.text
        assert browser.post("/console/group/delete", {"name": "billing", "typed": "billing"}).status == 403
        assert admin.committed("billing")


def test_a_reset_of_very_many_partitions_fits_into_its_form() -> None:
    with Cluster() as cluster, Admin(cluster.bootstrap) as admin:
        name = "t" * 200
        admin.create_topic(name, partitions=1_000)
        admin.commit("wide", {TopicPartition(name, index): 0 for index in range(1_000)})
        browser = Browser(cluster.http)
        about = "/console/reset?name=wide&to=earliest"
        fields = re.findall(r'name="move" value="([^"]+)"', browser.get(about).text)
        done = browser.submit(about, "/console/reset/now", name="wide", move=fields)
        assert "wide goes on elsewhere in 1,000 partitions" in browser.get(done.location).words
        admin.create_topic("more")
        more = browser.get(f"{about}&topics={name}+more")
        assert "1,000 go at a time" in more.words
        assert "Do it" not in more.words


def test_targets_are_written_and_read_back() -> None:
    moves = [Move(TopicPartition("a.b-c", index), None, 7 * index) for index in (0, 12)]
    moves.append(Move(TopicPartition("d", 1), 5, 9))
    assert written(moves) == ["a.b-c:0.0-12.84", "d:1.9"]
    assert read(written(moves)) == {each.at: each.target for each in moves}
