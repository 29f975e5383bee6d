"""Every story in `scenarios/` still ends as it is told there. REWRITE=1 writes them anew, for a look at the difference.

The leader is node 1, among replicas 1 to 3.

    lead 1,2,3 [min=2] [lag=1000] [straggler=300] [end=5] [hw=5]   in sync: these
    append 10 [unsynced], sync 10
    fetch 2 10 [epoch=8]                                           node 2 holds everything below 10
    wait 500
    propose [away=3]                                               with the brokers in service, these apart
    accepted, refused, unknown                                     what became of the proposal
    facts 1,2 [eligible=3]                                         what the image says next
    straggler 3                                                    node 3 is not to be waited for
    follow 1,1,4 [hw=2]                                            a follower whose records are of these epochs
    records hw=3, parts epoch=2 end=1, elsewhere 4, refused        what its leader answers
"""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ropewalk.base.ids import LeaderEpoch, NodeId, Offset
from ropewalk.log.epochs import EpochEnd
from ropewalk.metadata.records import BrokerState
from ropewalk.replication.follower import (
    Answer,
    Append,
    Diverging,
    Effect,
    Elsewhere,
    Follower,
    MoveStart,
    Records,
    Refusal,
    Restart,
    Truncate,
    Wait,
)
from ropewalk.replication.leader import Outcome, Proposal
from tests.replication.given import Story, facts, leader, node_ids
from tests.replication.nodes import ListLog
from tests.stories import numbers, options, retell

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_story_ends_as_it_is_told(path: Path) -> None:
    told = retell(path.read_text(), Teller().run)
    if os.environ.get("REWRITE"):
        path.write_text(told)
    assert path.read_text() == told


def test_there_are_stories() -> None:
    assert len(SCENARIOS) >= 5


class Teller:
    def __init__(self) -> None:
        self._story = Story(leader(facts(1, 2, 3)))
        self._proposal: Proposal | None = None
        self._partition_epoch = 0
        self._follower = Follower(leader_epoch=LeaderEpoch(5), high_watermark=Offset(0))
        self._log = ListLog(())

    def run(self, words: list[str]) -> Iterator[str]:
        command, *given = words
        said = options(given)
        match command:
            case "follow" | "records" | "parts" | "elsewhere":
                yield from self._follow(command, given, said)
            case "refused" if self._proposal is None:
                yield from self._answered(Refusal.NOT_YET)
            case _:
                yield from self._lead(command, given, said)
                core = self._story.core
                yield f"hw={core.high_watermark} isr={_listed(core.isr)}"

    def _lead(self, command: str, given: list[str], said: dict[str, str]) -> Iterator[str]:
        story = self._story
        match command:
            case "lead":
                core = leader(
                    facts(*numbers(given[0])),
                    isr_count_min=int(said.get("min", 1)),
                    lag_ms_max=int(said.get("lag", 1000)),
                    straggler_ms=int(said["straggler"]) if "straggler" in said else None,
                    end_offset=int(said.get("end", 0)),
                    high_watermark=int(said.get("hw", 0)),
                )
                self._story = Story(core)
            case "append":
                story.append(int(given[0]), durable="unsynced" not in given)
            case "sync":
                story.core.on_durable(Offset(int(given[0])))
            case "fetch":
                may_join = story.fetch(int(given[0]), int(given[1]), epoch=int(said.get("epoch", 7)))
                if may_join:
                    yield f"{given[0]} may join"
            case "wait":
                story.now_ms += int(given[0])
                behind = story.core.straggling(story.now_ms)
                if behind:
                    yield f"{_listed(behind)} straggles"
            case "propose":
                away = dict.fromkeys(numbers(said.get("away", "-")), BrokerState.FENCED)
                self._proposal = story.propose(states=away)
                yield (
                    "nothing to ask for"
                    if self._proposal is None
                    else f"asks for {_listed(member.node_id for member in self._proposal.isr)}"
                )
            case "accepted" | "refused" | "unknown":
                story.hear(self._proposal, Outcome[command.upper()])
                self._proposal = None
            case "facts":
                self._partition_epoch += 1
                partition = msgspec.structs.replace(
                    facts(*numbers(given[0]), partition_epoch=self._partition_epoch),
                    eligible=node_ids(*numbers(said.get("eligible", "-"))),
                )
                story.core.on_facts(partition, story.now_ms)
            case "straggler":
                story.core.on_straggler(NodeId(int(given[0])), story.now_ms)
            case _:
                raise AssertionError(f"no story knows {command}")

    def _follow(self, command: str, given: list[str], said: dict[str, str]) -> Iterator[str]:
        match command:
            case "follow":
                epochs = numbers(given[0])
                self._log = ListLog(tuple((epoch, index) for index, epoch in enumerate(epochs)))
                high_watermark = Offset(int(said.get("hw", 0)))
                self._follower = Follower(leader_epoch=LeaderEpoch(5), high_watermark=high_watermark)
                yield self._asked()
            case "records":
                yield from self._answered(Records(Offset(int(said["hw"])), Offset(int(said.get("start", 0)))))
            case "parts":
                shared = EpochEnd(LeaderEpoch(int(said["epoch"])), Offset(int(said["end"])))
                yield from self._answered(Diverging(shared))
            case "elsewhere":
                yield from self._answered(Elsewhere(Offset(int(given[0]))))

    def _asked(self) -> str:
        question = self._follower.ask(self._log, settled_offset=self._log.end_offset)
        assert question is not None
        return f"asks from {question.fetch_offset}, after epoch {question.last_fetched_epoch}"

    def _answered(self, answer: Answer) -> Iterator[str]:
        question = self._follower.ask(self._log, settled_offset=self._log.end_offset)
        assert question is not None
        for effect in self._follower.on_answer(question, answer, self._log):
            yield _told(effect)
            if isinstance(effect, Truncate):
                records = self._log.records[: effect.offset]
                self._log = ListLog(records)
                yield self._asked()
        yield f"hw={self._follower.high_watermark(self._log.end_offset)}"


def _told(effect: Effect) -> str:
    match effect:
        case Append():
            return "writes what came"
        case MoveStart():
            return "begins where its leader does"
        case Truncate(offset=offset):
            return f"cuts its log to {offset}"
        case Restart(offset=offset):
            return f"begins anew at {offset}"
        case Wait(reason=reason):
            return f"waits: {reason.name}"


def _listed(node_ids: "set[NodeId] | frozenset[NodeId] | list[NodeId] | Iterator[NodeId]") -> str:
    return ",".join(map(str, sorted(node_ids))) or "-"
