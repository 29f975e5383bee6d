"""Every order of events, for a small cluster: the real cores, a modelled controller, and what must hold in between.

Breadth first, so that what is found first is a shortest history that breaks a promise. A node learns facts in their order
but as late as it likes, so deposed leaders go on; a question or an answer may arrive after whoever sent it has moved
on; a proposal may be lost, or decided after its leader has given up on it.

Checked after every event
    P1  what a leader, current or not, counts as committed is the same on every replica in sync, and on every eligible one
    P2  what was ever committed is on every replica that may be elected
    P4  a high watermark is not above what is durable, and does not move back within a leadership
    P8  no two leaders ever commit different records at an offset
"""

import gc
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from ropewalk.replication.follower import Follower
from ropewalk.replication.leader import Leader, Outcome, Proposal
from tests.replication.nodes import (
    LATE_MS,
    SOON_MS,
    Asked,
    Cores,
    Facts,
    Key,
    Node,
    Nodes,
    Record,
    Told,
    proposal_key,
    renumbered,
)


class Bounds(Struct, frozen=True):
    """How large the world is."""

    replicas: int = 3
    records: int = 2
    epochs: int = 2
    changes: int = 2
    """Changes of the partition, decided by the controller of its own or as a leader proposed."""

    crashes: int = 0
    """Power cuts, each followed by a restart."""

    doubts: int = 0
    """Proposals whose outcome nobody hears, and which may be decided later."""

    late_answers: bool = False
    """Whether it is the leaders' answers that take their time, or the followers' questions."""


class State(NamedTuple):
    facts: tuple[Facts | None, ...]
    """All facts in their order; None for those that every node has heard and left behind."""

    nodes: tuple[Node, ...]
    committed: tuple[Record, ...] = ()
    """All that any leader ever counted as committed."""

    written: int = 0
    crashes: int = 0
    doubts: int = 0
    doubted: tuple[tuple[int, Proposal], ...] = ()
    """Proposals with their senders, which have given up on them; the controller may receive them yet."""

    @property
    def now(self) -> Facts:
        facts = self.facts[-1]
        assert facts is not None, "the newest fact is never left behind"
        return facts


class Broken(Exception):
    """A promise does not hold."""


class Found(Struct, frozen=True):
    """What a search came to. `broken` is None if every history within the bounds keeps the promises."""

    state_count: int
    steps: Counter[str]
    broken: str | None = None
    history: tuple[str, ...] = ()


def search(
    bounds: Bounds,
    cores: Cores | None = None,
    *,
    begin: tuple[str, ...] = (),
    state_count_max: int = 3_000_000,
) -> Found:
    """All histories that begin with the steps `begin`."""
    world = _World(bounds, cores or Cores())
    gc.disable()  # nothing here refers to itself, and millions of tuples would be looked at again and again
    try:
        return _searched(world, begin, state_count_max)
    finally:
        gc.enable()


def _searched(world: "_World", begin: tuple[str, ...], state_count_max: int) -> Found:
    first = world.first()
    for name in begin:
        first = dict(world.steps(first))[name]
    first_key = world.key(first)
    came_from: dict[Key, tuple[Key, str] | None] = {first_key: None}
    frontier, steps = [(first_key, first)], Counter[str]()
    while frontier:
        following = []
        for before, state in frontier:
            try:
                for name, after in world.steps(state):
                    key = world.key(after)
                    if key in came_from:
                        continue
                    came_from[key] = (before, name)
                    world.check(after)
                    steps[name.split()[0]] += 1
                    following.append((key, after))
            except Broken as broken:
                return Found(len(came_from), steps, str(broken), _history(came_from, before))
        assert len(came_from) <= state_count_max, f"more than {state_count_max} states"
        frontier = following
    return Found(len(came_from), steps)


def _history(came_from: dict[Key, tuple[Key, str] | None], before: Key) -> tuple[str, ...]:
    """The steps to the state before the one that broke a promise."""
    names = []
    while (step := came_from[before]) is not None:
        before, name = step
        names.append(name)
    return tuple(reversed(names))


