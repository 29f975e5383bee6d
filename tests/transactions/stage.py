"""A host for one core without a log: it keeps the records in a list, gives out producer ids, and can crash.

Every event goes through its encoding on the way to `apply`, as it would after a restart.
"""

from msgspec.structs import replace

from ropewalk.base.ids import TopicPartition
from ropewalk.transactions.answers import Answer, ProducerIdWanted
from ropewalk.transactions.commands import AnyCommand, EndTransaction, InitProducer
from ropewalk.transactions.core import TransactionsCore
from ropewalk.transactions.errors import TransactionError
from ropewalk.transactions.event_codec import decode_event, encode_event
from ropewalk.transactions.events import Event
from ropewalk.transactions.settings import TransactionSettings
from ropewalk.transactions.step import TransactionStep as Step


class Stage:
    def __init__(self, settings: TransactionSettings | None = None, *, now_ms: int = 0) -> None:
        self.settings = settings or TransactionSettings()
        self.now_ms = now_ms
        self.records: list[tuple[bytes, bytes | None]] = []
        self.replies: dict[int, Answer | TransactionError] = {}
        self.next_producer_id = 1000
        self.last_token = 0
        self.core = TransactionsCore(self.settings)
        self.core.on_loaded(now_ms)

    def ask(self, command: AnyCommand) -> int:
        """The token under which the reply is, or will be, in `replies`. A producer id is found for whoever wants one."""
        self.last_token += 1
        token = self.last_token
        self.carry_out(self.core.decide(token, command, self.now_ms))
        if isinstance(self.replies.get(token), ProducerIdWanted):
            assert isinstance(command, InitProducer | EndTransaction)
            assert command.fresh_producer_id is None, "wanted another producer id although it had one"
            del self.replies[token]
            self.next_producer_id += 1
            fresh = replace(command, fresh_producer_id=self.next_producer_id)
            self.carry_out(self.core.decide(token, fresh, self.now_ms))
        return token

    def answer(self, command: AnyCommand) -> Answer | TransactionError:
        """The reply to a command that does not wait for anyone."""
        return self.replies[self.ask(command)]

    def carry_out(self, step: Step) -> None:
        for event in step.events:
            record = encode_event(event)
            self.records.append(record)
            read_back = decode_event(*record)
            assert read_back == event
            self.core.apply(event, self.now_ms)
        for reply in step.replies:
            assert reply.token not in self.replies, "answered twice"
            self.replies[reply.token] = reply.answer

    def wait(self, duration_ms: int) -> None:
        """Let time pass, with a tick whenever one is due."""
        end_ms = self.now_ms + duration_ms
        while (due_ms := self.core.deadline_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, int(due_ms))
            self.carry_out(self.core.tick(self.now_ms))
        self.now_ms = end_ms

    def crash(self) -> None:
        """The core is lost, with everyone who waits; another one replays the records."""
        self.core = TransactionsCore(self.settings)
        for event in self.replayed():
            self.core.apply(event, self.now_ms)
        self.core.on_loaded(self.now_ms)

    def replayed(self) -> list[Event]:
        events = [decode_event(key, value) for key, value in self.records]
        return [event for event in events if event is not None]


def place(text: str) -> TopicPartition:
    topic, _, partition = text.rpartition("-")
    return TopicPartition(topic, int(partition))
