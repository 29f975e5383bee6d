"""Clients of groups as decent programs behave, one step at a time, for models of whole groups.

A partition is a client's from the moment it is told so until the client lets go of it, whatever the coordinator
believes meanwhile. `Crowd` watches that no two clients hold the same one.
"""

from collections.abc import Iterable
from random import Random

from ropewalk.base.ids import TopicPartition
from ropewalk.groups.answers import ConsumerHeartbeatTaken, Joined, Synced
from ropewalk.groups.assignors.model import Share
from ropewalk.groups.commands import (
    Assignment,
    ConsumerHeartbeat,
    Heartbeat,
    Join,
    Leave,
    LeavingMember,
    Protocol,
    Sync,
)
from ropewalk.groups.embedded import decode_assignment, encode_assignment
from ropewalk.groups.errors import (
    FencedMemberEpoch,
    GroupError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMember,
)
from tests.groups.stage import Stage, subscription, topic_id

TOPICS = ("t", "u")
NOTHING: Share = frozenset()


class Crowd:
    def __init__(self, stage: Stage, chance: Random) -> None:
        self.stage = stage
        self.chance = chance
        self.clients: list[ConsumerClient | ClassicClient] = []

    def check(self) -> None:
        """No partition has two owners."""
        seen: dict[tuple[bytes, int], str] = {}
        for client in self.clients:
            for place in client.held:
                assert place not in seen, f"{place} is held by {seen[place]} and by {client.name}"
                seen[place] = client.name

    def held(self) -> list[tuple[bytes, int]]:
        return sorted(place for client in self.clients for place in client.held)

    def step_all(self) -> None:
        for client in list(self.clients):
            client.step()
            self.check()


class ConsumerClient:
    """Speaks the consumer protocol."""

    def __init__(self, crowd: Crowd, name: str, topics: Iterable[str]) -> None:
        self._crowd = crowd
        self.name = name
        self._topics = tuple(topics)
        self._epoch = 0
        self.held: Share = NOTHING
        self._told: Share = NOTHING
        """What it has been told to hold; it gives the rest up in its own time."""
        self._said: Share | None = None
        self._beat_count = 0

    def step(self, *, hears: bool = True, is_slow: bool = False) -> None:
        """A heartbeat. `hears`: the answer arrives; `is_slow`: what is to be given up is kept a while."""
        self._beat_count += 1
        if self._beat_count % 5 == 0:
            self._said = (
                None  # those who do not notice that they have missed something say everything now and then
            )
        answer = self._crowd.stage.answer(self._beat())
        if not hears:
            if self._crowd.chance.random() < 0.5:
                self._said = None  # it does not know what is known of it; good clients say everything then
            return
        match answer:
            case ConsumerHeartbeatTaken():
                self._epoch = answer.epoch
                if answer.assigned not in (None, self._told):
                    assert answer.assigned is not None
                    self._told = answer.assigned
                    self._said = None  # it shows that it has heard, even if it gives up nothing
            case FencedMemberEpoch() | UnknownMember():
                self._epoch, self.held, self._told, self._said = 0, NOTHING, NOTHING, None
            case _:
                raise AssertionError(f"{self.name} heard {answer!r}")
        if not is_slow:
            self.held = self._told

    def subscribe(self, topics: Iterable[str]) -> None:
        self._topics = tuple(topics)
        self._said = None

    def leave(self) -> None:
        self._crowd.clients.remove(self)
        self._crowd.stage.answer(ConsumerHeartbeat("g", self.name, -1))

    def on_coordinator_lost(self) -> None:
        if self._crowd.chance.random() < 0.5:
            self._said = None

    def _beat(self) -> ConsumerHeartbeat:
        if self._epoch > 0 and self._said == self.held:
            return ConsumerHeartbeat("g", self.name, self._epoch)
        self._said = self.held
        return ConsumerHeartbeat(
            "g",
            self.name,
            self._epoch,
            rebalance_timeout_ms=60_000,
            topics=self._topics,
            owned=self.held if self._epoch > 0 else NOTHING,
        )


