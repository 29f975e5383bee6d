"""The words of scenario files for groups whose assignments are made here; see `storyteller.py`."""

from collections.abc import Iterable

from ropewalk.base.ids import TopicPartition
from ropewalk.groups.answers import (
    Answer,
    ConsumerGroupsDescribed,
    ConsumerHeartbeatTaken,
    DescribedConsumerGroup,
)
from ropewalk.groups.assignors.model import Share
from ropewalk.groups.commands import AnyCommand, ConsumerHeartbeat, DescribeConsumerGroups
from ropewalk.groups.consumer.events import (
    CurrentRecorded,
    EpochRecorded,
    MemberRecorded,
    PartRemoved,
    PatternRecorded,
    TargetEpochRecorded,
    TargetRecorded,
)
from ropewalk.groups.embedded import decode_assignment, encode_assignment
from ropewalk.groups.errors import GroupError, InconsistentProtocol
from ropewalk.groups.events import Event
from tests.groups.stage import subscription, topic_id


def consumer_command(verb: str, caller: str, given: dict[str, str]) -> AnyCommand | None:
    match verb:
        case "beat":
            return _beat(caller, given)
        case "describe-consumers":
            return DescribeConsumerGroups(("g",))
    return None


def _beat(caller: str, given: dict[str, str]) -> ConsumerHeartbeat:
    """Whoever joins says everything, others only what is written."""
    epoch = int(given.get("epoch", 0))
    defaults = {"owns": "", "rebalance": "60000"} if epoch == 0 else {}
    if epoch == 0 and "pattern" not in given:
        defaults["reads"] = "t"
    said = defaults | given
    return ConsumerHeartbeat(
        group_id="g",
        member_id="" if "nameless" in said else said.get("member", caller),
        epoch=epoch,
        instance_id=said.get("instance"),
        rebalance_timeout_ms=int(said["rebalance"]) if said.get("rebalance") else None,
        topics=_names(said["reads"]) if "reads" in said else None,
        pattern=said.get("pattern"),
        assignor=said.get("assignor"),
        owned=share(said["owns"]) if "owns" in said else None,
        client_id=caller,
        makes_own_id="nameless" not in said,
    )


def share(text: str) -> Share:
    return frozenset((topic_id(place.topic), place.partition) for place in places(text))


def places(text: str) -> list[TopicPartition]:
    split = (word.rpartition("-") for word in text.split("+") if word)
    return [TopicPartition(topic, int(partition)) for topic, _, partition in split]


def owning(topics: Iterable[str], owned: str) -> bytes:
    """A subscription of someone who still has `owned`."""
    by_topic: dict[str, list[int]] = {}
    for place in places(owned):
        by_topic.setdefault(place.topic, []).append(place.partition)
    return subscription(*topics, owned=by_topic)


def embedded(text: str) -> bytes:
    return encode_assignment(places(text), like=b"\0\1")


def spelled(assignment: bytes) -> str:
    """Scenarios of classic groups assign plain text; what is made here is as consumers have it."""
    try:
        decoded = decode_assignment(assignment)
    except InconsistentProtocol:
        return assignment.decode()
    return "+".join(map(str, decoded))


def consumer_event(event: Event) -> str:
    match event:
        case EpochRecorded(epoch=epoch):
            return f"epoch {epoch}"
        case MemberRecorded(member_id=member_id, details=details):
            kind = "" if details.classic is None else "classic "
            static = "" if details.instance_id is None else f" as {details.instance_id}"
            pattern = "" if details.pattern is None else f" and {details.pattern!r}"
            return f"{kind}member {member_id}{static} reads {'+'.join(details.topics) or 'nothing'}{pattern}"
        case TargetEpochRecorded(epoch=epoch):
            return f"targets of epoch {epoch}"
        case TargetRecorded(member_id=member_id, share=shared):
            return f"target of {member_id}: {_spell(shared)}"
        case CurrentRecorded(member_id=member_id, current=current):
            gives_up = f", gives up {_spell(current.revoking)}" if current.revoking else ""
            return f"{member_id} in epoch {current.epoch} {current.state.name.lower()}: {_spell(current.assigned)}{gives_up}"
        case PatternRecorded(pattern=pattern, topics=topics):
            return f"{pattern!r} matches {'+'.join(topics) or 'nothing'}"
        case PartRemoved(part=part, name=name):
            return f"no {part.name.lower()} {name}".rstrip()
    raise ValueError(f"no words for {event}")


def consumer_answer(answer: Answer | GroupError) -> str:
    match answer:
        case ConsumerHeartbeatTaken(member_id, epoch, _, None):
            return f"{member_id} in epoch {epoch}"
        case ConsumerHeartbeatTaken(member_id, epoch, _, assigned):
            assert assigned is not None
            return f"{member_id} in epoch {epoch} has {_spell(assigned)}"
        case ConsumerGroupsDescribed((DescribedConsumerGroup() as group,)):
            members = " ".join(
                f"{member.member_id}{'(classic)' if member.is_classic else ''}@{member.epoch}:{_spell(member.assigned)}"
                for member in group.members
            )
            return (
                f"{group.state.value} {group.assignor} {group.epoch}/{group.target_epoch} {members}".rstrip()
            )
        case ConsumerGroupsDescribed(groups):
            return " ".join(type(group).__name__ for group in groups)
    raise ValueError(f"no words for {answer}")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split("+") if name)


def _spell(shared: Share) -> str:
    return "+".join(f"{topic.decode().rstrip('.')}-{index}" for topic, index in sorted(shared)) or "nothing"
