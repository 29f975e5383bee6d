"""Schemas from a registry that speaks Confluent's HTTP API.

What a reader could get wrong
    A number that the registry does not know is an answer (`UnknownSchema`): the row is at fault. A registry that does not answer,
    or refuses us, is none (`RegistryFailed`): the batch fails and is tried again, and no row is called bad for it.
    Schemas never change under their number, so they are kept for as long as this object lives; so is that a number is unknown,
    or a topic full of strange bytes would be a flood of questions. A task makes its own object.
    User and password come in the URL and are never repeated in a message.
"""

import base64
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from ropewalk.spark.refusals import PipelineFailed, WrongUse
from ropewalk.spark.values.schemas import Kind, SchemaText

TIMEOUT_SECONDS: Final = 10.0
ATTEMPTS: Final = 5
PAUSE_SECONDS: Final = 0.2
"""Before the second attempt; twice as long before each further one."""
ANSWER_BYTES_MAX: Final = 16 << 20
REFERENCES_DEPTH_MAX: Final = 32

_KINDS: Final[dict[str, Kind]] = {"AVRO": "avro", "JSON": "json", "PROTOBUF": "protobuf"}


class UnknownSchema(LookupError):
    """The registry answers that there is no such schema."""


class RegistryFailed(PipelineFailed):
    """The registry gave no answer that could be used."""


class Registry:
    def __init__(self, url: str, *, pause: Callable[[float], None] = time.sleep) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise WrongUse("registry must be a URL like http://host:8081 or https://user:password@host")
        host = parts.netloc.rpartition("@")[2]
        self.address: Final = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._headers: Final = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
        self._pause: Final = pause
        self._known: Final[dict[int, SchemaText | UnknownSchema]] = {}

    def by_id(self, number: int, kind: Kind) -> SchemaText:
        """Raises `UnknownSchema`, the same for the same number each time."""
        found = self._known.get(number)
        if found is None:
            try:
                found = self._schema(f"/schemas/ids/{number}", kind, f"schema {number}")
            except UnknownSchema as unknown:
                found = unknown
            self._known[number] = found
        if isinstance(found, UnknownSchema):
            raise UnknownSchema(str(found))
        return found

    def latest(self, subject: str, kind: Kind) -> SchemaText:
        return self._schema(_version_path(subject, "latest"), kind, f"subject {subject!r}")

    def _schema(self, path: str, kind: Kind, what: str, name: str = "", depth: int = 0) -> SchemaText:
        if depth > REFERENCES_DEPTH_MAX:
            raise RegistryFailed(f"{what} of {self.address} refers to others in a circle")
        # A registry keeps Protobuf as the text of a .proto file; asked so, it answers with what a compiler makes of that.
        answer = self._get(path + ("?format=serialized" if kind == "protobuf" else ""), what)
        text, stored = answer.get("schema"), _KINDS.get(str(answer.get("schemaType", "AVRO")))
        if not isinstance(text, str):
            raise RegistryFailed(f"{self.address} answers for {what} with something that is no schema")
        if stored != kind:
            raise UnknownSchema(f"{what} is {answer.get('schemaType', 'AVRO')} in the registry, not {kind}")
        references = answer.get("references") or []
        if not isinstance(references, list):
            raise RegistryFailed(f"{self.address} answers for {what} with references that are no list")
        return SchemaText(kind, text, name, tuple(self._reference(each, kind, depth) for each in references))

    def _reference(self, reference: object, kind: Kind, depth: int) -> SchemaText:
        match reference:
            case {"name": str(name), "subject": str(subject), "version": int(version)}:
                what = f"version {version} of {subject!r}"
                return self._schema(_version_path(subject, str(version)), kind, what, name, depth + 1)
        raise RegistryFailed(f"{self.address} names a reference that cannot be followed: {reference!r}")

    def _get(self, path: str, what: str) -> dict[str, object]:
        pause = PAUSE_SECONDS
        for attempt in range(1, ATTEMPTS + 1):
            try:
                body = self._ask(path)
                break
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    raise UnknownSchema(f"{what} is not in the registry {self.address}") from None
                if error.code in (401, 403):
                    raise RegistryFailed(
                        f"{self.address} refuses {what} with {error.code}: check user and password in the registry's URL"
                    ) from None
                problem = f"{error.code} {error.reason}"
                if error.code < 500 and error.code != 429:
                    raise RegistryFailed(f"{self.address} answers {problem} for {what}") from None
            except OSError as error:
                problem = str(getattr(error, "reason", error))
            if attempt == ATTEMPTS:
                raise RegistryFailed(
                    f"{self.address} did not answer for {what} in {ATTEMPTS} attempts, last: {problem}."
                    " The batch is tried again when the pipeline is"
                )
            self._pause(pause)
            pause *= 2
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise RegistryFailed(f"{self.address} answers for {what} with something that is no JSON object")
        return answer

    def _ask(self, path: str) -> bytes:
        request = urllib.request.Request(self.address + path, headers=self._headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            body: bytes = response.read(ANSWER_BYTES_MAX)
        return body


def _version_path(subject: str, version: str) -> str:
    return f"/subjects/{quote(subject, safe='')}/versions/{version}"
