"""Clients that receive, by short and long polls, and delete, extend, show again, forget, or hang up in the middle."""

from collections.abc import Sequence
from typing import Final

from ropewalk.base.ids import OwnerId
from ropewalk.sim.runs.queue_cluster.ledger import Ledger, Moment, Seen
from ropewalk.sim.runs.queue_cluster.sorts import HIDDEN_LONG_S, HIDDEN_S_MAX
from ropewalk.sim.runs.queue_cluster.visitor import PATIENCE_S, Refused, Visitor
from ropewalk.sqs.receipts import Receipts

AGAIN_MAX: Final = 3
COUNT_MAX: Final = 10


class Till:
    """One client's way of receiving from a queue and settling, with the ledger told of all of it."""

    def __init__(self, visitor: Visitor, ledger: Ledger, receipts: Receipts, queue_id: OwnerId) -> None:
        self._visitor = visitor
        self._ledger = ledger
        self._receipts = receipts
        self._queue_id = queue_id
        self._url = ledger.sort.name

    async def receive(
        self,
        *,
        wait_s: int,
        count_max: int = COUNT_MAX,
        visibility_s: int = HIDDEN_S_MAX,
        request_id: str = "",
        hang_up_s: float | None = None,
    ) -> Sequence[Seen] | None:
        """None where no answer came."""
        body: dict[str, object] = {
            "QueueUrl": self._url,
            "MaxNumberOfMessages": count_max,
            "VisibilityTimeout": visibility_s,
            "WaitTimeSeconds": wait_s,
            "AttributeNames": ["ApproximateReceiveCount"],
        }
        if request_id:
            body["ReceiveRequestAttemptId"] = request_id
        asked_s = self._visitor.now_s
        patience_s = wait_s + PATIENCE_S if hang_up_s is None else hang_up_s
        told = await self._visitor.ask("ReceiveMessage", body, patience_s=patience_s)
        if told is None:
            self._ledger.on_receive_unanswered(asked_s)
            return None
        seen = []
        for each in told.body.get("Messages") or ():
            receipt = self._receipts.read(self._queue_id, each["ReceiptHandle"])
            seen.append(
                Seen(
                    each["Body"],
                    each["ReceiptHandle"],
                    each["MessageId"],
                    receipt.partition,
                    receipt.offset,
                    int(each["Attributes"]["ApproximateReceiveCount"]),
                )
            )
        moment = Moment(told.asked_s, told.answered_s, told.door)
        self._ledger.on_received(seen, moment, visibility_s=visibility_s)
        return seen

    async def delete(self, seen: Seen) -> bool:
        """Whether it is gone for certain."""
        had_asked = self._ledger.messages[seen.text].may_be_deleted
        self._ledger.on_delete_asked(seen.text)
        try:
            told = await self._visitor.ask(
                "DeleteMessage", {"QueueUrl": self._url, "ReceiptHandle": seen.handle}
            )
        except Refused:
            self._ledger.on_delete_refused(seen.text, had_asked_before=had_asked)
            return False
        if told is None:
            self._visitor.workload.sometimes.note("a delete stayed unanswered")
            return False
        self._ledger.on_deleted(seen.text, seen.handle, at_s=told.answered_s)
        self._visitor.workload.sometimes.note("a message was deleted")
        return True

    async def delete_all(self, seen: Sequence[Seen]) -> None:
        """In one request."""
        had_asked = [self._ledger.messages[each.text].may_be_deleted for each in seen]
        for each in seen:
            self._ledger.on_delete_asked(each.text)
        entries = [{"Id": str(number), "ReceiptHandle": each.handle} for number, each in enumerate(seen)]
        told = await self._visitor.ask("DeleteMessageBatch", {"QueueUrl": self._url, "Entries": entries})
        if told is None:
            return
        for done in told.body.get("Successful") or ():
            each = seen[int(done["Id"])]
            self._ledger.on_deleted(each.text, each.handle, at_s=told.answered_s)
            self._visitor.workload.sometimes.note("a message was deleted")
        for failed in told.body.get("Failed") or ():
            if failed["SenderFault"]:
                number = int(failed["Id"])
                self._ledger.on_delete_refused(seen[number].text, had_asked_before=had_asked[number])

    async def change(self, seen: Seen, visibility_s: int) -> None:
        asked_s = self._visitor.now_s
        held = self._ledger.on_visibility_asked(
            seen.text, seen.handle, at_s=asked_s, visibility_s=visibility_s
        )
        is_refused = False
        body = {"QueueUrl": self._url, "ReceiptHandle": seen.handle, "VisibilityTimeout": visibility_s}
        try:
            told = await self._visitor.ask("ChangeMessageVisibility", body)
        except Refused:
            told, is_refused = None, True
        if held is not None and (told is not None or is_refused):
            self._ledger.on_visibility_changed(
                held, at_s=asked_s, visibility_s=visibility_s, is_refused=is_refused
            )
        if told is not None:
            self._visitor.workload.sometimes.note("a visibility was changed")


class Receiver:
    def __init__(self, visitor: Visitor, till: Till, *, is_fifo: bool, hides_long: bool) -> None:
        self._visitor = visitor
        self._hides_long = hides_long
        self._till = till
        self._is_fifo = is_fifo
        self._rng = visitor.rng
        self._request_count = 0

    async def run(self) -> None:
        while not self._visitor.workload.is_over:
            await self._step()
            await self._visitor.pause(0.2)
        self._visitor.close()

    async def _step(self) -> None:
        rng = self._rng
        wait_s = rng.choice([0, 0, 1, 3, 8])
        count_max, visibility_s = rng.choice([1, 3, COUNT_MAX]), rng.randrange(1, HIDDEN_S_MAX)
        if self._hides_long:
            visibility_s = HIDDEN_LONG_S
        if rng.random() < 0.12:
            self._visitor.workload.sometimes.note("a client hung up")
            await self._till.receive(
                wait_s=wait_s,
                count_max=count_max,
                visibility_s=visibility_s,
                hang_up_s=rng.choice([0.002, 0.05, 1.0]) * rng.random(),
            )
            return
        request_id = ""
        if self._is_fifo and rng.random() < 0.4:
            self._request_count += 1
            request_id = f"{self._visitor.name}-{self._request_count}"
        for _ in range(AGAIN_MAX):
            seen = await self._till.receive(
                wait_s=wait_s, count_max=count_max, visibility_s=visibility_s, request_id=request_id
            )
            if seen is not None or not request_id:
                break
            self._visitor.workload.sometimes.note("a receive was repeated under its id")
        if seen:
            self._visitor.workload.sometimes.note(
                "a long poll brought messages" if wait_s else "a short poll brought messages"
            )
            await self._treat(seen)

    async def _treat(self, seen: Sequence[Seen]) -> None:
        rng = self._rng
        if self._hides_long and rng.random() < 0.7:
            return
        if rng.random() < 0.3:
            await self._till.delete_all(seen)
            return
        for each in seen:
            await self._visitor.pause(0.1)
            fate = rng.random()
            if fate < 0.5:
                await self._till.delete(each)
            elif fate < 0.65:
                await self._till.change(each, rng.choice([0, 0, 2, HIDDEN_S_MAX - 1]))
