"""Clients that send: one by one and in batches, with delays, in groups, and again under the same id where nothing was heard."""

from typing import Any, Final

from msgspec import Struct

from ropewalk.sim.runs.queue_cluster.ledger import Ledger
from ropewalk.sim.runs.queue_cluster.sorts import DELAY_S_MAX
from ropewalk.sim.runs.queue_cluster.visitor import Refused, Visitor

GROUPS: Final = 6
MANY_GROUPS: Final = 60
"""So many that something goes on, though most of them wait for one that is hidden for long."""

BATCH_MAX: Final = 6
AGAIN_MAX: Final = 8
"""How often an unanswered send is repeated under its id. Together that is far less than ids are remembered."""


class _Draft(Struct, frozen=True):
    text: str
    fields: dict[str, object]


class Sender:
    """Of one queue. A group is its own, so that it knows in which order its messages were sent."""

    def __init__(self, visitor: Visitor, ledger: Ledger, *, group_count: int = GROUPS) -> None:
        self._visitor = visitor
        self._group_count = group_count
        self._rng = visitor.rng
        self._ledger = ledger
        self._sort = ledger.sort
        self._text_count = 0
        self._batch_count = 0

    async def run(self) -> None:
        while not self._visitor.workload.is_over:
            await self.step()
            await self._visitor.pause(0.3)
        self._visitor.close()

    async def step(self) -> None:
        group = f"{self._visitor.name}-{self._rng.randrange(self._group_count)}"
        if self._rng.random() < 0.35:
            await self._send_batch(group)
            return
        draft = self._draft(group)
        await self._send(draft)
        message = self._ledger.messages[draft.text]
        if self._sort.is_fifo and message.answered_s is not None and self._rng.random() < 0.15:
            fields = {**draft.fields, "MessageBody": draft.text + " again"}
            now_s = self._visitor.now_s
            self._ledger.on_send(draft.text + " again", group, at_s=now_s, delay_s=0, twin_of=draft.text)
            await self._send(_Draft(draft.text + " again", fields))

    async def send_now(self) -> str | None:
        """One message without a delay of its own; None where nothing was heard of it."""
        draft = self._draft(f"{self._visitor.name}-now", may_be_delayed=False)
        await self._send(draft)
        return draft.text if self._ledger.messages[draft.text].answered_s is not None else None

    async def _send(self, draft: _Draft) -> None:
        for _ in range(AGAIN_MAX):
            told = await self._visitor.ask("SendMessage", {"QueueUrl": self._sort.name, **draft.fields})
            if told is not None:
                self._ledger.on_sent(draft.text, told.body["MessageId"], at_s=told.answered_s)
                self._visitor.workload.sometimes.note("a message was sent")
                return
            self._visitor.workload.sometimes.note("a send stayed unanswered")
            if not self._sort.is_fifo or self._rng.random() < 0.2:
                return
            self._visitor.workload.sometimes.note("a message was sent again under its id")

    async def _send_batch(self, group: str) -> None:
        drafts = [self._draft(group) for _ in range(self._rng.randrange(2, BATCH_MAX))]
        self._batch_count += 1
        rest = list(enumerate(drafts))
        for attempt in range(AGAIN_MAX):
            entries = [{"Id": str(number), **draft.fields} for number, draft in rest]
            told = await self._visitor.ask(
                "SendMessageBatch", {"QueueUrl": self._sort.name, "Entries": entries}
            )
            if told is not None:
                sent: list[dict[str, Any]] = told.body.get("Successful") or []
                is_whole = attempt == 0 and len(sent) == len(drafts)
                for each in sent:
                    number = int(each["Id"])
                    batch = (self._batch_count, number) if is_whole else None
                    text = drafts[number].text
                    self._ledger.on_sent(text, each["MessageId"], at_s=told.answered_s, batch=batch)
                done = {int(each["Id"]) for each in sent}
                rest = [(number, draft) for number, draft in rest if number not in done]
                self._visitor.workload.sometimes.note("a batch was sent")
            if not rest or not self._sort.is_fifo:
                return

    def _draft(self, group: str, *, may_be_delayed: bool = True) -> _Draft:
        self._text_count += 1
        text = f"{self._visitor.name}/{self._text_count}"
        fields: dict[str, object] = {"MessageBody": text}
        delay_s = float(self._sort.delay_s)
        if self._sort.is_fifo:
            fields |= {"MessageGroupId": group, "MessageDeduplicationId": text}
        elif may_be_delayed and self._rng.random() < 0.15:
            delay_s = self._rng.randrange(1, DELAY_S_MAX)
            fields["DelaySeconds"] = delay_s
        self._ledger.on_send(text, group, at_s=self._visitor.now_s, delay_s=delay_s)
        return _Draft(text, fields)


class Purger:
    """Takes everything away, once or twice."""

    def __init__(self, visitor: Visitor, ledger: Ledger) -> None:
        self._visitor = visitor
        self._ledger = ledger

    async def run(self) -> None:
        while not self._visitor.workload.is_over:
            await self._visitor.pause(12.0)
            self._ledger.on_purge_asked()
            try:
                told = await self._visitor.ask("PurgeQueue", {"QueueUrl": self._ledger.sort.name})
            except Refused:
                # Of several partitions the first alone refuses, and before anything is done.
                self._ledger.on_purge_refused()
                continue
            if told is not None:
                self._ledger.on_purged(asked_s=told.asked_s, at_s=told.answered_s)
                self._visitor.workload.sometimes.note("a queue was purged")
        self._visitor.close()
