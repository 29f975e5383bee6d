"""A queue, for asyncio: `from ropewalk.aio import Queue`.

    async with Queue("jobs", bootstrap="127.0.0.1:9092") as queue:
        await queue.send("cut the rope")
        async for message in queue:
            async with message:
                work(message.body)

What a reader could get wrong
    A message that is received and not deleted comes back. Iterating deletes nothing: `async with message` does, or `message.delete()`.
    Iterating takes up to ten messages at a time. Those that wait for their turn are extended, and given back when the queue is closed.
    What is sent to a FIFO queue is sent again when the answer is lost, since the server drops the second one; to other queues it is sent
    again only when it certainly did not arrive.
"""

import asyncio
import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Self

from ropewalk.base.errors import ProtocolError, RopewalkError
from ropewalk.base.limits import (
    QUEUE_CLIENT_BATCH_MAX,
    QUEUE_CLIENT_HELD_MAX,
    QUEUE_CLIENT_VISIBILITY_KNOWN_MS,
)
from ropewalk.base.ports import ClientPorts
from ropewalk.client.connections.settings import SettingValue
from ropewalk.client.errors import Misuse
from ropewalk.client.queues import endpoints
from ropewalk.client.queues.calling import Caller, listed
from ropewalk.client.queues.errors import NotAllSent, QueueRefused, refusal
from ropewalk.client.queues.holding import Holding
from ropewalk.client.queues.message import Message, read_content
from ropewalk.client.queues.sending import (
    AttributeValue,
    Outgoing,
    Sent,
    fields_of,
    in_requests,
    outgoing,
)
from ropewalk.runtime.ports import SystemClientPorts
from ropewalk.runtime.tasks import Supervisor

FIFO_SUFFIX: Final = ".fifo"
WAIT_S_MAX: Final = 20
_NO_ATTRIBUTES: Final[Mapping[str, AttributeValue]] = {}


