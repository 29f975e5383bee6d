"""Who may ask the console: names, origins, sites and tokens, as a table."""

import random

import pytest

from ropewalk.console.gate import Place, check_request, check_token, make_token
from ropewalk.http1.message import Request
from ropewalk.http1.parser import Refused

LOOPBACK = Place("127.0.0.1", is_loopback=True, is_encrypted=False)


def request(method: str = "GET", host: str = "127.0.0.1:9644", **headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method, "/console/", {}, True, named, b"", "/console/", host)


def verdict(asked: Request, place: Place = LOOPBACK) -> int:
    try:
        check_request(asked, place)
    except Refused as refused:
        return refused.status.value
    return 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:9644", 200),
        ("127.0.0.1", 200),
        ("localhost:9644", 200),
        ("LocalHost", 200),
        ("[::1]:9644", 200),
        ("[::1]", 200),
        ("evil.example", 421),
        ("evil.example:9644", 421),
        ("127.evil.example", 421),
        ("127.0.0.1.evil.example:9644", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.2:9644", 421),
        ("127.0.0.1:9644@evil.example", 421),
        ("127.0.0.1:", 421),
        ("::1", 421),
        ("0.0.0.0:9644", 421),
        ("", 421),
    ],
)
def test_on_the_loopback_it_is_asked_by_names_of_the_loopback_alone(host: str, status: int) -> None:
    assert verdict(request(host=host)) == status


def test_the_literal_that_is_listened_on_is_a_name_as_well() -> None:
    other = Place("127.0.0.7", is_loopback=True, is_encrypted=False)
    assert verdict(request(host="127.0.0.7:9644"), other) == 200
    assert verdict(request(host="127.0.0.8:9644"), other) == 421


@pytest.mark.parametrize(
    ("host", "hosts", "status"),
    [
        ("queues.example", (), 421),
        ("queues.example:9644", ("queues.example",), 200),
        ("other.example", ("queues.example",), 421),
        ("other.example", ("*",), 200),
        ("192.0.2.7:9644", (), 200),
        ("[2001:db8::7]:9644", (), 200),
        ("localhost:9644", (), 200),
    ],
)
def test_elsewhere_it_goes_by_addresses_and_the_names_it_was_given(
    host: str, hosts: tuple[str, ...], status: int
) -> None:
    place = Place("0.0.0.0", is_loopback=False, is_encrypted=True, hosts=hosts)
    assert verdict(request(host=host), place) == status


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {}, 200),
        ("HEAD", {}, 200),
        ("PUT", {}, 405),
        ("DELETE", {}, 405),
        ("OPTIONS", {}, 405),
        ("GET", {"sec_fetch_site": "same-origin"}, 200),
        ("GET", {"sec_fetch_site": "none", "sec_fetch_mode": "navigate"}, 200),
        ("GET", {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, 200),
        ("GET", {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"}, 403),
        ("GET", {"sec_fetch_site": "cross-site", "sec_fetch_mode": "cors"}, 403),
        ("GET", {"sec_fetch_site": "same-site", "sec_fetch_mode": "cors"}, 403),
        ("POST", {}, 200),
        ("POST", {"origin": "http://127.0.0.1:9644", "sec_fetch_site": "same-origin"}, 200),
        ("POST", {"origin": "http://127.0.0.1:9645"}, 403),
        ("POST", {"origin": "http://localhost:9644"}, 403),
        ("POST", {"origin": "http://evil.example"}, 403),
        ("POST", {"origin": "null"}, 403),
        ("POST", {"origin": ""}, 403),
        ("POST", {"origin": "file://127.0.0.1:9644"}, 403),
        ("POST", {"origin": "http://127.0.0.1:9644", "sec_fetch_site": "cross-site"}, 403),
        ("POST", {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, 403),
        ("POST", {"sec_fetch_site": "same-site"}, 403),
    ],
)
def test_changes_come_from_its_own_pages(method: str, headers: dict[str, str], status: int) -> None:
    assert verdict(request(method, **headers)) == status


SECRET = b"s" * 32


def test_a_token_counts_for_its_cookie_and_looks_otherwise_each_time() -> None:
    rng = random.Random(1)
    one, other = make_token(SECRET, "cookie", rng), make_token(SECRET, "cookie", rng)
    assert one != other
    check_token(SECRET, "cookie", one)
    check_token(SECRET, "cookie", other)


@pytest.mark.parametrize(
    "change", ["nothing", "another cookie", "no cookie", "another secret", "cut", "empty", "not ASCII"]
)
def test_any_other_token_is_refused(change: str) -> None:
    token = make_token(SECRET, "cookie", random.Random(1))
    secret: bytes = b"t" * 32 if change == "another secret" else SECRET
    cookie = {"another cookie": "cookiE", "no cookie": None}.get(change, "cookie")
    shown = {"cut": token[:-1], "empty": "", "not ASCII": token[:-1] + "ä"}.get(change, token)
    if change == "nothing":
        check_token(secret, cookie, shown)
        return
    with pytest.raises(Refused, match="load the page again"):
        check_token(secret, cookie, shown)