class ClassicClient:
    """Speaks the classic protocol, and leads when it is told to. Eager ones give everything up to join, others nothing."""

    def __init__(self, crowd: Crowd, name: str, topics: Iterable[str], *, is_eager: bool) -> None:
        self._crowd = crowd
        self.name = name
        self._topics = tuple(topics)
        self._is_eager = is_eager
        self._member_id = ""
        self._generation = -1
        self.held: Share = NOTHING
        self._token: int | None = None
        """Of a join or a sync that is not answered yet."""

    def step(self, *, hears: bool = True, is_slow: bool = False) -> None:
        """The next thing it has to do; it is never slow, since it joins before it gives up."""
        del is_slow
        stage = self._crowd.stage
        if self._token is not None:
            if self._token in stage.replies:
                self._on_reply(stage.replies[self._token])
        elif self._generation < 0:
            self._join()
        else:
            answer = stage.answer(Heartbeat("g", self._generation, self._member_id))
            if hears and isinstance(answer, GroupError):
                self._on_refused(answer)

    def subscribe(self, topics: Iterable[str]) -> None:
        self._topics = tuple(topics)
        if self._token is None:
            self._begin_again()

    def leave(self) -> None:
        self._crowd.clients.remove(self)
        if self._token is not None:
            self._crowd.stage.core.forget(self._token)
        self._crowd.stage.ask(Leave("g", (LeavingMember(self._member_id),)))

    def on_coordinator_lost(self) -> None:
        if self._token is not None:
            self._token, self._generation = None, -1

    def _join(self) -> None:
        owned: dict[str, list[int]] = {}
        for place in sorted(_named(self.held)):
            owned.setdefault(place.topic, []).append(place.partition)
        self._token = self._crowd.stage.ask(
            Join(
                "g",
                session_timeout_ms=45_000,
                rebalance_timeout_ms=60_000,
                protocol_type="consumer",
                protocols=(Protocol("range", subscription(*self._topics, owned=owned)),),
                member_id=self._member_id,
                client_id=self.name,
                requires_known_member=True,
            )
        )
        self.step()

    def _on_reply(self, answer: object) -> None:
        self._token = None
        match answer:
            case Joined():
                self._member_id, self._generation = answer.member_id, answer.generation
                self._sync(answer)
            case Synced(assignment=assignment):
                told = frozenset(
                    (topic_id(each.topic), each.partition) for each in decode_assignment(assignment)
                )
                must_release = bool(self.held - told)
                self.held = told
                if must_release:
                    self._begin_again()
            case GroupError():
                self._on_refused(answer)
            case _:
                raise AssertionError(f"{self.name} heard {answer!r}")

    def _sync(self, joined: Joined) -> None:
        shares: tuple[Assignment, ...] = ()
        if joined.leader_id == self._member_id:
            shares = self._crowd_shares([member.member_id for member in joined.members])
        self._token = self._crowd.stage.ask(Sync("g", self._generation, self._member_id, assignments=shares))
        self.step()

    def _crowd_shares(self, member_ids: list[str]) -> tuple[Assignment, ...]:
        """Nothing moves from a member to another at once: it is given to nobody first, or it was nobody's."""
        stage = self._crowd.stage
        places = [
            TopicPartition(name, index)
            for name in TOPICS
            if (facts := stage.topics.find(name)) is not None
            for index in range(facts.partition_count)
        ]
        holders = {
            place: client._member_id
            for client in self._crowd.clients
            if isinstance(client, ClassicClient)
            for place in _named(client.held)
        }
        shares: dict[str, list[TopicPartition]] = {member_id: [] for member_id in member_ids}
        for number, place in enumerate(places):
            wanted = member_ids[number % len(member_ids)]
            if holders.get(place, wanted) == wanted:
                shares[wanted].append(place)
        return tuple(
            Assignment(member_id, encode_assignment(share, like=b"\0\1"))
            for member_id, share in shares.items()
        )

    def _on_refused(self, refusal: GroupError) -> None:
        match refusal:
            case MemberIdRequired():
                self._member_id = refusal.member_id
                self._join()
            case RebalanceInProgress():
                self._begin_again()
            case UnknownMember():
                self._member_id, self._generation, self.held = "", -1, NOTHING
            case _:  # its generation is over, and with it what it held
                self._generation, self.held = -1, NOTHING

    def _begin_again(self) -> None:
        self._generation = -1
        if self._is_eager:
            self.held = NOTHING


def _named(share: Share) -> set[TopicPartition]:
    return {TopicPartition(topic.decode().rstrip("."), index) for topic, index in share}
