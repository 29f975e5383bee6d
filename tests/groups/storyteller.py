"""Reads and tells the scenario files of groups.

A file is a list of steps with a blank line between them: a comment, the commands, `----`, what came of them. The first
word of a command is what is done, the second who does it. Member ids are written as the client's name and a number:
`a-1` is the first id that client `a` was given.

    join a [member=a-1] [instance=x] [speaks=range:t,sticky:t+u] [type=consumer] [session=10000] [rebalance=60000]
           [modern] [skips]                          modern: KIP-394; skips: KIP-814
    sync a member=a-1 generation=1 [instance=x] [assigns=a-1:t-0+t-1,b-1:] [protocol=range]
    heartbeat a member=a-1 generation=1 [instance=x]
    leave a members=a-1,b-1 | leave admin instances=x,y
    commit a [member=a-1] [generation=1] [instance=x] t-0=5 t-1=7:note
    txn-commit a producer=7 [member=a-1] [generation=1] [instance=x] t-0=5
    txn-end producer=7 committed|aborted
    fetch a [t-0 t-1] [stable]
    list, describe, delete-group, delete-offsets t-0, delete-topic t

Groups whose assignments are made here. Members choose their ids themselves and have their client's name for one.

    topics t=3 u=2                                   there are so many partitions; 0: the topic is gone
    beat a [epoch=0] [reads=t+u] [pattern=t.*] [owns=t-0+t-1] [instance=x] [assignor=range] [rebalance=60000]
           [member=b] [nameless]                     nameless: the broker makes the member id
    describe-consumers
    join with [owns=t-0], sync with [embedded]: assignments as consumers have them; commit, fetch with [epoch=1] [ancient]
    disconnect a, wait 3000, crash, settings initial_rebalance_delay_ms=0
"""

import re
from pathlib import Path

import msgspec

from ropewalk.base.ids import TopicPartition
from ropewalk.groups.answers import (
    Answer,
    Committed,
    CommittedOffset,
    DescribedGroup,
    GroupsDeleted,
    GroupsDescribed,
    GroupsListed,
    GroupType,
    HeartbeatTaken,
    Joined,
    Left,
    OffsetsDeleted,
    OffsetsFetched,
    Synced,
)
from ropewalk.groups.commands import (
    AnyCommand,
    Assignment,
    Commit,
    CommitInTransaction,
    DeleteGroups,
    DeleteOffsets,
    DescribeGroups,
    FetchOffsets,
    Heartbeat,
    Join,
    Leave,
    LeavingMember,
    ListGroups,
    OffsetToCommit,
    Protocol,
    Sync,
)
from ropewalk.groups.errors import GroupError, MemberIdRequired
from ropewalk.groups.event_codec import decode_event
from ropewalk.groups.events import Event, GenerationRecorded, GroupRemoved, OffsetCommitted, OffsetRemoved
from tests.groups.consumer_words import (
    consumer_answer,
    consumer_command,
    consumer_event,
    embedded,
    owning,
    spelled,
)
from tests.groups.stage import Stage

