"""A registry in a thread: Confluent's HTTP API as far as readers of values use it, with the failures they must bear."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class FakeRegistry:
    def __init__(self) -> None:
        self.subjects: dict[str, list[int]] = {}
        self.schemas: dict[int, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.failures: list[int] = []
        """Codes to answer the next questions with."""
        self.login: str | None = None
        self.url = ""

    def register(
        self,
        subject: str,
        schema: object,
        kind: str = "AVRO",
        references: list[dict[str, Any]] | None = None,
    ) -> int:
        number = len(self.schemas) + 1
        answer: dict[str, Any] = {"schema": schema if isinstance(schema, str) else json.dumps(schema)}
        if kind != "AVRO":  # as the real one: it says nothing of the kind that was there first
            answer["schemaType"] = kind
        if references:
            answer["references"] = references
        self.schemas[number] = answer
        self.subjects.setdefault(subject, []).append(number)
        return number

    def answer(self, path: str, authorization: str | None) -> tuple[int, object]:
        self.asked.append(path)
        if self.failures:
            return self.failures.pop(0), {"message": "not now"}
        if self.login is not None:
            expected = "Basic " + base64.b64encode(self.login.encode()).decode()
            if authorization != expected:
                return 401, {"error_code": 40101, "message": "Unauthorized"}
        match urlsplit(path).path.strip("/").split("/"):
            case ["schemas", "ids", number] if int(number) in self.schemas:
                found = self.schemas[int(number)]
            case ["subjects", subject, "versions", version] if unquote(subject) in self.subjects:
                versions = self.subjects[unquote(subject)]
                found = self.schemas[versions[-1] if version == "latest" else versions[int(version) - 1]]
            case _:
                return 404, {"error_code": 40403, "message": "not found"}
        is_protobuf = found.get("schemaType") == "PROTOBUF"
        assert is_protobuf == ("format=serialized" in path), (
            "Protobuf alone is asked for in its compiled form"
        )
        return 200, found


@contextmanager
def fake_registry() -> Iterator[FakeRegistry]:
    registry = FakeRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, answer = registry.answer(self.path, self.headers.get("Authorization"))
            body = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def framed(number: int, body: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + body
