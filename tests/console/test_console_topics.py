"""Topics on pages: the list, one topic, and every change, asked of a live node by a bare browser."""

import re
from collections.abc import Iterator

import pytest

from ropewalk import Admin, Producer, TopicPartition
from ropewalk.base.limits import CONSOLE_ROWS_MAX
from ropewalk.testing import Cluster
from ropewalk.views.topic_list import ListedTopic, matching
from tests.console.asking import Browser, Page
from tests.console.tables import row

HOSTILE_GROUP = '<script>alert("g")</script>\u202egnp'


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    with Cluster() as cluster, Admin(cluster.bootstrap) as admin, Producer(cluster.bootstrap) as producer:
        cluster.create_topic("orders", partitions=3, retention_ms=86_400_000)
        admin.create_topic("payments", settings={"ropewalk.owner": "<b>team</b> & co"})
        cluster.create_queue("jobs")
        for number in range(12):
            producer.send("orders", b"%d" % number, partition=0)
        producer.flush()
        admin.commit("billing", {TopicPartition("orders", 0): 5})
        admin.commit("audit", {TopicPartition("orders", 0): 12, TopicPartition("orders", 1): 0})
        admin.commit(HOSTILE_GROUP, {TopicPartition("payments", 0): 0})
        yield cluster


@pytest.fixture
def browser(node: Cluster) -> Browser:
    return Browser(node.http)


@pytest.fixture
def admin(node: Cluster) -> Iterator[Admin]:
    with Admin(node.bootstrap) as client:
        yield client


def listed(page: Page) -> list[str]:
    return re.findall(r'<th scope="row"><a href="/console/topic\?name=([^"]+)"', page.text)


def test_the_list_says_who_is_how_far_behind(browser: Browser) -> None:
    page = browser.get("/console/topics")
    assert page.status == 200
    assert re.search(r"orders billing 7 audit 0 \S+ 12 \d+ B 3", row(page, "orders"))
    assert "queue" in row(page, "jobs")
    assert "queue" not in row(page, "orders")


def test_names_of_strangers_are_text_and_nothing_else(browser: Browser) -> None:
    page = browser.get("/console/topics")
    assert "<script>alert" not in page.text
    assert "<b>team" not in page.text
    assert '<script>alert("g")</script>\\u202egnp' in row(page, "payments")
    assert "<b>team</b> & co" in row(page, "payments")
    asked = browser.get("/console/topics?filter=%3Cimg%20src%3Dx%3E%22")
    assert "<img src=x" not in asked.text
    assert 'value="&lt;img src=x&gt;&#34;"' in asked.text


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["jobs", "orders", "payments"]),
        ("?filter=ORD", ["orders"]),
        ("?filter=team", ["payments"]),
        ("?filter=o+jo", ["jobs"]),
        ("?filter=none", []),
        ("?order=lag", ["orders", "jobs", "payments"]),
        ("?order=records", ["orders", "jobs", "payments"]),
        ("?order=nonsense&page=nonsense", ["jobs", "orders", "payments"]),
        ("?page=99", ["jobs", "orders", "payments"]),
        ("?page=-1", ["jobs", "orders", "payments"]),
        ("?internal=yes&filter=offsets", ["__consumer_offsets"]),
        ("?filter=offsets", []),
    ],
)
def test_the_list_is_filtered_and_ordered_by_its_address(
    browser: Browser, query: str, names: list[str]
) -> None:
    page = browser.get("/console/topics" + query)
    assert (page.status, listed(page)) == (200, names)


def test_a_topic_says_what_is_set_for_it_and_what_it_would_be(browser: Browser) -> None:
    page = browser.get("/console/topic?name=orders")
    assert page.status == 200
    assert row(page, "retention.ms").startswith(
        "retention.ms 86400000 otherwise 168 (log.retention.hours) How long"
    )
    assert row(page, "cleanup.policy").startswith("cleanup.policy delete What becomes")
    assert row(page, "0 0").startswith("0 0 epoch")
    assert " 0 12 " in row(page, "0 0")
    assert row(page, "billing") == "billing 7"
    assert row(page, "audit") == "audit 0"


@pytest.mark.parametrize("query", ["", "?name=", "?name=none", "?name=..", "?name=%00", "?name=" + "x" * 300])
def test_a_topic_that_is_not_there_is_said_not_to_be(browser: Browser, query: str) -> None:
    page = browser.get("/console/topic" + query)
    assert page.status == 404
    assert "This cannot be shown now" in page.words


