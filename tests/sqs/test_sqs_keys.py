"""Keys of the SQS door: signatures of requests as they come over the wire, and a file of keys that changes while it is used."""

import asyncio
from base64 import b64encode
from calendar import timegm
from collections.abc import Callable
from pathlib import Path
from time import strptime
from typing import Any, TypeVar

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from ropewalk.http1.bounds import HttpBounds
from ropewalk.http1.message import Request
from ropewalk.http1.parser import RequestParser
from ropewalk.node.sqs_door import KeyFile
from ropewalk.security.derived_keys import credential_key, secret_of
from ropewalk.sqs.authentication import Key, KnownKeys
from ropewalk.sqs.credentials import read_keys, stamps_of
from ropewalk.sqs.errors import SqsRefusal

T = TypeVar("T")
KEY, SECRET = "AKIDEXAMPLE", "a secret"


class SetClock:
    def __init__(self) -> None:
        self.at_ms = 0

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic_ms(self) -> float:
        return float(self.at_ms)


def signed(secret: str, *headers: tuple[str, str]) -> tuple[Request, int]:
    """As botocore signs it and the door's parser reads it; and when."""
    request = AWSRequest("POST", "http://n/", data=b"{}")
    for name, value in headers:
        request.headers.add_header(name, value)
    auth: Any = SigV4Auth(Credentials(KEY, secret), "sqs", "eu-west-1")
    auth.add_auth(request)
    lines = ["POST / HTTP/1.1", "host: n", "content-length: 2"]
    lines += [f"{name}: {value}" for name, value in request.headers.items()]
    parser = RequestParser(HttpBounds(connections_max=1, body_bytes_max=100))
    parser.feed("\r\n".join((*lines, "", "{}")).encode())
    read = parser.next()
    assert read is not None
    return read, 1000 * timegm(strptime(request.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ"))


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param((("X-Twice", "a"), ("X-Twice", "b")), id="twice"),
        pytest.param((("X-Twice", "b  c"), ("X-Twice", " a "), ("x-twice", "")), id="with blanks"),
        pytest.param((("X-Twice", "a, b"), ("X-Twice", "c")), id="a list"),
    ],
)
def test_a_header_that_comes_several_times_is_signed_as_botocore_signs_it(
    headers: tuple[tuple[str, str], ...],
) -> None:
    clock = SetClock()
    request, clock.at_ms = signed(SECRET, *headers)
    assert KnownKeys(clock, {KEY: Key(SECRET)}).identify(request).access_key == KEY


class OtherThread:
    """A pool that has done at once what it is given, and whose answers come when the loop gets to them."""

    def run(self, function: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        answer.set_result(function(*arguments))
        return answer

    async def drain(self) -> None:
        pass


def write_keys(path: Path, secret: str) -> None:
    path.touch(mode=0o600)
    path.write_text(f'[{KEY}]\nsecret = "{secret}"\n')


def is_known(keys: KnownKeys, clock: SetClock, secret: str) -> bool:
    request, clock.at_ms = signed(secret)
    try:
        keys.identify(request)
    except SqsRefusal:
        return False
    return True


def test_keys_change_on_the_loop_and_not_in_the_thread_that_reads_them(tmp_path: Path) -> None:
    """A request that is being verified has the keys that it began with."""

    async def story() -> None:
        path, clock = tmp_path / "keys.toml", SetClock()
        write_keys(path, SECRET)
        keys = KnownKeys(clock, {KEY: Key(SECRET)})
        watched = KeyFile((str(path),), keys, OtherThread(), stamps_of(str(path)))
        write_keys(path, "another secret")
        watched.look()
        assert is_known(keys, clock, SECRET)
        await asyncio.sleep(0)
        assert not is_known(keys, clock, SECRET)
        assert is_known(keys, clock, "another secret")
        path.write_text("nonsense")
        watched.look()
        await asyncio.sleep(0)
        assert is_known(keys, clock, "another secret"), "a file that cannot be read changes nothing"

    asyncio.run(story())


def test_another_credential_key_counts_when_its_file_has_changed(tmp_path: Path) -> None:
    """The keys themselves stand in the other file, which is as it was."""

    async def story() -> None:
        path, deriving, clock = tmp_path / "keys.toml", tmp_path / "credential.key", SetClock()
        credential_keys = [credential_key(bytes([each]) * 32) for each in range(2)]
        lines = [b64encode(each.key).decode() for each in credential_keys]
        for each in (path, deriving):
            each.touch(mode=0o600)
        path.write_text(f'[{KEY}]\nderived_from = "{credential_keys[0].name}"\n')
        deriving.write_text(f"{lines[0]}\n")
        paths = (str(path), str(deriving))
        keys = KnownKeys(clock, read_keys(*paths))
        watched = KeyFile(paths, keys, OtherThread(), stamps_of(*paths))
        secret = secret_of(credential_keys[0], KEY)
        assert is_known(keys, clock, secret)
        deriving.write_text(f"{lines[1]}\n")
        watched.look()
        await asyncio.sleep(0)
        assert is_known(keys, clock, secret), "files that do not go together change nothing"
        path.write_text(f'[{KEY}]\nderived_from = "{credential_keys[1].name}"\n')
        watched.look()
        await asyncio.sleep(0)
        assert not is_known(keys, clock, secret)
        assert is_known(keys, clock, secret_of(credential_keys[1], KEY))

    asyncio.run(story())


def test_a_file_that_changed_before_anybody_looked_is_read_again(tmp_path: Path) -> None:
    async def story() -> None:
        path, clock = tmp_path / "keys.toml", SetClock()
        write_keys(path, SECRET)
        stamps = stamps_of(str(path))
        keys = KnownKeys(clock, {KEY: Key(SECRET)})
        write_keys(path, "another secret")
        KeyFile((str(path),), keys, OtherThread(), stamps).look()
        await asyncio.sleep(0)
        assert is_known(keys, clock, "another secret")

    asyncio.run(story())
