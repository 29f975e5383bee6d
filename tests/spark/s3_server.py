"""A server of S3's API in a process of its own, and one that stands before it and does what stores do on bad days."""

import contextlib
import http.client
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ropewalk.spark.storage import Storage

BUCKET: Final = "lake"
WITHIN_S: Final = 60.0
SLOW_DOWN: Final = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
WRONG_KEY: Final = (
    "<Error><Code>SignatureDoesNotMatch</Code><Message>The request signature we calculated does not match the signature you"
    " provided. Check your key and signing method.</Message></Error>"
)


class S3(NamedTuple):
    endpoint: str

    @property
    def storage(self) -> Storage:
        return Storage(
            endpoint=self.endpoint,
            region="us-east-1",
            access_key_id="tests",
            secret_access_key="not a secret",
            patience_s=20,
        )

    @property
    def environment(self) -> dict[str, str]:
        """All that a job is told beside its target."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": "not a secret",
            "AWS_REGION": "us-east-1",
        }


@contextlib.contextmanager
def s3_server(directory: Path) -> Iterator[S3]:
    """With an empty bucket."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (directory / "s3.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=log,
            stderr=log,
            env={**os.environ, "MOTO_S3_DEFAULT_KEY_BUFFER_SIZE": str(64 << 20)},
        )
    try:
        endpoint = f"http://127.0.0.1:{port}"
        _make_bucket(endpoint, process)
        yield S3(endpoint)
    finally:
        process.kill()
        process.wait(WITHIN_S)


def _make_bucket(endpoint: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + WITHIN_S
    while True:
        try:
            urllib.request.urlopen(
                urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT"), timeout=WITHIN_S
            ).close()
            return
        except OSError:
            assert process.poll() is None, "the server has ended"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.05)


class Fault(msgspec.Struct, frozen=True):
    """What becomes of requests that look like `like`, which is held against method and path."""

    like: str
    status: int = 0
    """Answered in place of the store, with `body`. 0: the store answers."""
    body: str = ""
    loses_answer: bool = False
    """After the store has done what it was asked."""
    forgets_condition: bool = False
    count: int = 1 << 30
    """So many times; then all is well."""


class BadDays:
    """Passes requests on to a store, except where a test says otherwise. A process of its own: delta-rs lets no other thread run meanwhile."""

    def __init__(self, directory: Path, endpoint: str) -> None:
        self._directory = directory
        self.store = S3(endpoint)

    def say(self, fault: Fault | None) -> None:
        beside = self._directory / "fault.writing"
        beside.write_bytes(b"" if fault is None else msgspec.json.encode(fault))
        (self._directory / "hits").write_text("")
        beside.rename(self._directory / "fault")

    @property
    def hits(self) -> int:
        """How many requests had the fault that was said last."""
        return len((self._directory / "hits").read_text())


@contextlib.contextmanager
def bad_days(directory: Path, behind: S3) -> Iterator[BadDays]:
    directory.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, __file__, behind.endpoint, str(directory)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        made = BadDays(directory, process.stdout.readline().strip())
        made.say(None)
        yield made
    finally:
        process.kill()
        process.wait(WITHIN_S)


def _serve(behind: str, directory: Path) -> None:
    lock = threading.Lock()

    def fault_of(request: str) -> Fault | None:
        with lock:
            said = (directory / "fault").read_bytes()
            if not said:
                return None
            fault = msgspec.json.decode(said, type=Fault)
            with (directory / "hits").open("r+") as hits:
                if re.search(fault.like, request) is None or len(hits.read()) >= fault.count:
                    return None
                hits.write(".")
            return fault

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.headers.get("transfer-encoding", "").lower() == "chunked":
                body = b"".join(iter(self._chunk, b""))
            fault = fault_of(f"{self.command} {self.path}") or Fault("")
            if fault.status:
                self._answer(fault.status, [("content-type", "application/xml")], fault.body.encode())
                return
            skipped = {"transfer-encoding", "connection", "expect", "content-length"}
            skipped |= {"if-none-match"} if fault.forgets_condition else set()
            headers = {name: value for name, value in self.headers.items() if name.lower() not in skipped}
            there = http.client.HTTPConnection(behind.removeprefix("http://"), timeout=WITHIN_S)
            there.request(self.command, self.path, body, {**headers, "Content-Length": str(len(body))})
            answer = there.getresponse()
            content = answer.read()
            there.close()
            if fault.loses_answer:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self._answer(answer.status, answer.getheaders(), content)

        def _chunk(self) -> bytes:
            size = int(self.rfile.readline().split(b";")[0], 16)
            chunk = self.rfile.read(size)
            self.rfile.readline()
            return chunk

        def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
            self.send_response_only(status)
            length = str(len(content))
            for name, value in headers:
                if name.lower() == "content-length" and self.command == "HEAD":
                    length = value
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", length)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _handle  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    _serve(sys.argv[1], Path(sys.argv[2]))
