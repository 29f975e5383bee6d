"""Users, rules and logins: what pages show and change, and who is let in where a listener asks who comes."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ropewalk.metadata.settings.rights import STANDARD_AUTHORIZER
from ropewalk.testing import Cluster
from tests.console.asking import Browser, Page
from tests.console.tables import row

PASSWORD = "corr ect <horse>"
LOGGED_IN = {
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url": "none",
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:root",
}


def add_user(browser: Browser, name: str, password: str = PASSWORD) -> Page:
    return browser.submit(
        "/console/access",
        "/console/access/set-password",
        who=name,
        password=password,
        mechanism="SCRAM-SHA-256",
    )


def add_rule(browser: Browser, principal: str, operation: str, on: str, **more: str) -> Page:
    fields = {"principal": principal, "operation": operation, "on": on, **more}
    return browser.submit("/console/access", "/console/access/add-rule", **fields)


@pytest.fixture(scope="module")
def node() -> Iterator[Cluster]:
    """Decides by rules, and lets whoever comes without a name do everything."""
    settings = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with Cluster(settings=settings) as cluster:
        yield cluster


@pytest.fixture
def browser(node: Cluster) -> Browser:
    return Browser(node.http)


def test_rules_are_added_asked_and_removed(browser: Browser) -> None:
    done = add_rule(browser, "alice", "read", "topic:orders")
    assert "there is a rule: User:alice allow read topic:orders *" in browser.get(done.location).words
    assert (
        add_rule(
            browser, "*", "all", "topic:ord", permission="deny", pattern="prefix", host="10.0.0.9"
        ).status
        == 303
    )
    page = browser.get("/console/access")
    assert "nodes decide by rules" in page.words
    assert "Above all rules: User:ANONYMOUS" in page.words
    assert row(page, "User:alice").startswith("User:alice ✓ allow read topic:orders anywhere")
    assert row(page, "User:*").startswith("User:* ✕ deny all topic:ord… 10.0.0.9")
    asked = browser.get("/console/access?user=alice&resource=topic:orders")
    assert row(asked, "describe ✓") == "describe ✓ yes a rule allows it: User:alice allow read topic:orders *"
    assert row(asked, "write") == "write ✕ no no rule allows it"
    assert row(browser.get("/console/access?resource=topic:ordinary"), "User:*")
    assert "No rule is about that." in browser.get("/console/access?user=bob&resource=group:g").words

    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', rule_form(page, "alice")))
    del fields["console_token"]
    done = browser.submit("/console/access", "/console/access/remove-rule", **fields)
    assert "the rule is gone: User:alice allow read" in browser.get(done.location).words
    assert "User:alice" not in browser.get("/console/access").words
    assert browser.submit("/console/access", "/console/access/remove-rule", **fields).status == 422


def rule_form(page: Page, who: str) -> str:
    """The form beside the rule of a user."""
    forms: list[str] = re.findall(r"<form.*?</form>", page.text, re.DOTALL)
    return next(each for each in forms if f"User:{who}" in each)


def test_users_are_added_and_removed_and_their_names_are_text(browser: Browser) -> None:
    name = '<script>alert("u")</script>'
    done = add_user(browser, name)
    assert done.status == 303
    page = browser.get(done.location)
    assert row(page, name) == f"{name} SCRAM-SHA-256"
    assert "<script>alert" not in page.text
    assert PASSWORD not in page.text
    action = "/console/access/remove-user"
    assert browser.submit("/console/access", action, who=name, typed="x").status == 422
    done = browser.submit("/console/access", action, who=name, typed=name)
    assert "cannot log in any more" in browser.get(done.location).words
    assert browser.submit("/console/access", action, who=name, typed=name).status == 422


@pytest.mark.parametrize(
    ("action", "fields", "status", "said"),
    [
        ("add-rule", {}, 422, "is not topic:NAME"),
        ("add-rule", {"on": "topic:t", "operation": "read"}, 422, "say a user"),
        ("add-rule", {"on": "topic:t", "operation": "peek", "principal": "a"}, 422, "is none of all, read"),
        ("add-rule", {"on": "shelf:t", "operation": "read", "principal": "a"}, 422, "is not topic:NAME"),
        ("add-rule", {"on": "topic:t", "operation": "read", "principal": "User:"}, 409, "must be TYPE:NAME"),
        (
            "add-rule",
            {"on": "topic:t", "operation": "read", "principal": "a", "host": "h/8"},
            409,
            "must be an address",
        ),
        ("remove-rule", {}, 422, "is not topic:NAME"),
        ("set-password", {"who": "bob", "mechanism": "SCRAM-SHA-256"}, 422, "say a user and a password"),
        ("set-password", {"who": "bob", "password": "p", "mechanism": "x"}, 422, "choose a mechanism"),
        ("remove-user", {"who": "bob", "typed": "bob"}, 422, "there is no user"),
    ],
)
def test_what_cannot_be_meant_is_said(
    browser: Browser, action: str, fields: dict[str, str], status: int, said: str
) -> None:
    page = browser.submit("/console/access", f"/console/access/{action}", **fields)
    assert page.status == status, page.words
    assert said in page.words
    assert "bob" not in browser.get("/console/access").words


@pytest.mark.parametrize("query", ["resource=x", "user=a&resource=topic:", "resource=%3Cscript%3E"])
def test_a_question_that_cannot_be_meant_is_said(browser: Browser, query: str) -> None:
    page = browser.get(f"/console/access?{query}")
    assert page.status == 200
    assert "is not topic:NAME" in page.words
    assert "<script>" not in page.text.partition("<body>")[2]


@pytest.mark.parametrize("action", ["add-rule", "remove-rule", "set-password", "remove-user"])
def test_nothing_changes_without_the_token(browser: Browser, action: str) -> None:
    browser.get("/console/access")
    fields = {
        "who": "mallory",
        "password": "p",
        "mechanism": "SCRAM-SHA-256",
        "principal": "mallory",
        "on": "cluster",
    }
    assert browser.post(f"/console/access/{action}", fields).status == 403
    assert "mallory" not in browser.get("/console/access").words


def test_a_node_that_asks_no_rules_says_so_and_a_console_that_only_reads_has_no_forms() -> None:
    with Cluster(settings={"console.readonly": "true"}) as cluster:
        page = Browser(cluster.http).get("/console/access")
        assert page.status == 200
        assert "nodes ask no rules: everybody may do everything" in page.words
        assert "There is no user." in page.words
        assert "Nodes that ask no rules keep none." in page.words
        assert "SECURITY_DISABLED" not in page.words
        assert 'method="post"' not in page.text


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A node that everybody logs in to, with a user who may do everything and one who may see one topic."""
    data: Path = tmp_path_factory.mktemp("data")
    with Cluster(data=data) as cluster:
        cluster.create_topic("orders")
        cluster.create_topic("secret")
        browser = Browser(cluster.http)
        for name in ("root", "alice"):
            assert add_user(browser, name).status == 303
    with Cluster(data=data, settings=LOGGED_IN) as cluster:
        root = logged_in(cluster, "root")
        assert add_rule(root, "alice", "describe", "topic:orders").status == 303
        assert add_rule(root, "alice", "describe-configs", "topic:orders").status == 303
        yield cluster


