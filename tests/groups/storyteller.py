"""The words of scenarios about groups; how a file is read and told is in `tests/storyteller.py`.

The first word of a command is what is done, the second who does it. Member ids are written as the client's name and a number:
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
"""

import re
from collections.abc import Iterator

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
from tests.storyteller import Storyteller, listed

_UUID = re.compile(r"([\w.]+)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class GroupStory(Storyteller[AnyCommand]):
    def __init__(self) -> None:
        self._stage = Stage()
        super().__init__(self._stage)
        self._names: dict[str, str] = {}
        self._records_told = 0

    def check(self) -> None:
        assert self._stage.loaded() == self._stage.core.durable

    def act(self, verb: str, words: list[str]) -> list[str] | None:
        stage = self._stage
        match verb:
            case "txn-end":
                stage.end_transaction(
                    int(words[0].removeprefix("producer=")), committed=words[1] == "committed"
                )
            case "topics":
                for word in words:
                    name, _, count = word.partition("=")
                    stage.topics.set(name, int(count))
            case "delete-topic":
                stage.carry_out(stage.core.on_topics_deleted(words))
            case _:
                return None
        return self.news() or ["ok"]

    def question(self, verb: str, words: list[str]) -> tuple[str, AnyCommand]:
        caller = words[0] if words else "admin"
        return caller, self._command(verb, caller, words[1:])

    def ask(self, command: AnyCommand) -> int:
        return self._stage.ask(command)

    def new_events(self) -> Iterator[str]:
        for number, (key, value) in enumerate(self._stage.records[self._records_told :], self._records_told):
            event = decode_event(key, value)
            assert event is not None
            producer_id = self._stage.enrolled.get(number)
            yield _event(event) + ("" if producer_id is None else f", if producer {producer_id} commits")
        self._records_told = len(self._stage.records)

    def answer(self, caller: str, answer: Answer | GroupError) -> str:
        del caller
        return _answer(answer)

    def shortened(self, line: str) -> str:
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
                        if text
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
                leaving = [LeavingMember(self._full(name)) for name in listed(given.get("members", ""))]
                leaving += [LeavingMember("", name) for name in listed(given.get("instances", ""))]
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
