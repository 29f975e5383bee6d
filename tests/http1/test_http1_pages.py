"""What pages need of the HTTP stack: cookies, forms, compression, and files with hashes in their names."""

import gzip
from collections.abc import Mapping
from http import HTTPStatus

import pytest

from ropewalk.base.limits import HTTP_COMPRESSED_BYTES_PER_TURN, HTTP_FORM_FIELDS_MAX
from ropewalk.http1.compression import compressed, takes_gzip
from ropewalk.http1.cookies import cookie_name, cookies_of, end_cookie, set_cookie
from ropewalk.http1.forms import form_of
from ropewalk.http1.message import NO_STORE, Answer, Request, StreamedAnswer, Visitor, encode_head
from ropewalk.http1.parser import Refused
from ropewalk.http1.static import FOREVER, StaticFiles
from ropewalk.sim.machines.world import World
from tests.http1.test_http1_routing import Nobody, request


@pytest.mark.parametrize(
    ("header", "cookies"),
    [
        ("", {}),
        ("a=1", {"a": "1"}),
        ("a=1; b=2;c=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1; a=2; b=3", {"b": "3"}),
        ("a=1; a=1; a=1", {}),
        ("nothing; =x; a=b=c", {"": "x", "a": "b=c"}),
    ],
)
def test_cookies_that_come_twice_count_for_nothing(header: str, cookies: Mapping[str, str]) -> None:
    assert cookies_of(request(cookie=header)) == cookies


def test_what_is_set_is_kept_from_scripts_and_other_sites() -> None:
    name, plain = set_cookie(cookie_name("s", is_encrypted=False), "abc")
    assert (name, plain) == ("set-cookie", "s=abc; Path=/; HttpOnly; SameSite=Lax")
    _, encrypted = set_cookie(cookie_name("s", is_encrypted=True), "abc", max_age_s=60)
    assert encrypted == "__Host-s=abc; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=60"
    assert end_cookie("s")[1].endswith("Max-Age=0")
    with pytest.raises(AssertionError):
        set_cookie("s", "abc; Domain=evil")


FORM = "application/x-www-form-urlencoded"


def test_a_form_is_read_with_all_its_values() -> None:
    form = form_of(
        request("POST", body=b"name=+orders+&p=1&p=2&secret=+x+&empty=&u=%E2%80%AE", content_type=FORM)
    )
    assert (form.text("name"), form.all("p"), form.raw("secret")) == ("orders", ["1", "2"], " x ")
    assert (form.text("empty"), form.is_set("empty"), form.is_set("none"), form.text("none")) == (
        "",
        True,
        False,
        "",
    )
    assert form.text("u") == "\u202e"


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"a=1", "text/plain", 415),
        (b"a=1", "multipart/form-data; boundary=x", 415),
        (b'{"a": 1}', "application/json", 415),
        (b"a=%FF", FORM, 400),
        (b"a=\xff", FORM, 400),
        (b"&".join([b"a=1"] * (HTTP_FORM_FIELDS_MAX + 1)), FORM, 400),
    ],
)
def test_what_is_no_form_is_refused(body: bytes, content_type: str, status: int) -> None:
    with pytest.raises(Refused) as refused:
        form_of(request("POST", body=body, content_type=content_type))
    assert refused.value.status == status


@pytest.mark.parametrize(
    ("offer", "is_taken"),
    [
        ("", False),
        ("gzip", True),
        ("GZIP, br", True),
        ("br;q=1, gzip;q=0.5", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("identity, *", True),
        ("deflate", False),
    ],
)
def test_who_takes_gzip(offer: str, is_taken: bool) -> None:
    assert takes_gzip(request(accept_encoding=offer)) is is_taken


def answered(body: bytes, content_type: str, offer: str) -> Answer:
    async def handle(_request: Request, _visitor: Visitor) -> Answer:
        return Answer(HTTPStatus.OK, (body[:10], body[10:]), content_type)

    async def main(_world: World) -> Answer | StreamedAnswer:
        return await compressed(handle)(request(accept_encoding=offer), Visitor(Nobody(), "127.0.0.1"))

    with World(0) as world:
        answer = world.run(main(world), limit_s=10)
    assert isinstance(answer, Answer)
    return answer


@pytest.mark.parametrize(
    ("count", "content_type", "offer", "is_compressed"),
    [
        (10_000, "text/html; charset=utf-8", "gzip", True),
        (3 * HTTP_COMPRESSED_BYTES_PER_TURN + 7, "text/html; charset=utf-8", "gzip", True),
        (10_000, "application/json", "gzip", True),
        (10_000, "text/html; charset=utf-8", "br", False),
        (100, "text/html; charset=utf-8", "gzip", False),
        (10_000, "application/octet-stream", "gzip", False),
    ],
)
def test_an_answer_is_compressed_where_that_is_worth_it(
    count: int, content_type: str, offer: str, is_compressed: bool
) -> None:
    body = bytes(range(97, 123)) * (count // 26 + 1)
    answer = answered(body, content_type, offer)
    sent = b"".join(answer.chunks)
    assert (gzip.decompress(sent) if is_compressed else sent) == body
    assert (("content-encoding", "gzip") in answer.headers) == is_compressed
    is_varied = count >= 1024 and not content_type.endswith("octet-stream")
    assert (("vary", "accept-encoding") in answer.headers) == is_varied
    assert f"content-length: {len(sent)}".encode() in encode_head(answer, keeps_alive=True, date="now")


def test_files_have_their_hash_in_their_address_and_are_kept_for_a_year() -> None:
    files = StaticFiles("/console/static/", {"page.css": b"body { margin: 0 }" * 100})
    again = StaticFiles("/console/static/", {"page.css": b"body { margin: 1px }" * 100})
    address = files.address("page.css")
    assert address.startswith("/console/static/page.")
    assert address != again.address("page.css")
    plain = files.answer(request(path=address))
    packed = files.answer(request(path=address, accept_encoding="gzip"))
    assert (plain.cache, plain.content_type) == (FOREVER, "text/css; charset=utf-8")
    assert plain.cache != NO_STORE
    assert gzip.decompress(packed.chunks[0]) == plain.chunks[0]
    for path in (
        again.address("page.css"),
        "/console/static/page.css",
        "/console/static/../x",
        "/console/static/",
    ):
        with pytest.raises(Refused) as refused:
            files.answer(request(path=path))
        assert refused.value.status == 404
    with pytest.raises(Refused) as refused:
        files.answer(request("POST", path=address))
    assert refused.value.status == 405
