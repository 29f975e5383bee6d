"""A server of the SQS API in memory, as far as the client and the command line ask for it, with faults that a test chooses.

It knows nothing of signatures beyond keeping what came, and is held against moto in `test_queues_moto.py` by the same stories.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from enum import Enum
from http import HTTPStatus
from typing import Any

import msgspec

from ropewalk.base.budget import ByteBudget
from ropewalk.base.ports import Clock, Network
from ropewalk.http1.bounds import HttpBounds
from ropewalk.http1.connections import HttpConnections
from ropewalk.http1.listener import HttpListener
from ropewalk.http1.message import Answer, Request, Visitor
from ropewalk.runtime.clock import SystemClock
from ropewalk.runtime.network import TcpNetwork

BOUNDS = HttpBounds(connections_max=1000, body_bytes_max=8 << 20)
ACCOUNT = "000000000000"


class Fault(Enum):
    BUSY = "answers that it cannot at the moment, and does nothing"
    BROKEN = "answers 500 and does nothing"
    LOST = "does it, and the connection breaks before the answer"
    DROPPED = "breaks the connection and does nothing"


class Refused(Exception):
    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class FakeMessage:
    def __init__(self, message_id: str, entry: dict[str, Any], now_ms: int) -> None:
        self.message_id = message_id
        self.entry = entry
        self.sent_at_ms = now_ms
        self.visible_at_ms = now_ms + 1000 * int(entry.get("DelaySeconds") or 0)
        self.receive_count = 0
        self.handle = ""

    def shown(self) -> dict[str, Any]:
        system = {
            "ApproximateReceiveCount": str(self.receive_count),
            "SentTimestamp": str(self.sent_at_ms),
            **{
                name: self.entry[name]
                for name in ("MessageGroupId", "MessageDeduplicationId")
                if self.entry.get(name)
            },
        }
        return {
            "MessageId": self.message_id,
            "ReceiptHandle": self.handle,
            "Body": self.entry["MessageBody"],
            "Attributes": system,
            "MessageAttributes": self.entry.get("MessageAttributes") or {},
        }


class FakeQueue:
    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name = name
        self.attributes = attributes
        self.tags: dict[str, str] = {}
        self.messages: list[FakeMessage] = []
        self.deduplicated: dict[str, str] = {}

    @property
    def arn(self) -> str:
        return f"arn:aws:sqs:us-east-1:{ACCOUNT}:{self.name}"


class FakeQueues:
    """Answers one request after the other; long polls wait on the side."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.queues: dict[str, FakeQueue] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        """Target and fields of each request, in order; also of those that failed."""
        self.headers: list[dict[str, str]] = []
        self.faults: dict[str, deque[Fault]] = {}
        self.refused_bodies: set[str] = set()
        """In a batch, messages with these bodies fail by themselves."""
        self.tasks: list[dict[str, Any]] = []
        """Of moves, the latest first."""
        self.task_outcome: dict[str, Any] = {"Status": "COMPLETED"}
        self._message_count = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._connections: HttpConnections
        self._listener: HttpListener

    async def start(self, network: Network, host: str = "127.0.0.1", port: int = 0) -> str:
        self._connections = HttpConnections("fake", self.clock, BOUNDS, ByteBudget(1 << 26))
        self._listener = await HttpListener.start(
            network, host, port, connections=self._connections, answer=self._answer
        )
        return f"http://{host}:{self._listener.address[1]}"

    def stop(self) -> None:
        self._listener.stop()
        self._listener.abort()

    def fail_next(self, action: str, *faults: Fault) -> None:
        self.faults.setdefault(action, deque()).extend(faults)

    def actions(self) -> list[str]:
        return [target.partition(".")[2] for target, _ in self.asked]

    async def _answer(self, request: Request, _: Visitor) -> Answer:
        self.headers.append(dict(request.headers))
        if request.path == "/_aws/sqs/messages":
            queue = self._queue(request.query["QueueUrl"])
            messages = [{**message.shown(), "ReceiptHandle": ""} for message in queue.messages]
            return _json({"ReceiveMessageResponse": {"ReceiveMessageResult": {"Message": messages}}})
        target = request.headers["x-amz-target"]
        fields = msgspec.json.decode(request.body, type=dict[str, Any])
        self.asked.append((target, fields))
        action = target.partition(".")[2]
        faults = self.faults.get(action)
        fault = faults.popleft() if faults else None
        if fault is Fault.BUSY:
            return _json(
                {"__type": "ServiceUnavailable", "message": "come back"}, HTTPStatus.SERVICE_UNAVAILABLE
            )
        if fault is Fault.BROKEN:
            return _json({"__type": "InternalError", "message": "oh"}, HTTPStatus.INTERNAL_SERVER_ERROR)
        if fault is Fault.DROPPED:
            self._connections.abort_all()
            return _json({})
        try:
            answer = await self._do(action, fields)
        except Refused as error:
            told = {"__type": f"com.amazonaws.sqs#{error.code}", "message": str(error)}
            return _json(told, HTTPStatus(error.status))
        if fault is Fault.LOST:
            self._connections.abort_all()
        return _json(answer)

    async def _do(self, action: str, fields: dict[str, Any]) -> dict[str, Any]:
        if action == "ReceiveMessage":
            return await self._receive(fields)
        handle: Callable[[dict[str, Any]], dict[str, Any] | None] = getattr(self, f"_do_{action}")
        return handle(fields) or {}

    def _queue(self, url: str) -> FakeQueue:
        queue = self.queues.get(url.rpartition("/")[2].rpartition(":")[2])
        if queue is None:
            raise Refused("QueueDoesNotExist", "The specified queue does not exist.")
        return queue

    def _url(self, queue: FakeQueue) -> dict[str, Any]:
        return {"QueueUrl": f"http://elsewhere/{ACCOUNT}/{queue.name}"}

    def _do_CreateQueue(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        attributes = fields.get("Attributes") or {}
        queue = self.queues.setdefault(fields["QueueName"], FakeQueue(fields["QueueName"], attributes))
        if queue.attributes != attributes:
            raise Refused("QueueNameExists", "A queue already exists with the same name and other attributes")
        return self._url(queue)

    def _do_AdoptTopic(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return self._do_CreateQueue(fields)

    def _do_GetQueueUrl(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return self._url(self._queue(fields["QueueName"]))

    def _do_ListQueues(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        prefix, after = fields.get("QueueNamePrefix") or "", fields.get("NextToken") or ""
        names = sorted(name for name in self.queues if name.startswith(prefix) and name > after)
        page = names[: fields.get("MaxResults") or 1000]
        more = {"NextToken": page[-1]} if len(page) < len(names) else {}
        return {"QueueUrls": [self._url(self.queues[name])["QueueUrl"] for name in page], **more}

    def _do_DeleteQueue(self, fields: dict[str, Any]) -> None:  # noqa: N802
        del self.queues[self._queue(fields["QueueUrl"]).name]

    def _do_PurgeQueue(self, fields: dict[str, Any]) -> None:  # noqa: N802
        self._queue(fields["QueueUrl"]).messages.clear()

    def _do_GetQueueAttributes(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        queue = self._queue(fields["QueueUrl"])
        now_ms = self.clock.now_ms()
        visible = [message for message in queue.messages if message.visible_at_ms <= now_ms]
        in_flight = [m for m in queue.messages if m.visible_at_ms > now_ms and m.receive_count]
        delayed = len(queue.messages) - len(visible) - len(in_flight)
        known = {
            "VisibilityTimeout": "30",
            "QueueArn": queue.arn,
            "ApproximateNumberOfMessages": str(len(visible)),
            "ApproximateNumberOfMessagesNotVisible": str(len(in_flight)),
            "ApproximateNumberOfMessagesDelayed": str(delayed),
            **queue.attributes,
        }
        names = fields.get("AttributeNames") or []
        return {"Attributes": {name: known[name] for name in known if "All" in names or name in names}}

    def _do_ListQueueTags(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"Tags": self._queue(fields["QueueUrl"]).tags}

    def _do_ListDeadLetterSourceQueues(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        target = self._queue(fields["QueueUrl"])
        sources = [q for q in self.queues.values() if target.arn in q.attributes.get("RedrivePolicy", "")]
        return {"queueUrls": [self._url(queue)["QueueUrl"] for queue in sources]}

    def _do_StartMessageMoveTask(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        source = self._queue(fields["SourceArn"])
        if fields.get("DestinationArn"):
            self._queue(fields["DestinationArn"]).messages += source.messages
        task = {
            "TaskHandle": f"task-{len(self.tasks)}",
            **self.task_outcome,
            "SourceArn": source.arn,
            "ApproximateNumberOfMessagesMoved": len(source.messages),
            "ApproximateNumberOfMessagesToMove": len(source.messages),
        }
        source.messages.clear()
        self.tasks.insert(0, task)
        return {"TaskHandle": task["TaskHandle"]}

    def _do_ListMessageMoveTasks(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"Results": [task for task in self.tasks if task["SourceArn"] == fields["SourceArn"]]}

    def _do_CancelMessageMoveTask(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        for task in self.tasks:
            if task["TaskHandle"] == fields["TaskHandle"]:
                task["Status"] = "CANCELLED"
        return {"ApproximateNumberOfMessagesMoved": 0}

    def _do_ExplainMessage(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        now_ms = self.clock.now_ms()
        behind = None
        for message in self._queue(fields["QueueUrl"]).messages:
            is_hidden = message.visible_at_ms > now_ms
            if message.message_id == fields["MessageId"]:
                return {
                    "BehindMessageId": behind,
                    "State": "in flight" if is_hidden else "visible",
                    "ReceiveCount": message.receive_count,
                    "Attempt": message.receive_count,
                    "MessageGroupId": message.entry.get("MessageGroupId"),
                    "VisibleTimestamp": message.visible_at_ms if is_hidden else None,
                }
            behind = behind or (message.message_id if is_hidden else None)
        if any(
            message.message_id == fields["MessageId"]
            for each in self.queues.values()
            for message in each.messages
        ):
            return {"State": "settled"}  # it went to another queue
        raise Refused("ResourceNotFoundException", "The queue's log has no message of that id.", 404)

    def _do_RewindQueue(self, fields: dict[str, Any]) -> None:  # noqa: N802
        self._queue(fields["QueueUrl"])

    def _do_SendMessage(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        queue = self._queue(fields["QueueUrl"])
        known = queue.deduplicated.get(fields.get("MessageDeduplicationId") or "")
        if known is not None:
            return {"MessageId": known}
        self._message_count += 1
        message_id = f"m-{self._message_count}"
        queue.messages.append(FakeMessage(message_id, fields, self.clock.now_ms()))
        if fields.get("MessageDeduplicationId"):
            queue.deduplicated[fields["MessageDeduplicationId"]] = message_id
        self._wake()
        return {"MessageId": message_id}

    def _do_SendMessageBatch(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        assert len(fields["Entries"]) <= 10
        successful, failed = [], []
        for entry in fields["Entries"]:
            if entry["MessageBody"] in self.refused_bodies:
                told = {"Code": "InvalidMessageContents", "Message": "no", "SenderFault": True}
                failed.append({"Id": entry["Id"], **told})
            else:
                sent = self._do_SendMessage({"QueueUrl": fields["QueueUrl"], **entry})
                successful.append({"Id": entry["Id"], **sent})
        return {"Successful": successful, "Failed": failed}

    async def _receive(self, fields: dict[str, Any]) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        ends_at_s = loop.time() + int(fields.get("WaitTimeSeconds") or 0)
        while True:
            queue = self._queue(fields["QueueUrl"])
            now_ms = self.clock.now_ms()
            found = [each for each in queue.messages if each.visible_at_ms <= now_ms]
            chosen = found[: fields["MaxNumberOfMessages"]]
            if chosen or loop.time() >= ends_at_s:
                break
            woken: asyncio.Future[None] = loop.create_future()
            self._waiting.append(woken)
            waits_s = [
                each.visible_at_ms - now_ms + 1 for each in queue.messages if each.visible_at_ms > now_ms
            ]
            pause_s = min([ends_at_s - loop.time(), *(wait / 1000 for wait in waits_s)])
            loop.call_later(max(0.0, pause_s), _set, woken)
            await woken
        for message in chosen:
            message.receive_count += 1
            message.handle = f"{message.message_id}/{message.receive_count}"
            message.visible_at_ms = now_ms + 1000 * int(fields["VisibilityTimeout"])
        return {"Messages": [message.shown() for message in chosen]} if chosen else {}

    def _do_DeleteMessageBatch(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        queue = self._queue(fields["QueueUrl"])
        failed = []
        for entry in fields["Entries"]:
            message = self._by_handle(queue, entry["ReceiptHandle"])
            if message is not None:
                queue.messages.remove(message)
            elif queue.name.endswith(".fifo"):
                failed.append(_expired(entry))
        return {"Successful": [], "Failed": failed}

    def _do_ChangeMessageVisibilityBatch(self, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        queue = self._queue(fields["QueueUrl"])
        failed = []
        now_ms = self.clock.now_ms()
        for entry in fields["Entries"]:
            message = self._by_handle(queue, entry["ReceiptHandle"])
            if message is None or message.visible_at_ms <= now_ms:
                failed.append(_expired(entry))
            else:
                message.visible_at_ms = now_ms + 1000 * entry["VisibilityTimeout"]
        self._wake()
        return {"Successful": [], "Failed": failed}

    def _by_handle(self, queue: FakeQueue, handle: str) -> FakeMessage | None:
        return next((message for message in queue.messages if message.handle == handle), None)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for woken in waiting:
            _set(woken)


def _expired(entry: dict[str, Any]) -> dict[str, Any]:
    text = f"Value {entry['ReceiptHandle']} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."
    return {"Id": entry["Id"], "Code": "InvalidParameterValue", "Message": text, "SenderFault": True}


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _json(value: dict[str, Any], status: HTTPStatus = HTTPStatus.OK) -> Answer:
    return Answer(status, (msgspec.json.encode(value),), content_type="application/x-amz-json-1.0")


class LoopbackQueues:
    """The same on a real socket, in a thread of its own, because a command runs an event loop until it is done."""

    def __init__(self) -> None:
        self.server = FakeQueues(SystemClock())
        self.endpoint = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()
        starting = asyncio.run_coroutine_threadsafe(self.server.start(TcpNetwork()), self._loop)
        self.endpoint = starting.result(timeout=10)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self.server.stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()
