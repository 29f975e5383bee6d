"""The end of a run, when all is healed: queues are emptied, and then whoever waits gets what is sent, at once."""

import asyncio
from typing import Final

from ropewalk.base.limits import QUEUE_TIME_WRITE_MS
from ropewalk.sim.judges.checker import Violation
from ropewalk.sim.runs.cluster.stage import REST_S, Restless
from ropewalk.sim.runs.queue_cluster.ledger import Seen
from ropewalk.sim.runs.queue_cluster.receivers import Till
from ropewalk.sim.runs.queue_cluster.senders import Sender
from ropewalk.sim.runs.queue_cluster.sorts import DELAY_S_MAX, QueueSort
from ropewalk.sim.runs.queue_cluster.visitor import Visitor

QUIET_S: Final = DELAY_S_MAX + QUEUE_TIME_WRITE_MS / 1000 + 4.0
"""Beyond what receivers asked for, nothing is hidden or delayed for as long: a leader that is new may know a time no better than its
predecessor wrote it."""

PROMPT_S: Final = 2.0
"""Within which a waiting receive has what was sent, when nothing is wrong."""

HEARD_S: Final = 0.15
"""Within which a door and a leader have heard that somebody hung up, over the slowest of wires. What is given to that one before is hidden until its time is
over, as when a client dies with an answer."""

ROUNDS: Final = 3
_FIGURES: Final = tuple(f"ApproximateNumberOfMessages{which}" for which in ("", "NotVisible", "Delayed"))


async def empty(visitor: Visitor, till: Till, name: str, *, hidden_s_max: float) -> None:
    """Take and delete until nothing comes for longer than anything is hidden."""
    began_s = quiet_since_s = visitor.now_s
    while visitor.now_s < quiet_since_s + hidden_s_max + QUIET_S:
        for each in await till.receive(wait_s=2) or ():
            await _delete(till, each)
            quiet_since_s = visitor.now_s
        if visitor.now_s > began_s + REST_S:
            raise Restless(f"{name} is not empty after {REST_S:.0f} s")


async def check_figures(visitor: Visitor, sort: QueueSort) -> list[Violation]:
    """A queue that was emptied says that it is empty, and nothing is hidden in it for good."""
    body = {"QueueUrl": sort.name, "AttributeNames": list(_FIGURES)}
    figures: dict[str, str] = {}
    for _ in range(ROUNDS):
        told = await visitor.ask("GetQueueAttributes", body)
        if told is not None:
            figures = told.body["Attributes"]
            if all(figures[name] == "0" for name in _FIGURES):
                return []
        await asyncio.sleep(1.0)
    return [Violation("L", f"{sort.name} was emptied and says {figures}")]


async def check_promptness(
    staying: tuple[Visitor, Till], leaving: tuple[Visitor, Till], sender: Sender, sort: QueueSort
) -> list[Violation]:
    """One waits, another has hung up, and something is sent: it is for the one that waits."""
    visitor, till = staying
    rng = visitor.rng
    for _ in range(ROUNDS):
        waiting = asyncio.ensure_future(till.receive(wait_s=12))
        await leaving[1].receive(wait_s=12, hang_up_s=rng.uniform(0.05, 0.4))
        await asyncio.sleep(HEARD_S + rng.choice([0.0, 0.3]))
        text = await sender.send_now()
        sent_s = visitor.now_s
        if text is None:
            await waiting
            continue
        seen = await waiting
        late_s = visitor.now_s - sent_s - 1.05 * sort.delay_s
        for each in seen or ():
            await _delete(till, each)
        if late_s > PROMPT_S or all(each.text != text for each in seen or ()):
            came = [each.text for each in seen or ()]
            return [
                Violation(
                    "L", f"{sort.name}: {text} was sent, and who waited had {came} {late_s:.1f} s later"
                )
            ]
        visitor.workload.sometimes.note("a waiting receive had what was sent")
    return []


async def _delete(till: Till, each: Seen) -> None:
    for _ in range(ROUNDS):
        if await till.delete(each):
            return