class _World:
    def __init__(self, bounds: Bounds, cores: Cores) -> None:
        self._bounds = bounds
        self._isr_count_min = cores.isr_count_min
        plain = tuple(range(bounds.replicas))
        # Node 0 leads first; the others are alike, so a history with two of them exchanged shows nothing else.
        self._orders = (plain, (0, 2, 1)) if bounds.replicas == 3 else (plain,)
        self._nodes = Nodes(bounds.replicas, cores, self._orders)
        self._fences_epochs = cores.fences_epochs
        self._names: dict[Key, int] = {}
        self._names_of_facts: dict[tuple[Facts | None, ...], tuple[int, ...]] = {}

    def first(self) -> State:
        facts = Facts(0, 0, frozenset(range(self._bounds.replicas)))
        nodes = tuple(self._nodes.first(node_id, facts) for node_id in range(self._bounds.replicas))
        return self._settled(State((facts,), nodes))

    def key(self, state: State) -> Key:
        """The same for states that have the same future, the numbers of nodes apart."""
        return min(self._key(state, index) for index in range(len(self._orders)))

    def _key(self, state: State, index: int) -> Key:
        order = self._orders[index]
        nodes = [0] * len(order)
        for node in state.nodes:
            nodes[order[node.node_id]] = node.names[index]
        facts = self._names_of_facts.get(state.facts)
        if facts is None:
            facts = tuple(self._name_of(state.facts, other) for other in self._orders)
            self._names_of_facts[state.facts] = facts
        doubted: list[Key] = []
        if state.doubted:
            doubted = sorted(
                (order[sender], proposal_key(proposal, order)) for sender, proposal in state.doubted
            )
        return (*nodes, facts[index], state.written, state.crashes, state.doubts, state.committed, *doubted)

    def _name_of(self, facts: tuple[Facts | None, ...], order: tuple[int, ...]) -> int:
        key = tuple(
            fact
            and (
                order[fact.leader],
                fact.leader_epoch,
                renumbered(fact.isr, order),
                renumbered(fact.eligible, order),
            )
            for fact in facts
        )
        return self._names.setdefault(key, len(self._names))

    def check(self, state: State) -> None:
        now = state.now
        electable = [state.nodes[node_id] for node_id in now.isr | now.eligible]
        count = len(state.committed)
        for node in electable:
            if node.records[:count] != state.committed:
                raise Broken(f"P2: {node.node_id} may be elected and lacks what was committed")
        for node in state.nodes:
            if not isinstance(node.core, Leader):
                continue
            high_watermark = node.core.high_watermark
            if high_watermark > node.durable:
                raise Broken(f"P4: the high watermark of {node.node_id} is above what is durable")
            for other in electable:
                if other.records[:high_watermark] != node.records[:high_watermark]:
                    raise Broken(f"P1: {other.node_id} differs below the high watermark of {node.node_id}")

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        for name, after in (*self._controller_steps(state), *self._node_steps(state)):
            yield name, self._settled(after)

    def _settled(self, state: State) -> State:
        """After all that goes without saying: followers hear what changes nothing for them, and ask what they may ask."""
        for node in state.nodes:
            heard = self._without_stale(state, node) if self._fences_epochs else node
            if isinstance(node.core, Follower):
                heard = self._up_to_date(state, heard)
                if heard.message is None and not self._bounds.late_answers:
                    heard = self._nodes.ask(heard, self._leader_of(state, heard))
            if heard is not node:
                state = self._with(state, heard)
        known = min(node.seen for node in state.nodes)
        if known and state.facts[known - 1] is not None:
            state = state._replace(facts=(*[None] * known, *state.facts[known:]))
        return state

    def _up_to_date(self, state: State, node: Node) -> Node:
        while node.seen + 1 < len(state.facts):
            facts = state.facts[node.seen + 1]
            assert facts is not None, "a fact is left behind after everybody"
            if facts.leader_epoch != node.core.leader_epoch:
                break
            node = self._nodes.learn(node, facts, node.seen + 1)
        return node

    def _without_stale(self, state: State, node: Node) -> Node:
        """What is from an epoch before no longer keeps the follower from asking: it strays, unless nobody would take it."""
        if node.stray is not None and not self._may_be_taken(state, node, node.stray):
            node = self._nodes.lose_stray(node)
        message = node.message
        if message is None or message.question.leader_epoch >= node.core.leader_epoch:
            return node
        if not self._may_be_taken(state, node, message):
            return self._nodes.drop(node)
        return self._nodes.stray(node) if node.stray is None else node

    def _may_be_taken(self, state: State, node: Node, message: Asked | Told) -> bool:
        if isinstance(message, Told):
            return isinstance(node.core, Follower)
        return state.nodes[message.leader].core.leader_epoch <= message.question.leader_epoch

    def _leader_of(self, state: State, node: Node) -> int:
        facts = state.facts[node.seen]
        assert facts is not None, "a fact is left behind after everybody"
        return facts.leader

    # The controller

    def _controller_steps(self, state: State) -> Iterator[tuple[str, State]]:
        for sender, proposal in state.doubted:
            after = self._taken(state, sender, proposal) or state
            doubted = tuple(other for other in state.doubted if other != (sender, proposal))
            yield f"decide-late {sender}", after._replace(doubted=doubted)
        if len(state.facts) > self._bounds.changes:
            return
        now = state.now
        for node_id in now.isr - {now.leader}:
            yield f"fence {node_id}", _changed(state, self._without(now, node_id))
        if now.leader_epoch + 1 >= self._bounds.epochs:
            return
        for node_id in now.isr - {now.leader}:
            elected = now._replace(leader=node_id, leader_epoch=now.leader_epoch + 1)
            yield f"elect {node_id}", _changed(state, elected)
            yield f"fail-over {node_id}", _changed(state, self._without(elected, now.leader))
        if now.isr == {now.leader}:
            for node_id in now.eligible:
                eligible = (now.eligible | now.isr) - {node_id}
                elected = Facts(node_id, now.leader_epoch + 1, frozenset({node_id}), eligible)
                yield f"elect-eligible {node_id}", _changed(state, elected)

    def _without(self, facts: Facts, node_id: int) -> Facts:
        return self._with_isr(facts, facts.isr - {node_id})

    def _with_isr(self, facts: Facts, isr: frozenset[int]) -> Facts:
        """Whoever is gone while too few are left stays eligible until enough are back (KIP-966)."""
        if len(isr) >= self._isr_count_min:
            return facts._replace(isr=isr, eligible=frozenset())
        return facts._replace(isr=isr, eligible=(facts.eligible | facts.isr) - isr)

    def _taken(self, state: State, sender: int, proposal: Proposal) -> State | None:
        """The state after an accepted proposal; None if it is refused."""
        now = state.now
        is_current = (
            proposal.partition_epoch == len(state.facts) - 1
            and proposal.leader_epoch == now.leader_epoch
            and sender == now.leader
            and all(
                state.nodes[member.node_id].broker_epoch == member.broker_epoch for member in proposal.isr
            )
        )
        if not is_current or len(state.facts) > self._bounds.changes:
            return None
        return _changed(state, self._with_isr(now, frozenset(int(member.node_id) for member in proposal.isr)))

    # The nodes

    def _node_steps(self, state: State) -> Iterator[tuple[str, State]]:
        bounds = self._bounds
        for node in state.nodes:
            node_id = node.node_id
            if node.seen + 1 < len(state.facts):
                facts = state.facts[node.seen + 1]
                assert facts is not None, "a fact is left behind after everybody"
                yield f"learn {node_id}", self._with(state, self._nodes.learn(node, facts, node.seen + 1))
            if node.durable < len(node.records):
                yield f"sync {node_id}", self._with(state, self._nodes.sync(node))
            if state.crashes < bounds.crashes and len(state.facts) <= bounds.changes:
                yield from self._crash(state, node)
            if node.proposal is not None:
                yield from self._outcomes(state, node, node.proposal)
            if isinstance(node.core, Leader):
                if state.written < bounds.records:
                    after = self._with(state, self._nodes.write(node, state.written))
                    yield f"write {node_id}", after._replace(written=state.written + 1)
                yield from self._proposals(state, node)
            yield from self._fetches(state, node)

    def _proposals(self, state: State, node: Node) -> Iterator[tuple[str, State]]:
        """Of one that does not lead any more nothing could come of it: it would be refused."""
        if node.proposal is not None or node.seen + 1 < len(state.facts):
            return
        broker_epochs = tuple(other.broker_epoch for other in state.nodes)
        for name, now_ms in (("expand", SOON_MS), ("shrink", LATE_MS)):
            proposing = self._nodes.propose(node, broker_epochs, now_ms)
            if proposing is not None:
                yield f"{name} {node.node_id}", self._with(state, proposing)

    def _outcomes(self, state: State, node: Node, proposal: Proposal) -> Iterator[tuple[str, State]]:
        taken = self._taken(state, node.node_id, proposal)
        outcome = Outcome.REFUSED if taken is None else Outcome.ACCEPTED
        yield f"decide {node.node_id}", self._with(taken or state, self._nodes.hear(node, outcome))
        if state.doubts < self._bounds.doubts:
            after = self._with(state, self._nodes.hear(node, Outcome.UNKNOWN))
            doubted = (*state.doubted, (node.node_id, proposal))
            yield f"doubt {node.node_id}", after._replace(doubted=doubted, doubts=state.doubts + 1)

    def _crash(self, state: State, node: Node) -> Iterator[tuple[str, State]]:
        """Power is cut. The node registers again, and is out of the set in sync until it has caught up."""
        now = state.now
        if now.leader == node.node_id:
            if len(now.isr | now.eligible) > 1 or now.leader_epoch + 1 >= self._bounds.epochs:
                return  # another takes over first; then this is the crash of a follower
            now = now._replace(leader_epoch=now.leader_epoch + 1)
        elif node.node_id in now.isr:
            now = self._without(now, node.node_id)
        after = _changed(state, now)
        restarted = self._nodes.restart(node, now, len(state.facts))
        after = self._with(after, restarted)._replace(crashes=state.crashes + 1)
        if node.proposal is not None:
            after = after._replace(doubted=(*after.doubted, (node.node_id, node.proposal)))
        yield f"crash {node.node_id}", after

    def _fetches(self, state: State, node: Node) -> Iterator[tuple[str, State]]:
        if node.stray is not None:
            lost = self._nodes.lose_stray(node)
            if isinstance(node.stray, Told):
                yield (
                    f"receive-stray {node.node_id}",
                    self._with(state, self._nodes.receive(lost, node.stray)),
                )
            else:
                host, _ = self._served(state, node, node.stray)
                yield f"serve-stray {node.node_id}", self._with(self._with(state, lost), host)
        asking = node
        if node.message is None and isinstance(node.core, Follower):
            asking = self._nodes.ask(node, self._leader_of(state, node))
        message, answered = asking.message, self._nodes.drop(asking)
        if isinstance(message, Told):
            yield f"receive {node.node_id}", self._with(state, self._nodes.receive(answered, message))
        elif message is not None:
            host, told = self._served(state, node, message)
            state = self._with(state, host)
            if told is None:
                yield f"refuse {node.node_id}", self._with(state, answered)
            elif self._bounds.late_answers:
                yield f"serve {node.node_id}", self._with(state, self._nodes.tell(asking, told))
            else:
                yield f"fetch {node.node_id}", self._with(state, self._nodes.receive(answered, told))

    def _served(self, state: State, node: Node, asked: Asked) -> tuple[Node, Told | None]:
        host = state.nodes[asked.leader]
        return self._nodes.serve(host, node.node_id, node.broker_epoch, asked.question)

    def _with(self, state: State, node: Node) -> State:
        """The same with another node, and with what that node, if it leads, has come to count as committed."""
        if state.nodes[node.node_id] is node:
            return state
        before, core = state.nodes[node.node_id].core, node.core
        nodes = (*state.nodes[: node.node_id], node, *state.nodes[node.node_id + 1 :])
        if not isinstance(core, Leader):
            return state._replace(nodes=nodes)
        goes_on = isinstance(before, Leader) and before.leader_epoch == core.leader_epoch
        if goes_on and core.high_watermark < state.nodes[node.node_id].high_watermark:
            raise Broken(f"P4: the high watermark of {node.node_id} moved back")
        seen, committed = node.records[: core.high_watermark], state.committed
        shorter = min(len(seen), len(committed))
        if seen[:shorter] != committed[:shorter]:
            raise Broken(f"P8: {node.node_id} commits {seen}, while {committed} was committed before")
        return state._replace(nodes=nodes, committed=max(seen, committed, key=len))


def _changed(state: State, facts: Facts) -> State:
    return state._replace(facts=(*state.facts, facts))
