"""A client of the SQS door over the fake engine, in the simulator's world: both protocols, and answers taken apart."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlencode
from xml.etree import ElementTree

from ropewalk.base.budget import ByteBudget
from ropewalk.base.limits import NODE_BUFFER_BYTES_MAX
from ropewalk.broker.access import Access
from ropewalk.http1.connections import HttpConnections
from ropewalk.http1.listener import HttpListener
from ropewalk.http1.message import Answer, Request, text_answer
from ropewalk.metadata.image import Image
from ropewalk.node.sqs_door import BOUNDS
from ropewalk.sim.machines.world import NodePorts, World
from ropewalk.sqs.admission import Admission
from ropewalk.sqs.authentication import AnyKey, Authentication
from ropewalk.sqs.desk import Desk, DeskRules
from ropewalk.sqs.receipts import Receipts
from ropewalk.sqs.routes import Routes
from tests.http.client import Line, Page
from tests.sqs.fake_engine import FakeEngine
from tests.sqs.forms import flattened

T = TypeVar("T")

AUTHORIZATION = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20270115/eu-west-1/sqs/aws4_request, SignedHeaders=host, Signature=0"
ACCOUNT = "000000000000"


class Heard(NamedTuple):
    """An answer in either protocol, in the names of AWS JSON where they are the same."""

    status: int
    code: str
    """The Query code of an error; empty where all is well."""
    text: str
    said: Mapping[str, Any]
    headers: Mapping[str, str]
    body: bytes


class Guest:
    """Whoever comes to a door, by either protocol."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._line: Line | None = None

    async def line(self) -> Line:
        if self._line is None or self._line.closed.done():
            self._line = await self.new_line()
        return self._line

    async def new_line(self) -> Line:
        return await Line.open(self.world.network.host("visitor"), "node", 9324)

    async def raw(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"", line: Line | None = None
    ) -> Page:
        lines = [f"{method} {path} HTTP/1.1", "Host: node:9324", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        line = line or await self.line()
        line.send("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        return await line.page()

    async def json(self, action: str, *, line: Line | None = None, **parameters: Any) -> Heard:
        return await self.target(f"AmazonSQS.{action}", json.dumps(parameters).encode(), line=line)

    async def target(self, target: str, body: bytes, line: Line | None = None) -> Heard:
        headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": target,
            "X-Amzn-Query-Mode": "true",
            "Authorization": AUTHORIZATION,
        }
        page = await self.raw("POST", "/", headers, body, line)
        said = json.loads(page.body or b"{}")
        code = page.headers.get("x-amzn-query-error", "").partition(";")[0]
        return Heard(
            page.status, code, said.get("message", "") if code else "", said, page.headers, page.body
        )

    async def query(self, action: str, *, path: str = "/", **parameters: Any) -> Heard:
        fields = {"Action": action, "Version": "2012-11-05", **flattened(action, parameters)}
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": AUTHORIZATION}
        page = await self.raw("POST", path, headers, urlencode(fields).encode())
        return heard_xml(page)

    async def call(self, protocol: str, action: str, **parameters: Any) -> Heard:
        if protocol == "json":
            return await self.json(action, **parameters)
        return await self.query(action, **parameters)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def url(self, name: str) -> str:
        return f"http://node:9324/{ACCOUNT}/{name}"


class Visit(Guest):
    """With the engine behind the door at hand."""

    def __init__(self, world: World, engine: FakeEngine) -> None:
        super().__init__(world)
        self.engine = engine


def heard_xml(page: Page) -> Heard:
    root = ElementTree.fromstring(page.body)
    code = _text(root, ".//{*}Error/{*}Code")
    text = _text(root, ".//{*}Error/{*}Message")
    result = next((child for child in root if child.tag.endswith("Result")), None)
    said = {} if result is None else _object(result)
    return Heard(page.status, code, text, said, page.headers, page.body)


_MAPS = {
    "Attribute": ("Attributes", "Name", "Value"),
    "MessageAttribute": ("MessageAttributes", "Name", "Value"),
    "Tag": ("Tags", "Key", "Value"),
}
_NUMBERS = {
    "ApproximateNumberOfMessagesMoved",
    "ApproximateNumberOfMessagesToMove",
    "MaxNumberOfMessagesPerSecond",
    "StartedTimestamp",
}
_LISTS = {
    ("ReceiveMessageResult", "Message"): "Messages",
    ("ListQueuesResult", "QueueUrl"): "QueueUrls",
    ("ListDeadLetterSourceQueuesResult", "QueueUrl"): "queueUrls",
    ("ListMessageMoveTasksResult", "ListMessageMoveTasksResultEntry"): "Results",
    ("SendMessageBatchResult", "SendMessageBatchResultEntry"): "Successful",
    ("DeleteMessageBatchResult", "DeleteMessageBatchResultEntry"): "Successful",
    ("ChangeMessageVisibilityBatchResult", "ChangeMessageVisibilityBatchResultEntry"): "Successful",
    ("SendMessageBatchResult", "BatchResultErrorEntry"): "Failed",
    ("DeleteMessageBatchResult", "BatchResultErrorEntry"): "Failed",
    ("ChangeMessageVisibilityBatchResult", "BatchResultErrorEntry"): "Failed",
}


def _text(root: ElementTree.Element, path: str) -> str:
    found = root.find(path)
    return "" if found is None else found.text or ""


def _object(element: ElementTree.Element) -> dict[str, Any]:
    """As AWS JSON would have said it."""
    said: dict[str, Any] = {}
    for child in element:
        name = _name(child)
        value: object = _object(child) if len(child) else child.text or ""
        if name in _MAPS and isinstance(value, dict):
            outer, key, content = _MAPS[name]
            said.setdefault(outer, {})[value[key]] = value[content]
        elif (_name(element), name) in _LISTS:
            said.setdefault(_LISTS[_name(element), name], []).append(value)
        else:
            assert name not in said, f"{name} is there twice"
            said[name] = value == "true" if name == "SenderFault" else value
            if name in _NUMBERS and isinstance(value, str):
                said[name] = int(value)
    return said


def _name(element: ElementTree.Element) -> str:
    return element.tag.partition("}")[2]


async def _live(_request: Request) -> Answer:
    return text_answer(HTTPStatus.OK, "ok")


RULES: Final = DeskRules(ACCOUNT)


def visiting(
    story: Callable[[Visit], Awaitable[T]],
    *,
    authentication: Callable[[World], Authentication] = lambda _: AnyKey(),
    topics: tuple[str, ...] = (),
    in_flight_max: int = 120_000,
    rules: DeskRules = RULES,
    access: Callable[[World], Access] = lambda _: Access(Image()),
) -> T:
    async def open_door(world: World, ports: NodePorts) -> FakeEngine:
        engine = FakeEngine(ports.clock, topics=topics, in_flight_max=in_flight_max)
        desk = Desk(engine, ports.clock, Receipts("a cluster"), lambda: rules)
        admission = Admission(desk, access(world))
        routes = Routes(admission, authentication(world), ports.rng, pages={"/livez": _live})
        connections = HttpConnections("sqs", ports.clock, BOUNDS, ByteBudget(NODE_BUFFER_BYTES_MAX))
        await HttpListener.start(ports.network, "node", 9324, connections=connections, answer=routes.answer)
        return engine

    async def main(world: World) -> T:
        engine = await world.machine("node").start(partial(open_door, world))
        return await story(Visit(world, engine))

    with World(0) as world:
        return world.run(main(world), limit_s=100_000)