def test_what_could_not_be_shown_is_tried_again_as_it_was_asked(browser: Browser) -> None:
    page = browser.get("/console/topic?name=no+%22such%22+topic&page=2&page=3")
    assert page.status == 404
    assert 'href="/console/topic?name=no+%22such%22+topic&amp;page=' in page.text


def test_a_topic_is_made_changed_grown_trimmed_and_deleted(
    node: Cluster, browser: Browser, admin: Admin
) -> None:
    made = browser.submit(
        "/console/topics",
        "/console/topics/create",
        name="life",
        partitions="2",
        owner="me",
        settings="retention.ms=1000\r\n cleanup.policy = compact ",
    )
    assert made.status == 303
    assert made.location.startswith("/console/topic?name=life&said=")
    page = browser.get(made.location)
    assert "life was created" in page.words
    assert "life was created" not in browser.get(made.location).words
    assert row(page, "cleanup.policy").startswith("cleanup.policy compact otherwise delete")
    about = "/console/topic?name=life"

    def act(action: str, **fields: object) -> Page:
        return browser.submit(about, f"/console/topic/{action}", name="life", **fields)

    assert act("change", setting="cleanup.policy", how="reset").status == 303
    assert act("change", setting="retention.ms", how="set", value="-1").status == 303
    settings = {each.name: each.value for each in admin.topic_settings("life")}
    assert (settings["cleanup.policy"], settings["retention.ms"]) == ("delete", "-1")

    assert act("grow", count="3").status == 303
    assert len(admin.describe_topic("life").partitions) == 5

    with Producer(node.bootstrap) as producer:
        for _ in range(4):
            producer.send("life", b"x", partition=1)
        producer.flush()
    done = act("trim", until="-1", typed="life")
    assert "3 records were removed from life" in browser.get(done.location).words
    assert admin.beginning_offsets("life")[TopicPartition("life", 1)] == 3

    done = act("delete", typed="life")
    assert done.location.startswith("/console/topics?said=")
    assert "life was deleted" in browser.get(done.location).words
    assert "life" not in admin.topics()
    assert browser.get(about).status == 404


@pytest.mark.parametrize(
    ("action", "fields", "status", "said"),
    [
        ("topics/create", {"name": ""}, 409, "INVALID_TOPIC_EXCEPTION"),
        ("topics/create", {"name": "a b"}, 409, "INVALID_TOPIC_EXCEPTION"),
        ("topics/create", {"name": "orders"}, 409, "TOPIC_ALREADY_EXISTS"),
        ("topics/create", {"name": "t", "partitions": "0"}, 422, "write a number, 1 or more"),
        ("topics/create", {"name": "t", "partitions": "two"}, 422, "'two' is none"),
        ("topics/create", {"name": "t", "partitions": "9" * 40}, 422, "is none"),
        ("topics/create", {"name": "t", "partitions": "999999999"}, 409, "INVALID_PARTITIONS"),
        ("topics/create", {"name": "t", "replicas": "3"}, 409, "INVALID_REPLICATION_FACTOR"),
        ("topics/create", {"name": "t", "settings": "retention.ms"}, 422, "write one KEY=VALUE"),
        ("topics/create", {"name": "t", "settings": "retention.ms=soon"}, 409, "INVALID_CONFIG"),
        ("topic/change", {"name": "orders"}, 422, "choose a setting"),
        ("topic/change", {"name": "orders", "setting": "none", "value": "1"}, 409, "INVALID_CONFIG"),
        ("topic/change", {"name": "orders", "setting": "retention.ms", "value": "x"}, 409, "INVALID_CONFIG"),
        ("topic/change", {"name": "none", "setting": "retention.ms", "value": "1"}, 404, "none"),
        ("topic/grow", {"name": "orders", "count": "0"}, 422, "write a number, 1 or more"),
        ("topic/grow", {"name": "orders", "count": ""}, 422, "write a number, 1 or more"),
        ("topic/trim", {"name": "orders", "until": "end", "typed": "order"}, 422, "nothing was done"),
        ("topic/trim", {"name": "orders", "until": "soon", "typed": "orders"}, 422, "is not an offset"),
        ("topic/trim", {"name": "orders", "until": "999", "typed": "orders"}, 422, "has offsets 0 to 12"),
        (
            "topic/trim",
            {"name": "orders", "until": "end", "partitions": "x", "typed": "orders"},
            422,
            "list of",
        ),
        ("topic/delete", {"name": "orders"}, 422, "nothing was done"),
        ("topic/delete", {"name": "orders", "typed": "ORDERS"}, 422, "nothing was done"),
        ("topic/delete", {"name": "none", "typed": "none"}, 404, "none"),
        ("topic/explode", {"name": "orders"}, 404, "no such action"),
    ],
)
def test_what_cannot_be_done_is_said_where_it_was_filled_in(
    browser: Browser, admin: Admin, action: str, fields: dict[str, str], status: int, said: str
) -> None:
    before = (admin.topics(), admin.topic_settings("orders"), admin.beginning_offsets("orders"))
    page = browser.submit("/console/topics", f"/console/{action}", **fields)
    assert page.status == status, page.words
    assert said in page.words
    assert before == (admin.topics(), admin.topic_settings("orders"), admin.beginning_offsets("orders"))


