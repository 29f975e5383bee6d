"""A queue: `from ropewalk import Queue`.

    with Queue("jobs", bootstrap="127.0.0.1:9092") as queue:
        queue.send("cut the rope")
        for message in queue:
            with message:
                work(message.body)

What a reader could get wrong
    It says and does what `ropewalk.aio.Queue` does: what is not deleted comes back, and `with message` deletes. Any number of threads may
    use it at the same time.
    Messages are extended in a thread of their own, also while the block computes and never waits.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Self

from ropewalk.client.connections.settings import SettingValue
from ropewalk.client.errors import Misuse
from ropewalk.client.queues.message import Message as AsyncMessage
from ropewalk.client.queues.queue import WAIT_S_MAX
from ropewalk.client.queues.queue import Queue as AsyncQueue
from ropewalk.client.queues.sending import AttributeValue, Outgoing, Sent
from ropewalk.runtime.loop_thread import LoopThread

_NO_ATTRIBUTES: Final[Mapping[str, AttributeValue]] = {}


class Message:
    """One that was received; see `ropewalk.client.queues.message`."""

    def __init__(self, message: AsyncMessage, thread: LoopThread) -> None:
        self._message = message
        self._thread = thread

    @property
    def body(self) -> str:
        return self._message.body

    @property
    def message_id(self) -> str:
        return self._message.message_id

    @property
    def receipt_handle(self) -> str:
        return self._message.receipt_handle

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """Those that the sender gave it: text, numbers, bytes."""
        return self._message.attributes

    @property
    def system_attributes(self) -> Mapping[str, str]:
        """Those that the server gave it, by their names in the SQS API."""
        return self._message.system_attributes

    @property
    def receive_count(self) -> int:
        """1: nobody has received it before."""
        return self._message.receive_count

    @property
    def sent_at_ms(self) -> int:
        return self._message.sent_at_ms

    @property
    def group(self) -> str | None:
        return self._message.group

    @property
    def deduplication_id(self) -> str | None:
        return self._message.deduplication_id

    @property
    def sequence_number(self) -> str | None:
        return self._message.sequence_number

    @property
    def is_settled(self) -> bool:
        """It was deleted or given back."""
        return self._message.is_settled

    def delete(self) -> None:
        """It is done with. Raises `HandleRefused` where a FIFO queue has given it to somebody else meanwhile."""
        self._thread.run(self._message.delete())

    def extend(self, visibility_s: int) -> None:
        """Hidden for so long from now on."""
        self._thread.run(self._message.extend(visibility_s))

    def release(self) -> None:
        """Others may have it at once. The receive counts all the same."""
        self._thread.run(self._message.release())

    def __enter__(self) -> Self:
        self._thread.run(self._message.__aenter__())
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._thread.run(self._message.__aexit__(kind))

    def __repr__(self) -> str:
        return repr(self._message)


class Queue:
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
        **security: SettingValue,
    ) -> None:
        """As `ropewalk.aio.Queue`: at an endpoint, in a cluster, or where AWS_ENDPOINT_URL_SQS says."""
        self._queue = AsyncQueue(
            name,
            endpoint=endpoint,
            bootstrap=bootstrap,
            access_key=access_key,
            secret_key=secret_key,
            session_token=session_token,
            region=region,
            create=create,
            request_timeout_ms=request_timeout_ms,
            patience_ms=None,
            ports=None,
            **security,
        )
        self.name: Final = name
        self._thread: LoopThread | None = None

    def start(self) -> None:
        """Find the queue; `with` does it. Raises `QueueMissing` where there is none."""
        self._thread = LoopThread()
        try:
            self._thread.run(self._queue.__aenter__())
        except BaseException:
            thread, self._thread = self._thread, None
            thread.stop()
            raise

    def close(self) -> None:
        """Give back what nobody has taken yet, and end."""
        if self._thread is not None:
            thread, self._thread = self._thread, None
            try:
                thread.run(self._queue.close())
            finally:
                thread.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_fifo(self) -> bool:
        return self._queue.is_fifo

    @property
    def url(self) -> str:
        """As the server gave it."""
        return self._queue.url

    def send(
        self,
        body: str,
        *,
        attributes: Mapping[str, AttributeValue] = _NO_ATTRIBUTES,
        group: str | None = None,
        deduplication_id: str | None = None,
        delay_s: int | None = None,
    ) -> Sent:
        """Returns when the message is kept."""
        return self._the_thread().run(
            self._queue.send(
                body, attributes=attributes, group=group, deduplication_id=deduplication_id, delay_s=delay_s
            )
        )

    def send_many(self, messages: Iterable[str | Outgoing]) -> list[Sent]:
        """In requests of ten, in their order; returns when all are kept. Raises `NotAllSent`, which tells of each."""
        return self._the_thread().run(self._queue.send_many(messages))

    def receive(
        self, count_max: int = 10, *, wait_s: int = WAIT_S_MAX, visibility_s: int | None = None
    ) -> list[Message]:
        """As soon as there is something, up to ten; empty where nothing came within `wait_s`."""
        thread = self._the_thread()
        received = thread.run(self._queue.receive(count_max, wait_s=wait_s, visibility_s=visibility_s))
        return [Message(message, thread) for message in received]

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        """Waits for as long as it takes."""
        thread = self._the_thread()
        return Message(thread.run(self._queue.__anext__()), thread)

    def delete(self, *messages: Message) -> None:
        """They are done with. Raises the first refusal, after all were asked for."""
        self._the_thread().run(self._queue.delete(*(message._message for message in messages)))

    def _the_thread(self) -> LoopThread:
        if self._thread is None:
            raise Misuse("the queue is closed, or was not started: use it as a context manager")
        return self._thread
