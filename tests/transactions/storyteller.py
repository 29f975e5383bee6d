"""The words of scenarios about transactions; how a file is read and told is in `tests/storyteller.py`.

The first word of a command is what is done, the second who does it. There is one transactional id, `t`, unless `id=` names another.
A producer remembers who it was told to be, and says so; `as=7/3` makes it say something else, and `was` who it was
before it last heard of another epoch.

    init a [goes-on] [timeout=60000] [patience=100]     goes-on: with who it has been (KIP-360)
    add a p-0 p-1 [patience=100]                        as an old client does
    join a p-0 [patience=100]                           as the first batch of a transaction with its own epoch
    verify a p-0 p-1
    commit a, abort a [original]                        original: EndTxn below version 5
    finish [p-0 …]                                      markers are written, everywhere if no partition is named
    unfinished [after=1] [waits]
    describe [ids], list [states=Ongoing,Empty] [producers=7] [longer=5] [pattern=t.*]
    epoch 32765                                         of the transactional id: as if it had come that far
"""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from ropewalk.transactions.answers import (
    Answer,
    DescribedTransaction,
    Ended,
    MarkersNoted,
    PartitionsAdded,
    ProducerIdWanted,
    ProducerInitialised,
    TransactionsDescribed,
    TransactionsListed,
    Unfinished,
)
from ropewalk.transactions.commands import (
    AddPartitions,
    AnyCommand,
    DescribeTransactions,
    EndTransaction,
    InitProducer,
    ListTransactions,
    ListUnfinished,
    MarkersWritten,
)
from ropewalk.transactions.errors import TransactionError
from ropewalk.transactions.event_codec import decode_event
from ropewalk.transactions.events import Event, TransactionalIdRemoved
from ropewalk.transactions.step import TransactionStep as Step
from tests.storyteller import Storyteller, listed
from tests.transactions.stage import Stage, place


class TransactionStory(Storyteller[AnyCommand]):
    def __init__(self) -> None:
        self._stage = Stage()
        super().__init__(self._stage)
        self._records_told = 0
        self._known: dict[str, list[tuple[int, int]]] = {}
        """Who each producer was told to be, the latest last."""

    def act(self, verb: str, words: list[str]) -> list[str] | None:
        stage = self._stage
        match verb:
            case "epoch":
                record = stage.core.transactions["t"]
                stage.carry_out(Step(events=(replace(record, producer_epoch=int(words[0])),)))
                for known in self._known.values():
                    known.append((record.producer_id, int(words[0])))
                return self.news() or ["ok"]
            case "finish":
                return self._finish(words)
            case _:
                return None

    def question(self, verb: str, words: list[str]) -> tuple[str, AnyCommand]:
        caller = words[0] if words and re.fullmatch(r"[a-z]", words[0]) else ""
        return caller, self._command(verb, caller, words[1:] if caller else words)

    def ask(self, command: AnyCommand) -> int:
        return self._stage.ask(command)

    def new_events(self) -> Iterator[str]:
        for key, value in self._stage.records[self._records_told :]:
            event = decode_event(key, value)
            assert event is not None
            yield _event(event)
        self._records_told = len(self._stage.records)

    def answer(self, caller: str, answer: Answer | TransactionError) -> str:
        if caller and isinstance(answer, ProducerInitialised | Ended):
            self._hear(caller, (answer.producer_id, answer.producer_epoch))
        return _answer(answer)

    def _finish(self, words: list[str]) -> list[str]:
        unfinished = self._stage.answer(ListUnfinished())
        assert isinstance(unfinished, Unfinished)
        self.told.add(max(self._stage.replies))
        for entry in unfinished.transactions:
            partitions = tuple(map(place, words)) or entry.partitions
            token = self._stage.ask(
                MarkersWritten(
                    entry.transactional_id,
                    entry.producer_id,
                    entry.producer_epoch,
                    entry.started_at_ms,
                    partitions,
                )
            )
            self.callers[token] = ""
        return self.news() or ["nothing to finish"]

    def _hear(self, caller: str, identity: tuple[int, int]) -> None:
        known = self._known.setdefault(caller, [])
        if identity not in known[-1:]:
            known.append(identity)

    def _command(self, verb: str, caller: str, words: list[str]) -> AnyCommand:
        given = {key: value for key, _, value in (word.partition("=") for word in words)}
        name = given.get("id", "t")
        partitions = tuple(place(word) for word in words if re.fullmatch(r"\w+-\d+", word))
        producer_id, epoch = self._identity(caller, given)
        patience_ms = int(given.get("patience", 0))
        match verb:
            case "init":
                goes_on = "goes-on" in given
                return InitProducer(
                    name,
                    int(given.get("timeout", 60_000)),
                    producer_id if goes_on else -1,
                    epoch if goes_on else -1,
                    patience_ms=patience_ms,
                )
            case "add" | "join":
                version = 0 if verb == "add" else 2
                return AddPartitions(
                    name, producer_id, epoch, partitions, version=version, patience_ms=patience_ms
                )
            case "verify":
                return AddPartitions(name, producer_id, epoch, partitions, verify_only=True)
            case "commit" | "abort":
                return EndTransaction(
                    name, producer_id, epoch, committed=verb == "commit", bumps_epoch="original" not in given
                )
            case "unfinished":
                return ListUnfinished(after=int(given.get("after", 0)), waits="waits" in given)
            case "describe":
                return DescribeTransactions(tuple(words) or ("t",))
            case "list":
                return ListTransactions(
                    states=tuple(listed(given.get("states", ""))),
                    producer_ids=tuple(map(int, listed(given.get("producers", "")))),
                    longer_than_ms=int(given.get("longer", -1)),
                    pattern=given.get("pattern"),
                )
        raise ValueError(f"no such command: {verb}")

    def _identity(self, caller: str, given: dict[str, str]) -> tuple[int, int]:
        if "as" in given:
            producer_id, _, epoch = given["as"].partition("/")
            return int(producer_id), int(epoch)
        known = self._known.get(caller, [(-1, -1)])
        return known[-2] if "was" in given else known[-1]