def test_what_was_filled_in_is_there_again(browser: Browser) -> None:
    page = browser.submit(
        "/console/topics", "/console/topics/create", name='a"b<', partitions="7", settings="x=<y>\u202e"
    )
    assert 'value="a&#34;b&lt;"' in page.text
    assert 'name="partitions" type="text" value="7"' in page.text
    assert "x=&lt;y&gt;\u202e</textarea>" in page.text


@pytest.mark.parametrize(
    "action", ["topics/create", "topic/change", "topic/grow", "topic/trim", "topic/delete"]
)
def test_nothing_changes_without_the_token(browser: Browser, admin: Admin, action: str) -> None:
    fields = {"name": "orders", "typed": "orders", "until": "end", "setting": "retention.ms", "count": "1"}
    browser.get("/console/topics")
    page = browser.post(f"/console/{action}", fields)
    assert page.status == 403
    foreign = Browser(browser.base).get("/console/topics").token
    assert browser.post(f"/console/{action}", {**fields, "console_token": foreign}).status == 403
    assert len(admin.describe_topic("orders").partitions) == 3
    assert admin.beginning_offsets("orders")[TopicPartition("orders", 0)] == 0


def test_a_console_that_only_reads_has_no_forms_and_refuses() -> None:
    with Cluster(settings={"console.readonly": "true"}) as cluster:
        cluster.create_topic("orders")
        browser = Browser(cluster.http)
        for path in ("/console/topics", "/console/topic?name=orders"):
            page = browser.get(path)
            assert page.status == 200
            assert 'method="post"' not in page.text
            assert "This console only reads" in page.words
        page = browser.post("/console/topic/delete", {"name": "orders", "typed": "orders"})
        assert page.status == 403
        assert cluster.topics() == ["orders"]


def test_a_long_list_has_pages() -> None:
    with Cluster() as cluster, Admin(cluster.bootstrap) as admin:
        admin.create_topic("wide", partitions=CONSOLE_ROWS_MAX + 1)
        for number in range(CONSOLE_ROWS_MAX + 1):
            admin.create_topic(f"t{number:03}")
        browser = Browser(cluster.http)
        first, second = (browser.get(f"/console/topics?page={number}") for number in (1, 2))
        assert listed(first)[0] == "t000"
        assert len(listed(first)) == CONSOLE_ROWS_MAX
        assert listed(second) == [f"t{CONSOLE_ROWS_MAX}", "wide"]
        assert '<a class="button" rel="next" href="/console/topics?page=2">' in first.text
        assert '<a class="button" rel="prev" href="/console/topics?page=1">' in second.text
        partitions = browser.get("/console/topic?name=wide&page=2")
        assert row(partitions, f"{CONSOLE_ROWS_MAX} ")


def test_words_are_looked_for_in_names_owners_and_queues() -> None:
    def topic(name: str, owner: str | None = None, queue: str | None = None) -> ListedTopic:
        return ListedTopic(name, False, queue, owner, 1, 1, 0, 0, None, None, ())

    topics = [topic("a"), topic("b", "Anna"), topic("c", queue="ab")]
    assert [each.name for each in matching(topics, "a")] == ["a", "b", "c"]
    assert [each.name for each in matching(topics, "A b")] == ["b", "c"]
    assert [each.name for each in matching(topics, "a\nb")] == ["b", "c"]
    assert matching(topics, "aa") == []
