"""The console of a live node, asked by a bare browser: how it is reached, what guards it, and what it refuses."""

import re
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from ropewalk.testing import Cluster
from tests.console.asking import Browser


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def browser(node: Cluster) -> Browser:
    return Browser(node.http)


def test_a_browser_is_led_to_the_console_and_a_program_to_the_list(browser: Browser) -> None:
    page = browser.get("/", accept="text/html,*/*")
    assert (page.status, page.location) == (303, "/console/")
    assert browser.get("/console").location == "/console/"
    listed = browser.get("/", accept="*/*")
    assert (listed.status, "/console/" in listed.text) == (200, True)


def test_the_first_page_says_whether_all_is_well(browser: Browser) -> None:
    page = browser.get("/console/")
    assert page.status == 200
    assert "All is well" in page.words
    assert browser.get("/console/overview").status == 200


def test_every_answer_is_guarded(browser: Browser) -> None:
    pages = [
        browser.get("/console/"),
        browser.get("/console/nothing"),
        browser.get(re.findall(r'href="(/console/static/[^"]+css)"', browser.get("/console/").text)[0]),
        browser.post("/console/logout", {}),
    ]
    assert [page.status for page in pages] == [200, 404, 200, 403]
    for page in pages:
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["x-frame-options"] == "DENY"
        assert page.headers["referrer-policy"] == "same-origin"


def test_a_page_has_nothing_inline_and_nothing_from_elsewhere(browser: Browser) -> None:
    text = browser.get("/console/").text
    assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:|hx-on|hx-vals=.js", text)
    assert not re.search(r"<script(?![^>]*\ssrc=)", text)
    for address in re.findall(r'(?:src|href|action|hx-get)="([^"]+)"', text):
        assert address.startswith(("/console", "#")), address


def test_all_that_a_first_visit_loads_is_small_and_kept_for_a_year(browser: Browser) -> None:
    page = browser.get("/console/", accept_encoding="identity")
    total = len(page.text)
    for address in set(re.findall(r'(?:src|href)="(/console/static/[^"]+)"', page.text)):
        file = browser.get(address)
        assert file.headers["cache-control"].endswith("immutable")
        total += len(file.text)
    assert 20_000 < total < 250_000


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403),
    ],
)
def test_forged_names_and_other_sites_are_refused(
    browser: Browser, headers: dict[str, str], status: int
) -> None:
    page = browser.get("/console/", **headers)
    assert page.status == status
    assert "Set-Cookie" not in page.headers


def test_a_cookie_is_given_once_and_kept_from_scripts(browser: Browser) -> None:
    cookie = browser.get("/console/").headers["set-cookie"]
    port = urlsplit(browser.base).port
    assert re.fullmatch(rf"ropewalk_console_{port}=[0-9a-f]{{64}}; Path=/; HttpOnly; SameSite=Lax", cookie)
    assert "set-cookie" not in browser.get("/console/").headers


def test_a_change_without_a_right_token_is_refused(browser: Browser) -> None:
    for fields in ({}, {"console_token": "0" * 96}):
        page = browser.post("/console/overview/anything", fields)
        assert page.status == 403
        assert "load the page again" in page.words
    page = browser.ask("POST", "/console/overview/anything", b"{}", {"content-type": "application/json"})
    assert page.status == 415


@pytest.mark.parametrize(
    "path", ["/console/none", "/console/overview/none", "/console/../metrics", "/console/static/x"]
)
def test_what_is_not_there_is_said_on_a_page(browser: Browser, path: str) -> None:
    page = browser.get(path)
    assert page.status == 404
    assert page.headers["content-type"].startswith("text/html")


def test_there_is_no_login_where_nobody_has_to(browser: Browser) -> None:
    assert browser.get("/console/login").location == "/console/"


def test_a_node_without_a_console_has_none() -> None:
    with Cluster(settings={"console.enabled": "false"}) as cluster:
        browser = Browser(cluster.http)
        assert browser.get("/console/").status == 404
        assert browser.get("/", accept="text/html").status == 200


def test_a_node_is_started_without_what_pages_are_made_with() -> None:
    script = "import sys, ropewalk.node.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    assert "ropewalk.console.door" in modules
    assert [name for name in modules if name.startswith(("jinja2", "markupsafe", "ropewalk.views"))] == []
    assert [name for name in modules if name.startswith("ropewalk.console.pages")] == []