_UUID = re.compile(r"([\w.]+)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def retell(path: Path) -> str:
    """The file with what comes of its commands today."""
    return _Story().tell(path.read_text())


class _Story:
    def __init__(self) -> None:
        self._stage = Stage()
        self._names: dict[str, str] = {}
        self._callers: dict[int, str] = {}
        self._told: set[int] = set()
        self._records_told = 0

    def tell(self, text: str) -> str:
        steps = []
        for step in re.split(r"\n\n+", text.strip()):
            lines = step.split("\n----", 1)[0].split("\n")
            told = list(lines)
            commands = [line for line in lines if not line.startswith("#")]
            if commands:
                told.append("----")
                for line in commands:
                    told += self._run(line.split())
                assert self._stage.loaded() == self._stage.core.durable, step
            steps.append("\n".join(told))
        return "\n\n".join(steps) + "\n"

    def _run(self, words: list[str]) -> list[str]:
        verb, *rest = words
        stage = self._stage
        match verb:
            case "settings":
                stage.settings = msgspec.structs.replace(
                    stage.settings, **{key: _value(text) for key, text in (word.split("=") for word in rest)}
                )
                stage.crash()
            case "wait":
                return self._wait(int(rest[0]))
            case "crash":
                stage.crash()
                self._told |= self._callers.keys()
            case "disconnect":
                for token in [token for token in self._waiting() if self._callers[token] == rest[0]]:
                    stage.core.forget(token)
                    self._told.add(token)
            case "txn-end":
                stage.end_transaction(
                    int(rest[0].removeprefix("producer=")), committed=rest[1] == "committed"
                )
            case "topics":
                for word in rest:
                    name, _, count = word.partition("=")
                    stage.topics.set(name, int(count))
            case "delete-topic":
                stage.carry_out(stage.core.on_topics_deleted(rest))
            case _:
                caller = rest[0] if rest else "admin"
                token = stage.ask(self._command(verb, caller, rest[1:]))
                self._callers[token] = caller
                news = self._news()
                return [*news, f"{caller} waits"] if token in self._waiting() else news
        return self._news() or ["ok"]

    def _wait(self, duration_ms: int) -> list[str]:
        """Time passes from deadline to deadline, so that the story says when things happened."""
        stage, lines, end_ms = self._stage, [], self._stage.now_ms + duration_ms
        while (due_ms := stage.core.deadline_ms()) is not None and due_ms <= end_ms:
            stage.wait(int(due_ms) - stage.now_ms)
            news = self._news()
            lines += [f"at {stage.now_ms}", *news] if news else []
        stage.wait(end_ms - stage.now_ms)
        return lines or ["ok"]

    def _waiting(self) -> list[int]:
        return [token for token in self._callers if token not in self._told | self._stage.replies.keys()]

    def _news(self) -> list[str]:
        lines = []
        for number, (key, value) in enumerate(self._stage.records[self._records_told :], self._records_told):
            event = decode_event(key, value)
            assert event is not None
            producer_id = self._stage.enrolled.get(number)
            part = "" if producer_id is None else f", if producer {producer_id} commits"
            lines.append(f"  + {_event(event)}{part}")
        self._records_told = len(self._stage.records)
        for token, answer in self._stage.replies.items():
            if token not in self._told:
                self._told.add(token)
                caller = self._callers.get(token, "")
                lines.append(f"{caller} < {_answer(answer)}" if caller else _answer(answer))
        return [self._shortened(line) for line in lines]

    def _shortened(self, line: str) -> str:
        def name(match: re.Match[str]) -> str:
            full, client = match[0], match[1]
            if full not in self._names:
                count = sum(short.startswith(f"{client}-") for short in self._names.values())
                self._names[full] = f"{client}-{count + 1}"
            return self._names[full]

        return _UUID.sub(name, line)

    def _full(self, short: str) -> str:
        return next((full for full, name in self._names.items() if name == short), short)

    def _command(self, verb: str, caller: str, words: list[str]) -> AnyCommand:
        given = {key: value for key, _, value in (word.partition("=") for word in words)}
        member_id, instance_id = self._full(given.get("member", "")), given.get("instance")
        generation = int(given.get("generation", -1))
        match verb:
            case "join":
                return Join(
                    group_id="g",
                    session_timeout_ms=int(given.get("session", 10_000)),
                    rebalance_timeout_ms=int(given.get("rebalance", 60_000)),
                    protocol_type=given.get("type", "consumer"),
                    protocols=tuple(
                        _protocol(text, given.get("owns", ""))
                        for text in given.get("speaks", "range:t").split(",")
                    ),
                    member_id=member_id,
                    instance_id=instance_id,
                    client_id=caller,
                    requires_known_member="modern" in given,
                    understands_skip_assignment="skips" in given,
                )
            case "sync":
                pairs = [pair.split(":") for pair in given.get("assigns", "").split(",") if pair]
                encode = embedded if "embedded" in given else str.encode
                assignments = tuple(Assignment(self._full(name), encode(share)) for name, share in pairs)
                protocol = given.get("protocol")
                return Sync(
                    "g",
                    generation,
                    member_id,
                    instance_id,
                    protocol_name=protocol,
                    assignments=assignments,
                )
            case "heartbeat":
                return Heartbeat("g", generation, member_id, instance_id)
            case "leave":
                leaving = [LeavingMember(self._full(name)) for name in _listed(given.get("members", ""))]
                leaving += [LeavingMember("", name) for name in _listed(given.get("instances", ""))]
                return Leave("g", tuple(leaving))
            case "commit":
                offsets = tuple(_offset(word) for word in words if re.match(r"\w+-\d+=", word))
                generation = int(given.get("epoch", generation))
                is_modern = "ancient" not in given
                return Commit("g", offsets, generation, member_id, instance_id, speaks_epochs=is_modern)
            case "txn-commit":
                offsets = tuple(_offset(word) for word in words if re.match(r"\w+-\d+=", word))
                producer_id = int(given["producer"])
                return CommitInTransaction("g", producer_id, 0, offsets, generation, member_id, instance_id)
            case "fetch":
                places = tuple(_place(word) for word in words if word != "stable" and "=" not in word)
                return FetchOffsets(
                    "g",
                    places or None,
                    require_stable="stable" in words,
                    member_id=given.get("member"),
                    member_epoch=int(given.get("epoch", -1)),
                )
            case "list":
                return ListGroups()
            case "describe":
                return DescribeGroups(("g",))
            case "delete-group":
                return DeleteGroups(("g",))
            case "delete-offsets":
                return DeleteOffsets("g", tuple(map(_place, words)))
        command = consumer_command(verb, caller, given)
        if command is None:
            raise ValueError(f"no such command: {verb}")
        return command


def _value(text: str) -> int | str:
    return int(text) if text.isdigit() else text


def _listed(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _place(text: str) -> TopicPartition:
    topic, _, partition = text.rpartition("-")
    return TopicPartition(topic, int(partition))


def _offset(text: str) -> OffsetToCommit:
    name, _, value = text.partition("=")
    offset, _, note = value.partition(":")
    place = _place(name)
    return OffsetToCommit(place.topic, place.partition, int(offset), leader_epoch=3, metadata=note)


def _protocol(text: str, owned: str) -> Protocol:
    name, _, topics = text.partition(":")
    return Protocol(name, owning((topic for topic in topics.split("+") if topic), owned))


def _event(event: Event) -> str:
    match event:
        case OffsetCommitted(_, topic, partition, committed):
            return f"offset {topic}-{partition}={committed.offset}"
        case OffsetRemoved(_, topic, partition):
            return f"no offset {topic}-{partition}"
        case GenerationRecorded(generation=generation, members=()):
            return f"generation {generation}: empty"
        case GenerationRecorded(
            generation=generation, protocol=protocol, leader_id=leader_id, members=members
        ):
            shares = " ".join(f"{member.member_id}:{spelled(member.assignment)}" for member in members)
            return f"generation {generation}: {protocol} led by {leader_id}, {shares}"
        case GroupRemoved():
            return "no group"
        case _:
            return consumer_event(event)


def _answer(answer: Answer | GroupError) -> str:
    match answer:
        case MemberIdRequired():
            return f"MemberIdRequired: {answer.member_id}"
        case GroupError():
            return type(answer).__name__
        case Joined():
            members = ",".join(member.member_id for member in answer.members)
            return (
                f"joined generation {answer.generation} as {answer.member_id}, {answer.protocol} led by {answer.leader_id}"
                + (f" over {members}" if members else "")
                + (" (assigned already)" if answer.skip_assignment else "")
            )
        case Synced():
            return f"assigned {spelled(answer.assignment) or 'nothing'}"
        case HeartbeatTaken():
            return "alive"
        case Left(results) | Committed(results) | GroupsDeleted(results) | OffsetsDeleted(results):
            return " ".join("ok" if result is None else type(result).__name__ for result in results)
        case OffsetsFetched(offsets):
            return " ".join(
                f"{entry.topic_partition}="
                + (
                    f"{entry.committed.offset}:{entry.committed.metadata}"
                    if isinstance(entry.committed, CommittedOffset)
                    else "none"
                    if entry.committed is None
                    else type(entry.committed).__name__
                )
                for entry in offsets
            )
        case GroupsListed(groups):
            return (
                " ".join(
                    f"{group.group_id}:{group.state.value}"
                    + (":consumer" if group.group_type is GroupType.CONSUMER else "")
                    for group in groups
                )
                or "nothing"
            )
        case GroupsDescribed((DescribedGroup() as group,)):
            shares = " ".join(f"{member.member_id}:{spelled(member.assignment)}" for member in group.members)
            return f"{group.state.value} {group.protocol} {shares}".strip()
        case GroupsDescribed(groups):
            return " ".join(type(group).__name__ for group in groups)
        case _:
            return consumer_answer(answer)
