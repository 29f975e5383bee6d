"""Messages that wait for the end of the turn in which they were sent, and become one batch of a queue's log then.

What a reader could get wrong
    On a FIFO queue the core is asked when the batch is made, and the batch is appended before anything else happens: the core remembers each
    new message under the offset that it will have.
"""

import asyncio
from collections.abc import Callable, Sequence

from msgspec import Struct

from ropewalk.base.errors import BatchTooLarge, RopewalkError, Throttled
from ropewalk.base.limits import QUEUE_SENDS_PER_TURN_BYTES_MAX
from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.queues import turn
from ropewalk.broker.queues.releases import Due, refuse
from ropewalk.queues import QueuePartition, commands
from ropewalk.queues.answers import Admitted
from ropewalk.queues.messages import Outgoing, Sent
from ropewalk.queues.step import QueueStep
from ropewalk.records.packing import Entry


class _Sending(Struct):
    """Of one caller."""

    messages: Sequence[Outgoing]
    entries: list[Entry]
    outcomes: list[Sent | RopewalkError | None]
    """None: it is to be appended, and this is filled in when its offset is known."""
    answer: "asyncio.Future[list[Sent | RopewalkError]]"


class Sendings:
    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._index = partition.name.partition
        self._waiting: list[_Sending] = []
        self.pending_bytes = 0

    def add(self, messages: Sequence[Outgoing]) -> "asyncio.Future[list[Sent | RopewalkError]]":
        """Raises `Throttled` where too much waits; what is refused of single messages is in the answer."""
        entries: list[Entry] = []
        outcomes: list[Sent | RopewalkError | None] = []
        size_bytes, size_max = 0, turn.size_max(self._partition)
        for entry, entry_size_bytes in turn.entries_of(messages):
            entries.append(entry)
            if entry_size_bytes <= size_max:
                outcomes.append(None)
                size_bytes += entry_size_bytes
            else:
                text = f"a message of {entry_size_bytes} bytes; the topic takes {size_max}"
                outcomes.append(BatchTooLarge(text))
        if self.pending_bytes and self.pending_bytes + size_bytes > QUEUE_SENDS_PER_TURN_BYTES_MAX:
            raise Throttled(f"{self._partition.name}: more is being sent than can be taken; come back")
        answer: asyncio.Future[list[Sent | RopewalkError]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Sending(messages, entries, outcomes, answer))
        self.pending_bytes += size_bytes
        return answer

    def take(
        self,
        core: QueuePartition,
        due: Due,
        *,
        is_fifo: bool,
        token: int,
        now_ms: int,
        carry_out: Callable[[QueueStep], None],
    ) -> list[Entry]:
        """What is to be appended at the end of the log, now; answers are added to those due. `token` is nobody else's."""
        waiting, self._waiting = self._waiting, []
        self.pending_bytes = 0
        start_offset = self._partition.log.end_offset
        entries: list[Entry] = []
        for sending in waiting:
            due.append((sending.answer, sending.outcomes))
            if is_fifo:
                carry_out(self._admit(core, sending, entries, start_offset, token, now_ms))
                continue
            for position, outcome in enumerate(sending.outcomes):
                if outcome is None:
                    sending.outcomes[position] = Sent(self._index, start_offset + len(entries))
                    entries.append(sending.entries[position])
        return entries

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def refuse(self, reason: RopewalkError) -> None:
        """Nothing of it was written."""
        waiting, self._waiting = self._waiting, []
        self.pending_bytes = 0
        refuse((sending.answer for sending in waiting), reason)

    def _admit(
        self,
        core: QueuePartition,
        sending: _Sending,
        entries: list[Entry],
        start_offset: int,
        token: int,
        now_ms: int,
    ) -> QueueStep:
        """FIFO: what is a duplicate is not appended."""
        positions = [position for position, outcome in enumerate(sending.outcomes) if outcome is None]
        if not positions:
            return QueueStep()
        messages = sending.messages
        sent = [commands.Sent(messages[each].group, messages[each].deduplication_id) for each in positions]
        step = core.decide(token, commands.Send(tuple(sent), start_offset + len(entries)), now_ms)
        for reply in (*step.replies, *step.prompts):
            if reply.token != token:
                continue
            if isinstance(reply.answer, RopewalkError):
                for position in positions:
                    sending.outcomes[position] = reply.answer
            elif isinstance(reply.answer, Admitted):
                admitted = zip(positions, reply.answer.offsets, reply.answer.are_duplicates, strict=True)
                for position, offset, is_duplicate in admitted:
                    sending.outcomes[position] = Sent(self._index, offset, is_duplicate)
                    if not is_duplicate:
                        entries.append(sending.entries[position])
        return step