def log_in(browser: Browser, user: str, password: str = PASSWORD) -> Page:
    return browser.submit("/console/login", "/console/login", user=user, password=password)


def logged_in(cluster: Cluster, user: str) -> Browser:
    browser = Browser(cluster.http)
    page = log_in(browser, user)
    assert (page.status, page.location) == (303, "/console/"), page.words
    return browser


def test_nobody_sees_anything_before_logging_in(guarded: Cluster) -> None:
    browser = Browser(guarded.http)
    for path in ("", "topics", "topic?name=orders", "access", "none"):
        page = browser.get(f"/console/{path}")
        assert (page.status, page.location) == (303, "/console/login")
    assert browser.get("/console/login").status == 200
    part = browser.get("/console/topics", hx_request="true")
    assert (part.status, part.headers["hx-redirect"]) == (401, "/console/login")
    assert browser.post("/console/topic/delete", {"name": "orders", "typed": "orders"}).status == 401


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("alice", "wrong"),
        ("nobody", PASSWORD),
        ("", PASSWORD),
        ("alice", ""),
        ("<b>\u202e", "x"),
        ("a" * 999, "x"),
    ],
)
def test_a_login_that_fails_says_no_more_than_that(guarded: Cluster, user: str, password: str) -> None:
    browser = Browser(guarded.http)
    page = log_in(browser, user, password)
    assert page.status == 401
    assert "the user or the password is not right" in page.words or "say a user and a password" in page.words
    assert "<b>" not in page.text
    assert browser.get("/console/").status == 303


