"""Who may see which page of the HTTP door: names, tokens and passwords, rights, and requests that a foreign page makes a browser send."""

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.base.errors import AuthenticationFailed
from ropewalk.http.admission import _without_port
from ropewalk.http.logins import parse_basic
from ropewalk.http.needs import Figures, Known, Needs
from ropewalk.http.routes import Doorway, Route
from ropewalk.http1.message import Answer, Request, Visitor, text_answer
from ropewalk.metadata.settings.rights import STANDARD_AUTHORIZER
from ropewalk.node.http_door import _admission
from ropewalk.security.access import CLUSTER_NAME, Operation, ResourceType
from ropewalk.security.scram import Mechanism, salted
from ropewalk.wire.messages import alter_user_scram_credentials as alter
from ropewalk.wire.messages import issue_token
from tests.http.client import Line, Page
from tests.kafka.door import Door, at_the_door
from tests.kafka.rights_world import ADMIN, RightsWorld, rule
from tests.kafka.visitors import ELSEWHERE, HERE, ITERATIONS, SALT

T = TypeVar("T")

ON = (f"authorizer.class.name={STANDARD_AUTHORIZER}", f"super.users={ADMIN}", "sqs.listen=none")
FIGURES = ("/metrics", "/public_metrics", "/healthz", "/cluster/healthz")
OPEN = ("/", "/livez", "/readyz")
INNER = ("/debug/journal", "/debug/stacks", "/debug/settings")
MAY_DESCRIBE_SETTINGS = rule(ResourceType.CLUSTER, CLUSTER_NAME, Operation.DESCRIBE_CONFIGS)
MAY_DESCRIBE = rule(ResourceType.CLUSTER, CLUSTER_NAME, Operation.DESCRIBE)
PASSWORD = "secret"


class Guest:
    """Somebody with a browser, who may come from anywhere."""

    def __init__(self, door: Door, host: str) -> None:
        self._network = door.world.network.host(host)

    async def ask(
        self, path: str, *headers: str, method: str = "GET", host: str = "node", body: str = ""
    ) -> Page:
        line = await Line.open(self._network)
        length = (f"Content-Length: {len(body)}",) if body else ()
        lines = (f"{method} {path} HTTP/1.1", f"Host: {host}", *length, *headers, "", body)
        line.send("\r\n".join(lines).encode())
        return await line.page(has_body=method != "HEAD")


def with_guests(story: Callable[[RightsWorld], Awaitable[T]], *settings: str) -> T:
    """Alice has a password, and no right."""

    async def main(door: Door) -> T:
        world = RightsWorld(door)
        mechanism = Mechanism.SHA_256
        salted_password = salted(mechanism, PASSWORD.encode(), SALT, ITERATIONS)
        upsertion = alter.ScramCredentialUpsertion("alice", mechanism, ITERATIONS, SALT, salted_password)
        await world.ask(
            alter.API, 0, alter.AlterUserScramCredentialsRequest((), (upsertion,)), principal=ADMIN
        )
        return await story(world)

    return at_the_door(main, *settings, http="node:9644")


def basic(name: str, password: str) -> str:
    return f"Authorization: Basic {b64encode(f'{name}:{password}'.encode()).decode()}"


async def token_of(world: RightsWorld) -> str:
    request = issue_token.IssueTokenRequest("alice", -1)
    answer = await world.ask(issue_token.API, 0, request, principal=ADMIN, method="PLAIN")
    assert answer.response.error_code == 0, answer.response.error_message
    return f"Authorization: Bearer {answer.response.token}"


@pytest.mark.parametrize("path", OPEN)
def test_probes_and_the_list_of_pages_are_open_to_anybody_by_any_name(path: str) -> None:
    async def story(world: RightsWorld) -> Page:
        return await Guest(world.door, ELSEWHERE).ask(path, host="whatever.example")

    assert with_guests(story, *ON).status == 200


@pytest.mark.parametrize("path", FIGURES)
def test_figures_take_a_name_and_a_right(path: str) -> None:
    async def story(world: RightsWorld) -> list[int]:
        guest = Guest(world.door, HERE)
        told = [await guest.ask(path), await guest.ask(path, basic("alice", PASSWORD))]
        assert told[0].headers["www-authenticate"].startswith("Basic ")
        await world.allow(MAY_DESCRIBE)
        told += [
            await guest.ask(path, basic("alice", PASSWORD)),
            await guest.ask(path, await token_of(world)),
            await guest.ask(path),
        ]
        await world.forget()
        told.append(await guest.ask(path, basic("alice", PASSWORD)))
        return [page.status for page in told]

    assert with_guests(story, *ON) == [401, 403, 200, 200, 401, 403]


@pytest.mark.parametrize(
    ("listen", "settings"), [("127.0.0.1:9644", ()), ("node:9644", ("http.metrics.open=true",))]
)
def test_figures_are_open_on_the_loopback_and_where_a_setting_says_so(
    listen: str, settings: tuple[str, ...]
) -> None:
    async def story(door: Door) -> list[int]:
        guest = Guest(door, HERE)
        return [(await guest.ask(path, host="localhost")).status for path in FIGURES]

    assert at_the_door(story, *ON, *settings, http=listen) == [200] * len(FIGURES)


