"""Whole groups with clients of both protocols, which come, go, crash and miss answers, while topics and coordinators change.

Safety is looked at after every step: no partition has two owners. At the end everybody has time, and then every
partition has one. Whatever happened, the records alone, compacted or not, give the same state.
"""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.groups.durable import DurableState
from ropewalk.groups.event_codec import decode_event
from ropewalk.groups.settings import GroupSettings
from tests.groups.consumer_clients import TOPICS, ClassicClient, ConsumerClient, Crowd
from tests.groups.stage import Stage, topic_id

ACTIONS = (
    "step",
    "step",
    "step",
    "step",
    "deaf",
    "slow",
    "come",
    "leave",
    "crash",
    "topics",
    "lose",
    "subscribe",
)
QUIET_ROUNDS = 60


def replayed(records: list[tuple[bytes, bytes | None]]) -> DurableState:
    state = DurableState()
    for key, value in records:
        event = decode_event(key, value)
        assert event is not None
        state.apply(event)
    return state


class Model:
    def __init__(self, seed: int, kinds: str) -> None:
        self._chance = Random(seed)
        self._kinds = kinds
        self._stage = Stage(GroupSettings(initial_rebalance_delay_ms=0), seed=seed)
        self._stage.topics.set("t", 4)
        self._crowd = Crowd(self._stage, self._chance)
        self._count = 0

    def run(self, actions: list[str]) -> None:
        for action in actions:
            self._act(action)
            self._crowd.check()
            self._stage.wait(self._chance.choice((0, 100, 1000)))
            self._crowd.check()
        self._settle()
        self._check_records()

    def _act(self, action: str) -> None:
        clients = self._crowd.clients
        if action == "come" or not clients:
            self._come()
            return
        client = self._chance.choice(clients)
        match action:
            case "step":
                client.step()
            case "deaf":
                client.step(hears=False)
            case "slow":
                client.step(is_slow=True)
            case "leave":
                client.leave()
            case "crash":
                self._crash(client)
            case "topics":
                self._change_topics()
            case "lose":
                self._stage.crash()
                for each in clients:
                    each.on_coordinator_lost()
            case "subscribe":
                client.subscribe(self._some_topics())

    def _come(self) -> None:
        self._count += 1
        name, topics = f"m{self._count}", self._some_topics()
        if self._chance.choice(self._kinds) == "consumer"[0]:
            self._crowd.clients.append(ConsumerClient(self._crowd, name, topics))
        else:
            is_eager = self._chance.random() < 0.5
            self._crowd.clients.append(ClassicClient(self._crowd, name, topics, is_eager=is_eager))

    def _some_topics(self) -> list[str]:
        return ["t"] if self._chance.random() < 0.7 else list(TOPICS)

    def _crash(self, client: ConsumerClient | ClassicClient) -> None:
        """It says nothing any more. The others go on until it is missed."""
        self._crowd.clients.remove(client)
        for _ in range(12):
            self._crowd.step_all()
            self._stage.wait(5_000)
            self._crowd.check()

    def _change_topics(self) -> None:
        name = self._chance.choice(TOPICS)
        facts = self._stage.topics.find(name)
        self._stage.topics.set(name, 3 if facts is None else facts.partition_count + 1)

    def _settle(self) -> None:
        for _ in range(QUIET_ROUNDS):
            self._crowd.step_all()
            self._stage.wait(1_000)
        if not self._crowd.clients:
            return
        consumers = [client for client in self._crowd.clients if isinstance(client, ConsumerClient)]
        if not consumers:
            return  # then it is up to the clients who has what
        wanted = {name for client in self._crowd.clients for name in client._topics}
        everything = sorted(
            (topic_id(name), index)
            for name in wanted
            if (facts := self._stage.topics.find(name)) is not None
            for index in range(facts.partition_count)
        )
        assert self._crowd.held() == everything

    def _check_records(self) -> None:
        records = self._stage.records
        assert replayed(records) == self._stage.core.durable
        last = {key: number for number, (key, _) in enumerate(records)}
        compacted = [record for number, record in enumerate(records) if last[record[0]] == number]
        assert replayed(compacted) == self._stage.core.durable


actions = st.lists(st.sampled_from(ACTIONS), max_size=40)


@pytest.mark.parametrize("kinds", ["c", "cl"], ids=["consumers", "both protocols"])
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), actions=actions)
def test_no_partition_has_two_owners_and_in_the_end_each_has_one(
    kinds: str, seed: int, actions: list[str]
) -> None:
    Model(seed, kinds).run(actions)