def test_a_login_has_a_cookie_of_its_own_and_ends_with_a_logout(guarded: Cluster) -> None:
    browser = Browser(guarded.http)
    browser.get("/console/login")
    before = dict(browser.cookies)
    page = log_in(browser, "alice")
    assert "HttpOnly; SameSite=Lax" in page.headers["set-cookie"]
    assert browser.cookies != before, "whoever planted a cookie before the login has none after it"
    assert "alice Log out" in browser.get("/console/").words
    stolen = Browser(guarded.http)
    stolen.cookies = dict(browser.cookies)
    assert browser.post("/console/logout", {}).status == 403
    assert browser.submit("/console/", "/console/logout").location == "/console/login"
    for each in (browser, stolen):
        assert each.get("/console/").location == "/console/login"


def test_a_login_without_the_token_of_its_form_is_refused(guarded: Cluster) -> None:
    browser = Browser(guarded.http)
    browser.get("/console/login")
    assert browser.post("/console/login", {"user": "alice", "password": PASSWORD}).status == 403
    foreign = Browser(guarded.http).get("/console/login").token
    fields = {"user": "alice", "password": PASSWORD, "console_token": foreign}
    assert browser.post("/console/login", fields).status == 403
    assert browser.get("/console/").status == 303


def test_a_user_sees_and_changes_what_brokers_let_him(guarded: Cluster) -> None:
    alice, root = logged_in(guarded, "alice"), logged_in(guarded, "root")
    for path in ("topics", "topics?internal=yes"):
        seen = alice.get(f"/console/{path}")
        assert seen.status == 200
        assert "orders" in seen.words
        assert "secret" not in seen.words
    assert alice.get("/console/topic?name=orders").status == 200
    assert alice.get("/console/topic?name=secret").status in (403, 404)
    refused = alice.submit("/console/topics", "/console/topic/delete", name="orders", typed="orders")
    assert refused.status == 403
    assert "AUTHORIZATION_FAILED" in refused.words
    made = alice.submit("/console/topics", "/console/topics/create", name="mine")
    assert made.status == 403
    words = root.get("/console/topics").words
    assert "secret" in words
    assert "mine" not in words
    for path in ("", "groups", "cluster", "alerts", "settings", "access", "transactions"):
        assert alice.get(f"/console/{path}").status in (200, 403), path


def test_a_session_ends_with_the_password_it_was_begun_with(guarded: Cluster) -> None:
    root = logged_in(guarded, "root")
    assert add_user(root, "carol").status == 303
    carol = logged_in(guarded, "carol")
    assert carol.get("/console/topics").status == 200
    assert add_user(root, "carol", "another").status == 303
    page = carol.get("/console/topics")
    assert (page.status, page.location) == (303, "/console/login")
    assert log_in(carol, "carol").status == 401
    assert log_in(carol, "carol", "another").status == 303