def test_where_nothing_is_decided_by_rules_figures_are_open_whatever_is_shown() -> None:
    async def story(door: Door) -> list[int]:
        guest = Guest(door, ELSEWHERE)
        return [(await guest.ask(path, "Authorization: Basic x")).status for path in FIGURES]

    assert at_the_door(story, http="node:9644") == [200] * len(FIGURES)


@pytest.mark.parametrize("path", INNER)
def test_what_is_inside_a_node_takes_a_right_of_its_own(path: str) -> None:
    async def story(world: RightsWorld) -> list[int]:
        guest = Guest(world.door, ELSEWHERE), Guest(world.door, HERE)
        await world.allow(MAY_DESCRIBE)
        told = [
            await guest[1].ask(path),
            await guest[1].ask(path, basic("alice", PASSWORD)),
            await guest[0].ask(path, basic("alice", PASSWORD)),
        ]
        await world.allow(MAY_DESCRIBE_SETTINGS)
        told.append(await guest[1].ask(path, basic("alice", PASSWORD)))
        return [page.status for page in told]

    assert with_guests(story, *ON, "http.metrics.open=true") == [401, 403, 403, 200]


@pytest.mark.parametrize("path", INNER)
def test_without_rules_it_is_shown_to_the_nodes_own_machine_alone(path: str) -> None:
    async def story(door: Door) -> list[int]:
        told = [await Guest(door, host).ask(path) for host in (HERE, ELSEWHERE)]
        told.append(await Guest(door, HERE).ask(path, host="evil.example"))
        return [page.status for page in told]

    assert at_the_door(story, "http.metrics.open=true", http="node:9644") == [200, 403, 421]


def test_settings_are_shown_without_their_secrets() -> None:
    secret = "planted-in-the-settings-0123456789"

    async def story(door: Door) -> str:
        return (await Guest(door, HERE).ask("/debug/settings")).text

    shown = at_the_door(
        story,
        f"alerts.webhook=https://example.org/hook/{secret}",
        "log.retention.hours=1",
        http="node:9644",
    )
    assert "log.retention.hours = 1  # --set log.retention.hours" in shown
    assert "alerts.webhook = https://example.org/(hidden)" in shown
    assert secret not in shown


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(basic("alice", "wrong"), id="a wrong password"),
        pytest.param(basic("nobody", PASSWORD), id="nobody's name"),
        pytest.param("Authorization: Basic ####", id="no Base64"),
        pytest.param("Authorization: Basic", id="nothing"),
        pytest.param("Authorization: Bearer a.b.c", id="no token"),
        pytest.param("Authorization: Bearer " + "a" * 10_000, id="a long token"),
        pytest.param("Authorization: Digest username=alice", id="another scheme"),
        pytest.param("Authorization: AWS4-HMAC-SHA256 Credential=a", id="a signature"),
    ],
)
def test_whatever_is_wrong_is_told_in_one_way_and_after_the_same_time(shown: str) -> None:
    async def story(world: RightsWorld) -> tuple[Page, float]:
        begun_s = world.door.world.now_s
        page = await Guest(world.door, HERE).ask("/metrics", shown)
        return page, world.door.world.now_s - begun_s

    page, took_s = with_guests(story, *ON, "connection.failed.authentication.delay.ms=700")
    assert (page.status, page.text) == (401, "the name, the password or the token is not right\n")
    assert "www-authenticate" in page.headers
    assert 0.7 <= took_s < 0.8


def test_what_could_be_overheard_is_not_taken() -> None:
    async def story(world: RightsWorld) -> list[Page]:
        await world.allow(MAY_DESCRIBE)
        guest = Guest(world.door, ELSEWHERE)
        return [
            await guest.ask("/metrics", basic("alice", PASSWORD)),
            await guest.ask("/metrics", await token_of(world)),
        ]

    pages = with_guests(story, *ON)
    assert [page.status for page in pages] == [403, 403]
    assert all("over TLS" in page.text for page in pages)


def test_a_client_that_leaves_while_its_failure_is_kept_back_leaves_nothing_behind() -> None:
    async def story(world: RightsWorld) -> int:
        line = await Line.open(world.door.world.network.host(HERE))
        line.send(f"GET /metrics HTTP/1.1\r\nHost: node\r\n{basic('alice', 'wrong')}\r\n\r\n".encode())
        await asyncio.sleep(0.2)
        line.transport.abort()
        await asyncio.sleep(0.2)
        return (await Guest(world.door, HERE).ask("/livez")).status

    assert with_guests(story, *ON, "connection.failed.authentication.delay.ms=5000") == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("node", 200),
        ("NODE:9644", 200),
        ("node.", 200),
        ("localhost:9644", 200),
        ("127.0.0.1:9644", 200),
        ("[::1]:9644", 200),
        ("192.0.2.1", 200),
        ("evil.example", 421),
        ("evil.example:9644", 421),
        ("node.evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("extra.example", 421),
    ],
)
@pytest.mark.parametrize("settings", [(), ON])
def test_a_name_that_is_not_the_doors_is_refused(host: str, status: int, settings: tuple[str, ...]) -> None:
    async def story(door: Door) -> list[int]:
        guest = Guest(door, HERE)
        return [(await guest.ask(path, host=host)).status for path in FIGURES]

    assert at_the_door(story, *settings, "http.metrics.open=true", http="node:9644") == [status] * len(
        FIGURES
    )


