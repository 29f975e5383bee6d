"""The console in Chromium: what scripts do, in light and dark, on a phone, and by the keyboard alone; and that nothing is asked of elsewhere."""

import shutil
from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, sync_playwright

from ropewalk import Admin, Producer, TopicPartition
from ropewalk.testing import Cluster

PAGES = (
    *("", "topics", "topic?name=orders", "messages?name=orders", "groups", "group?name=billing"),
    *(
        "reset?name=billing&to=earliest",
        "queues",
        "queue?name=jobs&peek=yes",
        "cluster",
        "alerts",
        "settings",
    ),
    *("access", "transactions", "none"),
)
WIDE: ViewportSize = {"width": 1200, "height": 900}
PHONE: ViewportSize = {"width": 360, "height": 740}
PATIENCE_MS = 120_000
"""Of a machine that has much else to do; nothing takes so long that goes well."""
LONG = "a-name-without-any-place-to-break-it-that-goes-on-and-on-and-on-and-on-and-on"


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    with Cluster() as cluster, Producer(cluster.bootstrap) as producer, Admin(cluster.bootstrap) as admin:
        cluster.create_topic("orders", partitions=2)
        cluster.create_topic(LONG)
        cluster.create_queue("jobs")
        for number in range(20):
            producer.send("orders", b'{"id": %d, "text": "%s"}' % (number, LONG.encode()), key=LONG.encode())
        producer.flush()
        admin.commit("billing", {TopicPartition("orders", 0): 0, TopicPartition("orders", 1): 0})
        admin.commit(LONG, {TopicPartition(LONG, 0): 0})
        yield cluster


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium")
    assert program is not None, "Debian's chromium is named in tools/check.py"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, timeout=PATIENCE_MS, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


class Visit:
    """A browser's window, with what it complained of and whom it asked."""

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.base = base
        context.set_default_timeout(PATIENCE_MS)
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.asked: set[str] = set()
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda told: self._hear(told.type, told.text))
        self.page.on("request", lambda request: self.asked.add(urlsplit(request.url).netloc))

    def go(self, path: str) -> Page:
        self.page.goto(f"{self.base}/console/{path}", wait_until="load")
        return self.page

    def _hear(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and "404 (Not Found)" not in text:  # the page that is not there
            self.complaints.append(text)


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", WIDE), ("light", PHONE)])
def test_every_page_is_quiet_asks_nobody_else_and_fits(
    chromium: Browser, node: Cluster, scheme: Literal["light", "dark"], size: ViewportSize
) -> None:
    with chromium.new_context(color_scheme=scheme, viewport=size) as context:
        visit = Visit(context, node.http)
        grounds = set()
        for path in PAGES:
            page = visit.go(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], path
            grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert visit.complaints == []
        assert visit.asked == {urlsplit(node.http).netloc}
        assert grounds == {"rgb(251, 251, 250)" if scheme == "light" else "rgb(17, 22, 21)"}


def test_colours_are_chosen_and_kept(chromium: Browser, node: Cluster) -> None:
    with chromium.new_context(color_scheme="light", viewport=WIDE) as context:
        page = Visit(context, node.http).go("topics")
        switch = page.locator("[data-theme-switch]")
        switch.click()
        switch.click()
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        page.reload(wait_until="load")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 22, 21)"


def test_the_keyboard_leads_everywhere(chromium: Browser, node: Cluster) -> None:
    with chromium.new_context(viewport=WIDE) as context:
        page = Visit(context, node.http).go("topics")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("/")
        page.keyboard.type("orders")
        page.keyboard.press("Enter")
        page.wait_for_url("**/topics?filter=orders")
        assert page.locator("tbody tr").count() == 1
        page.keyboard.press("g")
        page.keyboard.press("c")
        page.wait_for_url("**/console/groups")
        page.keyboard.press("?")
        assert page.locator("dialog[open]").count() == 1
        page.keyboard.press("Escape")
        assert page.locator("dialog[open]").count() == 0


def test_a_name_is_typed_before_anything_is_gone(chromium: Browser, node: Cluster) -> None:
    node.create_topic("doomed")
    with chromium.new_context(viewport=PHONE) as context:
        visit = Visit(context, node.http)
        page = visit.go("topic?name=doomed")
        page.get_by_text("Delete the topic").click()
        form = page.locator("form[action$='/topic/delete']")
        button = form.locator("button")
        assert button.is_disabled()
        form.locator("input[name=typed]").fill("doom")
        assert button.is_disabled()
        form.locator("input[name=typed]").fill("doomed")
        button.click()
        page.wait_for_url("**/topics?said=*")
        assert "doomed was deleted" in page.inner_text("main")
        assert visit.complaints == []
    assert "doomed" not in node.topics()


def test_times_are_of_the_reader_and_charts_are_drawn(chromium: Browser, node: Cluster) -> None:
    with chromium.new_context(viewport=WIDE, timezone_id="Asia/Tokyo", locale="en-GB") as context:
        visit = Visit(context, node.http)
        page = visit.go("")
        page.wait_for_selector(".chart canvas")
        page.wait_for_selector("time[data-local]")
        assert page.inner_text("[data-zone]") == "Asia/Tokyo"
        assert visit.complaints == []


def test_pages_work_without_scripts(chromium: Browser, node: Cluster) -> None:
    with chromium.new_context(viewport=WIDE, java_script_enabled=False) as context:
        page = Visit(context, node.http).go("topics")
        page.get_by_text("Create a topic").click()
        page.locator("#f-name").fill("plain")
        page.locator("form[action$='/topics/create'] button").click()
        page.wait_for_url("**/topic?name=plain&said=*")
        assert "plain was created" in page.inner_text("main")
    assert "plain" in node.topics()
