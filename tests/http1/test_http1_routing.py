"""One table of routes: who answers what, and what is said of addresses and methods that nobody serves."""

from http import HTTPStatus

import pytest

from ropewalk.http1.message import Answer, Holdable, Request, StreamedAnswer, Visitor, text_answer
from ropewalk.http1.parser import Refused
from ropewalk.http1.routing import RouteTable
from ropewalk.runtime.steps import begin


class Nobody:
    def begin_wait(self, _: object) -> None: ...

    def end_wait(self, _: object) -> None: ...


def request(method: str = "GET", path: str = "/", body: bytes = b"", **headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method, path, {}, True, named, body, path, "localhost")


def ask(table: RouteTable, asked: Request) -> Answer:
    answers: list[Answer | StreamedAnswer | None] = []
    nobody: Holdable = Nobody()
    assert begin(table.answer(asked, Visitor(nobody, "127.0.0.1")), lambda made, _: answers.append(made))
    (answer,) = answers
    assert isinstance(answer, Answer)
    return answer


async def _echo(asked: Request, _visitor: Visitor) -> Answer:
    return text_answer(HTTPStatus.OK, f"{asked.method} {asked.path}")


async def _refuse(asked: Request, _visitor: Visitor) -> Answer:
    raise Refused(HTTPStatus.CONFLICT, "not now")


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/a", 200, None),
        ("HEAD", "/a", 200, None),
        ("POST", "/a", 200, None),
        ("DELETE", "/a", 405, "GET, HEAD, POST"),
        ("OPTIONS", "/a", 405, "GET, HEAD, POST"),
        ("GET", "/post", 405, "POST"),
        ("HEAD", "/post", 405, "POST"),
        ("GET", "/a/", 404, None),
        ("GET", "/below", 404, None),
        ("GET", "/below/", 200, None),
        ("PUT", "/below/anything", 200, None),
        ("GET", "/below/it/x", 409, None),
        ("GET", "/below/exact", 409, None),
        ("GET", "*", 404, None),
    ],
)
def test_a_table_of_routes(method: str, path: str, status: int, allow: str | None) -> None:
    table = RouteTable()
    table.get("/a", _echo)
    table.add("/a", "POST", _echo)
    table.add("/post", "POST", _echo)
    table.get("/below/exact", _refuse)
    table.mount("/below/", _echo)
    table.mount("/below/it/", _refuse)
    answer = ask(table, request(method, path))
    assert answer.status == status
    assert dict(answer.headers).get("allow") == allow