@pytest.mark.parametrize("hosts", ["extra.example", "other.example, Extra.Example", "*"])
def test_other_names_of_the_door_are_a_setting(hosts: str) -> None:
    async def story(door: Door) -> int:
        return (await Guest(door, HERE).ask("/metrics", host="extra.example:80")).status

    assert at_the_door(story, f"http.hosts={hosts}", http="node:9644") == 200


def test_a_name_in_an_absolute_address_counts_as_well() -> None:
    async def story(door: Door) -> int:
        return (await Guest(door, HERE).ask("http://evil.example/metrics")).status

    assert at_the_door(story, http="node:9644") == 421


async def _changed(_request: object, _caller: object) -> Answer:
    return text_answer(HTTPStatus.OK, "changed")


def with_a_change(
    needs: Needs, *asked: tuple[str, ...], host: str = "node:9644", body: str = "{}"
) -> list[int]:
    """A door with a page that changes something, asked with headers."""

    async def main(door: Door) -> list[int]:
        parts = door.node._parts
        doorway = Doorway(_admission(parts), (Route("/change", needs, _changed, "POST"),))
        return [await _post(doorway, headers, host, body) for headers in asked]

    return at_the_door(main, http="node:9644")


async def _post(doorway: Doorway, headers: tuple[str, ...], host: str, body: str) -> int:
    given = dict(header.lower().split(": ", 1) for header in headers)
    request = Request(
        "POST",
        "/change",
        {},
        keeps_alive=True,
        headers=given,
        body=body.encode(),
        target="/change",
        host=host,
    )
    return int((await doorway.answer(request, Visitor(None, HERE))).status)  # type: ignore[arg-type]  # it holds nothing


@pytest.mark.parametrize("needs", [Known("a page that asks by itself"), Figures((Operation.ALTER,))])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ((), 200),
        (("Content-Type: application/json",), 200),
        (("Content-Type: application/json; charset=utf-8",), 200),
        (("Origin: http://node:9644",), 200),
        (("Origin: https://NODE:9644", "Sec-Fetch-Site: same-origin"), 200),
        (("Sec-Fetch-Site: none",), 200),
        (("Origin: http://evil.example",), 403),
        (("Origin: http://node",), 403),
        (("Origin: null",), 403),
        (("Sec-Fetch-Site: cross-site",), 403),
        (("Sec-Fetch-Site: same-site",), 403),
        (("Content-Type: text/plain",), 415),
        (("Content-Type: application/x-www-form-urlencoded",), 415),
    ],
)
def test_a_change_that_a_foreign_page_asks_for_is_refused(
    needs: Needs, headers: tuple[str, ...], status: int
) -> None:
    assert with_a_change(needs, headers) == [status]


def test_a_change_by_a_foreign_name_is_refused_however_well_it_looks() -> None:
    headers = ("Origin: http://evil.example", "Sec-Fetch-Site: same-origin")
    assert with_a_change(Known("-"), headers, host="evil.example") == [421]


@pytest.mark.parametrize("path", ["/", "/metrics", "/nothing", "/livez"])
def test_every_answer_tells_browsers_to_be_careful(path: str) -> None:
    async def story(door: Door) -> list[Page]:
        guest = Guest(door, HERE)
        return [
            await guest.ask(path),
            await guest.ask(path, method="DELETE"),
            await guest.ask(path, host="evil.example"),
        ]

    for page in at_the_door(story, http="node:9644"):
        assert page.headers["content-security-policy"] == "default-src 'self'; frame-ancestors 'none'"
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["referrer-policy"] == "no-referrer"
        assert "strict-transport-security" not in page.headers


@pytest.mark.parametrize(
    ("host", "name"),
    [("node", "node"), ("Node.:80", "node"), ("[::1]:80", "::1"), ("[::1]", "::1"), ("::1", "::1"), ("", "")],
)
def test_a_host_is_a_name_and_perhaps_a_port(host: str, name: str) -> None:
    assert _without_port(host) == name


@given(st.text(max_size=100))
def test_whatever_is_shown_as_a_name_and_a_password_is_read_or_refused(said: str) -> None:
    try:
        name, password = parse_basic(said)
    except AuthenticationFailed:
        return
    assert name
    assert password


def test_every_page_is_listed_and_is_open_or_of_figures_or_inside_or_the_consoles() -> None:
    async def story(door: Door) -> set[str]:
        page = await Guest(door, HERE).ask("/")
        return {line.split()[0] for line in page.text.splitlines() if line.startswith("/")}

    assert at_the_door(story, http="node:9644") == {*FIGURES, *INNER, "/livez", "/readyz", "/console/"}