class Queue:
    """Owned by one event loop. Any number of tasks may use it at the same time."""

    def __init__(
        self,
        name: str,
        *,
        endpoint: str | None = None,
        bootstrap: str | None = None,
        access_key: str | None = None,
        secret_key: str | None = None,
        session_token: str | None = None,
        region: str | None = None,
        create: bool = False,
        request_timeout_ms: int = 30_000,
        patience_ms: int | None = None,
        ports: ClientPorts | None = None,
        **security: SettingValue,
    ) -> None:
        """Found at `endpoint`, or among the nodes of the cluster at `bootstrap`, or where AWS_ENDPOINT_URL_SQS says; `create` makes it if it is not there.

        Keys and region come from AWS_ACCESS_KEY_ID and its like where they are not given. `patience_ms` is for how long anybody is looked
        for who answers; None: as long as a request may take. `security` is what producers take of it; `ssl_ca_location` and its like are for
        endpoints over https, too, and for these alone where no `security_protocol` is said.
        """
        used = ports or SystemClientPorts()
        of_brokers, of_https = endpoints.take_security(security)
        self.name: Final = name
        self._creates = create
        self._caller = Caller(
            endpoints.finder(
                endpoint,
                bootstrap,
                used,
                os.environ,
                timeout_ms=patience_ms or request_timeout_ms,
                security=of_brokers,
            ),
            endpoints.credentials(access_key, secret_key, session_token, os.environ),
            region=endpoints.region(region, os.environ),
            ports=used,
            timeout_ms=request_timeout_ms,
            patience_ms=patience_ms,
            tls=endpoints.tls_for_https(of_https, os.environ),
        )
        self._clock = used.clock
        self._rng = used.rng
        self._tasks = Supervisor(self._on_bug, are_errands=True)
        self._bug: BaseException | None = None
        self._url: str | None = None
        self._visibility: tuple[float, int] | None = None
        self._ahead: deque[Message] = deque()
        self._holding: Holding[Message] = Holding()
        self._wake = asyncio.Event()

    async def start(self) -> None:
        """Find the queue; `async with` does it. Raises `QueueMissing` where there is none."""
        if self._creates:
            attributes = {"FifoQueue": "true"} if self.is_fifo else {}
            answer = await self._caller.call(
                "CreateQueue", {"QueueName": self.name, "Attributes": attributes}
            )
        else:
            answer = await self._caller.call("GetQueueUrl", {"QueueName": self.name})
        self._url = str(answer.get("QueueUrl", self.name))
        self._tasks.start("extend messages", self._extend())

    async def close(self) -> None:
        """Give back what nobody has taken yet, and end."""
        await self._tasks.stop()
        ahead, self._ahead = list(self._ahead), deque()
        try:
            if ahead and self._url is not None:
                await self._change([(message, 0) for message in ahead])
        except RopewalkError:
            pass  # they come back by themselves
        finally:
            self._url = None
            self._caller.close()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            self._caller.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def is_fifo(self) -> bool:
        return self.name.endswith(FIFO_SUFFIX)

    @property
    def url(self) -> str:
        """As the server gave it."""
        if self._bug is not None:
            raise self._bug
        if self._url is None:
            raise Misuse("the queue is closed, or was not started: use it as a context manager")
        return self._url

    # Sending

    async def send(
        self,
        body: str,
        *,
        attributes: Mapping[str, AttributeValue] = _NO_ATTRIBUTES,
        group: str | None = None,
        deduplication_id: str | None = None,
        delay_s: int | None = None,
    ) -> Sent:
        """Returns when the message is kept."""
        message = Outgoing(
            body=body, attributes=attributes, group=group, deduplication_id=deduplication_id, delay_s=delay_s
        )
        fields = {"QueueUrl": self.url, **fields_of(message)}
        answer = await self._caller.call("SendMessage", fields, repeatable=self.is_fifo)
        return _sent(answer)

    async def send_many(self, messages: Iterable[str | Outgoing]) -> list[Sent]:
        """In requests of ten, in their order; returns when all are kept. Raises `NotAllSent`, which tells of each.

        What comes behind a request that failed is not sent; on a FIFO queue, nothing behind a message that was refused.
        """
        given = outgoing(messages)
        outcomes: list[Sent | RopewalkError] = []
        for indexes in in_requests(given):
            entries = [{"Id": str(index), **fields_of(given[index])} for index in indexes]
            fields = {"QueueUrl": self.url, "Entries": entries}
            try:
                answer = await self._caller.call("SendMessageBatch", fields, repeatable=self.is_fifo)
            except RopewalkError as error:
                outcomes += [error] * len(indexes)
                break
            told = _by_entry(answer)
            outcomes += [told.get(str(index)) or _untold(index) for index in indexes]
            if self.is_fifo and any(isinstance(outcome, RopewalkError) for outcome in outcomes):
                break
        not_tried = Misuse("not sent, since one before it failed")
        outcomes += [not_tried] * (len(given) - len(outcomes))
        sent = [outcome for outcome in outcomes if isinstance(outcome, Sent)]
        if len(sent) < len(given):
            raise NotAllSent(outcomes)
        return sent

    # Receiving

    async def receive(
        self,
        count_max: int = QUEUE_CLIENT_BATCH_MAX,
        *,
        wait_s: int = WAIT_S_MAX,
        visibility_s: int | None = None,
    ) -> list[Message]:
        """As soon as there is something, up to ten; empty where nothing came within `wait_s`."""
        url = self.url
        hidden_s = await self._queue_visibility_s() if visibility_s is None else visibility_s
        fields: dict[str, object] = {
            "QueueUrl": url,
            "MaxNumberOfMessages": count_max,
            "WaitTimeSeconds": wait_s,
            "VisibilityTimeout": hidden_s,
            "AttributeNames": ["All"],
            "MessageSystemAttributeNames": ["All"],
            "MessageAttributeNames": ["All"],
        }
        if self.is_fifo:
            # A receive whose answer was lost is answered with the same messages again, which would lock their groups otherwise.
            fields["ReceiveRequestAttemptId"] = self._rng.randbytes(16).hex()
        asked_ms = self._clock.monotonic_ms()
        answer = await self._caller.call("ReceiveMessage", fields, wait_ms=wait_s * 1000)
        received_ms = asked_ms if wait_s == 0 else self._clock.monotonic_ms()
        return [
            Message(self, read_content(entry), received_ms=received_ms, visibility_ms=hidden_s * 1000)
            for entry in listed(answer, "Messages")
        ]

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        """Waits for as long as it takes."""
        while True:
            while self._ahead:
                message = self._ahead.popleft()
                self.let_go(message)
                if self._clock.monotonic_ms() < message.until_ms:
                    return message
                # Its time is over, so that somebody else may have it by now.
            received = await self.receive()
            for message in received:
                self.hold(message)
            self._ahead.extend(received)

    async def delete(self, *messages: Message) -> None:
        """They are done with. Raises the first refusal, after all were asked for."""
        refused: list[QueueRefused] = []
        for start in range(0, len(messages), QUEUE_CLIENT_BATCH_MAX):
            chosen = messages[start : start + QUEUE_CLIENT_BATCH_MAX]
            for message in chosen:
                self.let_go(message)
            entries = [
                {"Id": str(index), "ReceiptHandle": message.receipt_handle}
                for index, message in enumerate(chosen)
            ]
            answer = await self._caller.call("DeleteMessageBatch", {"QueueUrl": self.url, "Entries": entries})
            failures = _failures(answer)
            for index, message in enumerate(chosen):
                message.is_settled = str(index) not in failures
            refused += failures.values()
        if refused:
            raise refused[0]

    async def change_visibility(self, message: Message, visibility_s: int) -> None:
        """Hidden for so many seconds from now on; 0 gives it back."""
        if visibility_s == 0:
            self.let_go(message)
        await self._change([(message, visibility_s)])

    # What messages and their blocks ask for

    def hold(self, message: Message) -> None:
        """Extend it from time to time, until `let_go`."""
        if message.visibility_ms == 0 or len(self._holding) >= QUEUE_CLIENT_HELD_MAX:
            return
        self._holding.hold(
            message,
            received_ms=message.received_ms,
            until_ms=message.until_ms,
            visibility_ms=message.visibility_ms,
        )
        self._wake.set()

    def let_go(self, message: Message) -> None:
        self._holding.drop(message)

    async def _extend(self) -> None:
        """Goes on for as long as the queue is open."""
        while True:
            self._wake.clear()
            due_ms = self._holding.next_due_ms()
            if due_ms is None:
                await self._wake.wait()
                continue
            try:
                async with asyncio.timeout(max(0.0, due_ms - self._clock.monotonic_ms()) / 1000):
                    await self._wake.wait()
            except TimeoutError:
                await self._extend_due()

    async def _extend_due(self) -> None:
        due = self._holding.take_due(self._clock.monotonic_ms())
        for start in range(0, len(due), QUEUE_CLIENT_BATCH_MAX):
            chosen = [each for each in due[start : start + QUEUE_CLIENT_BATCH_MAX] if not each[0].is_settled]
            asked_ms = self._clock.monotonic_ms()
            try:
                refused = await self._ask_to_change(chosen)
            except RopewalkError:
                for message, _ in chosen:
                    self._holding.failed(message, self._clock.monotonic_ms())
                continue
            for message, seconds in chosen:
                if message in refused:
                    self._holding.drop(message)  # it is somebody else's; whoever deletes it hears of it
                    continue
                message.until_ms = asked_ms + seconds * 1000
                self._holding.extended(message, until_ms=message.until_ms)

    async def _change(self, changes: Sequence[tuple[Message, int]]) -> None:
        refused: dict[Message, QueueRefused] = {}
        for start in range(0, len(changes), QUEUE_CLIENT_BATCH_MAX):
            chosen = changes[start : start + QUEUE_CLIENT_BATCH_MAX]
            asked_ms = self._clock.monotonic_ms()
            refused |= await self._ask_to_change(chosen)
            for message, seconds in chosen:
                if message not in refused:
                    message.until_ms = asked_ms + seconds * 1000
                    message.is_settled = seconds == 0
                    if message in self._holding:
                        self.hold(message)
        for error in refused.values():
            raise error

    async def _ask_to_change(self, changes: Sequence[tuple[Message, int]]) -> dict[Message, QueueRefused]:
        """Those that were refused. At most ten."""
        entries = [
            {"Id": str(index), "ReceiptHandle": message.receipt_handle, "VisibilityTimeout": seconds}
            for index, (message, seconds) in enumerate(changes)
        ]
        fields = {"QueueUrl": self.url, "Entries": entries}
        answer = await self._caller.call("ChangeMessageVisibilityBatch", fields)
        return {changes[int(entry)][0]: error for entry, error in _failures(answer).items()}

    async def _queue_visibility_s(self) -> int:
        """Said with each receive, so that what the server does and what this client believes are the same."""
        now_ms = self._clock.monotonic_ms()
        if self._visibility is None or now_ms - self._visibility[0] > QUEUE_CLIENT_VISIBILITY_KNOWN_MS:
            fields = {"QueueUrl": self.url, "AttributeNames": ["VisibilityTimeout"]}
            answer = await self._caller.call("GetQueueAttributes", fields)
            text = str(answer.get("Attributes", {}).get("VisibilityTimeout", ""))
            if not text.isdigit():
                raise ProtocolError(f"the queue's VisibilityTimeout is {text!r}")
            self._visibility = (now_ms, int(text))
        return self._visibility[1]

    def _on_bug(self, _: str, error: BaseException) -> None:
        self._bug = error


def _sent(entry: Mapping[str, Any]) -> Sent:
    number = entry.get("SequenceNumber")
    return Sent(str(entry.get("MessageId", "")), None if number is None else str(number))


def _by_entry(answer: Mapping[str, Any]) -> dict[str, Sent | RopewalkError]:
    return {
        **{str(entry.get("Id")): _sent(entry) for entry in listed(answer, "Successful")},
        **_failures(answer),
    }


def _failures(answer: Mapping[str, Any]) -> dict[str, QueueRefused]:
    """By the entry's id."""
    return {
        str(entry.get("Id")): refusal(
            str(entry.get("Code", "")),
            str(entry.get("Message") or ""),
            status=400 if entry.get("SenderFault", True) else 500,
        )
        for entry in listed(answer, "Failed")
    }


def _untold(index: int) -> RopewalkError:
    return ProtocolError(f"the answer does not say what became of message {index}")