def _event(event: Event) -> str:
    if isinstance(event, TransactionalIdRemoved):
        return f"no {event.transactional_id}"
    parts = [f"{event.transactional_id} {event.state.value} {event.producer_id}/{event.producer_epoch}"]
    if event.previous_epoch >= 0:
        parts.append(f"after {event.previous_producer_id}/{event.previous_epoch}")
    if event.next_producer_id >= 0:
        parts.append(f"before {event.next_producer_id}")
    if event.partitions:
        parts.append(f"over {' '.join(map(str, event.partitions))}")
    return ", ".join(parts)


def _answer(answer: Answer | TransactionError) -> str:
    match answer:
        case TransactionError():
            return type(answer).__name__
        case ProducerIdWanted():
            return "wants a producer id"
        case ProducerInitialised() | Ended():
            return f"you are {answer.producer_id}/{answer.producer_epoch}"
        case PartitionsAdded(results):
            return " ".join("ok" if result is None else type(result).__name__ for result in results)
        case MarkersNoted(is_finished):
            return "finished" if is_finished else "noted"
        case Unfinished(transactions, serial):
            entries = [
                f"{entry.transactional_id} {entry.producer_id}/{entry.producer_epoch} "
                f"{'commit' if entry.committed else 'abort'} {' '.join(map(str, entry.partitions))} v{entry.version}"
                for entry in transactions
            ]
            return f"up to {serial}: {'; '.join(entries) or 'nothing'}"
        case TransactionsDescribed(transactions):
            return "; ".join(_described(entry) for entry in transactions)
        case TransactionsListed(transactions, unknown):
            names = " ".join(
                f"{entry.transactional_id}:{entry.producer_id}:{entry.state.value}" for entry in transactions
            )
            return (names or "none") + (f" (no such state: {' '.join(unknown)})" if unknown else "")


def _described(entry: DescribedTransaction | TransactionError) -> str:
    if isinstance(entry, TransactionError):
        return type(entry).__name__
    return (
        f"{entry.transactional_id} {entry.state.value} {entry.producer_id}/{entry.producer_epoch} "
        f"timeout={entry.timeout_ms} since={entry.started_at_ms} {' '.join(map(str, entry.partitions))}"
    ).strip()
