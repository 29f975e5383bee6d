"""Nodes, settings and alerts on pages, and what can be changed about them."""

from collections.abc import Iterator

import pytest

from ropewalk import Admin
from ropewalk.testing import Cluster
from tests.console.asking import Browser
from tests.console.tables import row


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    with Cluster() as cluster, Admin(cluster.bootstrap) as admin:
        cluster.create_topic("orders", partitions=2)
        admin.alter_broker_settings(0, {"message.max.bytes": "2000000"})
        yield cluster


@pytest.fixture
def browser(node: Cluster) -> Browser:
    return Browser(node.http)


@pytest.fixture
def admin(node: Cluster) -> Iterator[Admin]:
    with Admin(node.bootstrap) as client:
        yield client


def test_the_cluster_says_who_decides_and_who_may_be_stopped(browser: Browser) -> None:
    page = browser.get("/console/cluster")
    assert page.status == 200
    assert "Decides node 0 epoch" in page.words
    words = row(page, "0 · decides")
    assert "✓ active" in words
    assert "! not now orders-0: 0 would be in sync, 1 are needed, and 1 more" in words
    assert "levels 1 to" in words
    assert "Nothing was written or read in the last minute" in page.words


def test_a_node_goes_into_maintenance_and_comes_back(browser: Browser) -> None:
    done = browser.submit("/console/cluster", "/console/cluster/maintenance", node="0", how="on")
    page = browser.get(done.location)
    assert "node 0 is in maintenance: others lead what it led" in page.words
    assert "! maintenance" in row(page, "0 ")
    done = browser.submit("/console/cluster", "/console/cluster/maintenance", node="0", how="off")
    assert "✓ active" in row(browser.get(done.location), "0 ")


def test_settings_say_where_they_come_from(browser: Browser) -> None:
    page = browser.get("/console/settings")
    assert page.status == 200
    assert row(page, "message.max.bytes").startswith("message.max.bytes 2000000 otherwise 1048588 this node")
    assert "its file or start" in row(page, "offsets.topic.num.partitions")
    assert row(page, "log.retention.hours").startswith("log.retention.hours 168 default")
    assert "(secret)" in page.words
    found = browser.get("/console/settings?filter=retention+HOURS")
    assert row(found, "log.retention.hours")
    assert "message.max.bytes" not in found.words.partition("Change a setting")[0]
    assert browser.get("/console/settings?node=0").status == 200


def test_a_setting_is_changed_for_all_nodes_and_taken_back(browser: Browser, admin: Admin) -> None:
    def change(**fields: str) -> str:
        done = browser.submit("/console/settings", "/console/settings/change", **fields)
        assert done.status == 303, done.words
        return browser.get(done.location).words

    said = change(setting="log.retention.ms", value="7000", place="all", how="set")
    assert "log.retention.ms is 7000 for all nodes" in said
    assert "log.retention.ms 7000" in said
    found = {each.name: each.value for each in admin.broker_settings(0)}
    assert found["log.retention.ms"] == "7000"
    assert "is not set for all nodes any more" in change(setting="log.retention.ms", place="all", how="reset")
    found = {each.name: each.value for each in admin.broker_settings(0)}
    assert found["log.retention.ms"] != "7000"


def test_an_alert_is_silenced_and_told_of_again(browser: Browser) -> None:
    page = browser.get("/console/alerts")
    assert page.status == 200
    assert "Silences None." in page.words
    fields = {"alert": "RopewalkLag", "time": "2h", "where": 'consumergroup=<i>"a":b=c,d</i>'}
    done = browser.submit("/console/alerts", "/console/alerts/silence", **fields)
    assert done.status == 303, done.words
    page = browser.get(done.location)
    assert "nobody is told of RopewalkLag for 2h" in page.words
    assert row(page, "RopewalkLag").startswith('RopewalkLag consumergroup=<i>"a":b=c,d</i> 1 h 5')
    assert "<i>" not in page.text
    written = browser_value(page.text, "silence")
    done = browser.submit("/console/alerts", "/console/alerts/end", silence=written)
    assert "RopewalkLag is told of again" in browser.get(done.location).words
    assert "Silences None." in browser.get("/console/alerts").words
    assert browser.submit("/console/alerts", "/console/alerts/end", silence=written).status == 422


def browser_value(text: str, name: str) -> str:
    """Of a hidden field."""
    return text.partition(f'name="{name}" value="')[2].partition('"')[0]


@pytest.mark.parametrize(
    ("action", "fields", "status", "said"),
    [
        ("cluster/maintenance", {"node": "0", "how": "maybe"}, 422, "say on or off"),
        ("cluster/maintenance", {"node": "x", "how": "on"}, 422, "write a number"),
        ("cluster/maintenance", {"node": "99", "how": "on"}, 409, "99"),
        ("settings/change", {"place": "all"}, 422, "choose a setting"),
        ("settings/change", {"setting": "none", "value": "1", "place": "all"}, 409, "INVALID_CONFIG"),
        ("settings/change", {"setting": "http.listen", "value": "1", "place": "all"}, 409, "INVALID_CONFIG"),
        (
            "settings/change",
            {"setting": "log.retention.ms", "value": "x", "place": "all"},
            409,
            "INVALID_CONFIG",
        ),
        (
            "settings/change",
            {"setting": "log.retention.ms", "value": "1", "place": "x"},
            422,
            "write a number",
        ),
        ("alerts/silence", {"alert": "None", "time": "2h"}, 422, "there is no alert 'None'"),
        ("alerts/silence", {"alert": "RopewalkLag", "time": "31d"}, 422, "30 days"),
        ("alerts/silence", {"alert": "RopewalkLag", "time": "long"}, 422, "is not a duration"),
        ("alerts/silence", {"alert": "RopewalkLag", "time": "1h", "where": "x"}, 422, "KEY=VALUE"),
        ("alerts/end", {"silence": "x"}, 422, "no such silence"),
    ],
)
def test_what_cannot_be_done_is_said(
    browser: Browser, admin: Admin, action: str, fields: dict[str, str], status: int, said: str
) -> None:
    before = admin.broker_settings(0)
    page = browser.submit("/console/settings", f"/console/{action}", **fields)
    assert page.status == status, page.words
    assert said in page.words
    assert admin.broker_settings(0) == before


def test_a_node_that_is_not_there_has_no_settings(browser: Browser) -> None:
    for said in ("7", "x", "%3Cb%3E"):
        page = browser.get(f"/console/settings?node={said}")
        assert page.status == 422
        assert "there is no node" in page.words
        assert "<b>" not in page.text


@pytest.mark.parametrize("action", ["cluster/maintenance", "settings/change", "alerts/silence", "alerts/end"])
def test_nothing_changes_without_the_token_or_where_it_only_reads(browser: Browser, action: str) -> None:
    browser.get("/console/cluster")
    assert browser.post(f"/console/{action}", {"node": "0", "how": "on"}).status == 403


def test_a_console_that_only_reads_has_no_forms() -> None:
    with Cluster(settings={"console.readonly": "true"}) as cluster:
        browser = Browser(cluster.http)
        for path in ("cluster", "settings", "alerts"):
            page = browser.get(f"/console/{path}")
            assert page.status == 200
            assert 'method="post"' not in page.text
