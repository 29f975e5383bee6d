"""A message that was received, as an application sees it, read from what ReceiveMessage answers.

What a reader could get wrong
    A message that was received is hidden, not gone: it comes back when its time is over, unless it is deleted.
    `async with message:` deletes it when the block ends, gives it back at once when the block is left with an exception, and has it extended
    for as long as the block runs, up to twelve hours after it was received.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol, Self

from msgspec import Struct

from ropewalk.base.errors import ProtocolError, RopewalkError
from ropewalk.client.queues.sending import AttributeValue, decode_attributes


class Content(Struct, frozen=True):
    """What the server told of a message."""

    message_id: str
    body: str
    receipt_handle: str
    attributes: Mapping[str, AttributeValue]
    system: Mapping[str, str]
    """The attributes that the server gave it, by their names in the SQS API."""


class Holder(Protocol):
    """The queue that a message came from, as far as the message needs it."""

    async def delete(self, *messages: "Message") -> None: ...

    async def change_visibility(self, message: "Message", visibility_s: int) -> None: ...

    def hold(self, message: "Message") -> None: ...

    def let_go(self, message: "Message") -> None: ...


class Message:
    def __init__(self, holder: Holder, content: Content, *, received_ms: float, visibility_ms: int) -> None:
        self._holder = holder
        self.content = content
        self.received_ms = received_ms
        """On the client's clock for deadlines."""
        self.visibility_ms = visibility_ms
        self.until_ms = received_ms + visibility_ms
        """Until when it is hidden from others, as far as this client knows; on the same clock."""
        self.is_settled = False
        """It was deleted or given back."""

    @property
    def body(self) -> str:
        return self.content.body

    @property
    def message_id(self) -> str:
        return self.content.message_id

    @property
    def receipt_handle(self) -> str:
        return self.content.receipt_handle

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """Those that the sender gave it: text, numbers, bytes."""
        return self.content.attributes

    @property
    def system_attributes(self) -> Mapping[str, str]:
        """Those that the server gave it, by their names in the SQS API."""
        return self.content.system

    @property
    def receive_count(self) -> int:
        """1: nobody has received it before."""
        return _number(self.content.system, "ApproximateReceiveCount")

    @property
    def sent_at_ms(self) -> int:
        return _number(self.content.system, "SentTimestamp")

    @property
    def group(self) -> str | None:
        return self.content.system.get("MessageGroupId")

    @property
    def deduplication_id(self) -> str | None:
        return self.content.system.get("MessageDeduplicationId")

    @property
    def sequence_number(self) -> str | None:
        return self.content.system.get("SequenceNumber")

    async def delete(self) -> None:
        """It is done with. Raises `HandleRefused` where a FIFO queue has given it to somebody else meanwhile."""
        await self._holder.delete(self)

    async def extend(self, visibility_s: int) -> None:
        """Hidden for so long from now on."""
        await self._holder.change_visibility(self, visibility_s)

    async def release(self) -> None:
        """Others may have it at once. The receive counts all the same."""
        await self._holder.change_visibility(self, 0)

    async def __aenter__(self) -> Self:
        self._holder.hold(self)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._holder.let_go(self)
        if self.is_settled:
            return
        if kind is None:
            await self.delete()
            return
        with suppress(
            RopewalkError
        ):  # the exception on its way says what went wrong; the message comes back by itself
            await self.release()

    def __repr__(self) -> str:
        return f"Message({self.message_id}, {self.body[:40]!r})"


def read_content(entry: Mapping[str, Any]) -> Content:
    """Of one entry of ReceiveMessage's answer. Raises `ProtocolError`."""
    try:
        return Content(
            str(entry["MessageId"]),
            str(entry["Body"]),
            str(entry.get("ReceiptHandle", "")),
            decode_attributes(entry.get("MessageAttributes") or {}),
            {str(name): str(value) for name, value in (entry.get("Attributes") or {}).items()},
        )
    except (KeyError, AttributeError) as error:
        raise ProtocolError(f"a message that was received has no {error}") from None


def _number(attributes: Mapping[str, str], name: str) -> int:
    text = attributes.get(name, "0")
    return int(text) if text.isdigit() else 0
