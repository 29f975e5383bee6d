"""One node of the exhaustive search: a real core, a log that is a tuple, and whatever is under way to or from it.

A node is never changed. Two nodes with the same state are one object, and what an event makes of a node is worked out
once: among a million states of the cluster there are only some thousand different nodes. Time is not simulated, so
whatever a core remembers of it is no part of a node's state; whether a follower lags is a choice of the search.
"""

from functools import cache
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct

from ropewalk.base.ids import LeaderEpoch, NodeId, Offset
from ropewalk.log.epochs import EpochEnd
from ropewalk.metadata.image import Broker, Partition
from ropewalk.replication.follower import (
    Answer,
    Append,
    Diverging,
    Elsewhere,
    Follower,
    MoveStart,
    Question,
    Records,
    Refusal,
    Restart,
    Truncate,
    Wait,
)
from ropewalk.replication.leader import Leader, LeaderSettings, Outcome, Proposal
from ropewalk.replication.lineage import OutOfRange, find_divergence
from ropewalk.replication.progress import Progress

C = TypeVar("C", Leader, Follower, Leader | Follower)

SOON_MS: Final = 0
LATE_MS: Final = 1 << 62  # so late that whoever is not at the end of the log lags
_LAG_MS: Final = 1 << 61

Record = tuple[int, int]
"""Leader epoch and value. No value is written twice, so two equal records are the same record."""

Key = tuple[object, ...]


class Cores(Struct, frozen=True):
    """What is put to the test, and in which surroundings."""

    leader: type[Leader] = Leader
    follower: type[Follower] = Follower
    fences_epochs: bool = True
    """Whether a node compares epochs before it serves a fetch."""

    isr_count_min: int = 1
    syncs_late: bool = False
    """Whether what is written becomes durable in a step of its own."""

    counts_unsynced: bool = False


class Facts(NamedTuple):
    """The partition as the controller has decided it; its partition epoch is the place in the order of facts."""

    leader: int
    leader_epoch: int
    isr: frozenset[int]
    eligible: frozenset[int] = frozenset()


class Asked(NamedTuple):
    leader: int
    question: Question


class Told(NamedTuple):
    question: Question
    answer: Answer
    records: tuple[Record, ...]


class ListLog:
    """A log as the cores see one."""

    __slots__ = ("records", "start_offset")

    def __init__(self, records: tuple[Record, ...], *, start_offset: int = 0) -> None:
        """`records` from offset 0 on, of which those below `start_offset` are deleted."""
        self.records = records
        self.start_offset = Offset(start_offset)

    @property
    def end_offset(self) -> Offset:
        return Offset(len(self.records))

    @property
    def leader_epoch_latest(self) -> LeaderEpoch:
        return LeaderEpoch(self.records[-1][0] if self.records else -1)

    def end_offset_for_epoch(self, leader_epoch: LeaderEpoch) -> EpochEnd | None:
        end = len(self.records)
        while end > self.start_offset and self.records[end - 1][0] > leader_epoch:
            end -= 1
        if end == self.start_offset:
            return None
        return EpochEnd(LeaderEpoch(self.records[end - 1][0]), Offset(end))


class Node:
    """Compared by identity: `Nodes` makes one object of each state."""

    __slots__ = (
        "broker_epoch",
        "core",
        "durable",
        "message",
        "names",
        "node_id",
        "proposal",
        "records",
        "seen",
        "stray",
    )

    def __init__(
        self,
        node_id: int,
        core: Leader | Follower,
        *,
        records: tuple[Record, ...] = (),
        durable: int = 0,
        seen: int = 0,
        broker_epoch: int = 0,
        message: Asked | Told | None = None,
        stray: Asked | Told | None = None,
        proposal: Proposal | None = None,
    ) -> None:
        self.node_id = node_id
        self.core = core
        self.records = records
        self.durable = durable
        self.seen = seen
        """The place of the newest fact it has heard of."""

        self.broker_epoch = broker_epoch
        self.message = message
        """Under way between this follower and its leader."""

        self.stray = stray
        """A question or an answer from an epoch before, which is still under way."""

        self.proposal = proposal
        """Under way between this leader and the controller."""

        self.names: tuple[int, ...] = ()
        """A number for its state, and for the same state in a cluster with the nodes numbered otherwise."""

    @property
    def high_watermark(self) -> int:
        core = self.core
        if isinstance(core, Leader):
            return core.high_watermark
        return core.high_watermark(Offset(self.durable))


class _Unchanged:
    """Said of what a node keeps, where None means that there is nothing."""


_UNCHANGED: Final = _Unchanged()


class Nodes:
    """All nodes that came up, and what events make of them."""

    def __init__(self, count: int, cores: Cores, orders: tuple[tuple[int, ...], ...]) -> None:
        """`orders` are the ways to number the nodes that the search need not tell apart."""
        self._cores = cores
        self._orders = orders
        self._replicas = tuple(NodeId(node_id) for node_id in range(count))
        self._settings = LeaderSettings(isr_count_min=cores.isr_count_min, lag_ms_max=_LAG_MS, retry_ms=0)
        self._known: dict[Key, Node] = {}
        self._names: dict[Key, int] = {}
        self.learn = cache(self._learn)
        self.write = cache(self._write)
        self.sync = cache(self._sync)
        self.restart = cache(self._restart)
        self.propose = cache(self._propose)
        self.hear = cache(self._hear)
        self.ask = cache(self._ask)
        self.serve = cache(self._serve)
        self.receive = cache(self._receive)
        self.drop = cache(self._drop)
        self.tell = cache(self._tell)
        self.stray = cache(self._stray)
        self.lose_stray = cache(self._lose_stray)

    def first(self, node_id: int, facts: Facts) -> Node:
        node = Node(node_id, Follower(leader_epoch=LeaderEpoch(-1), high_watermark=Offset(0)))
        return self._known_as(self._with_role(node, facts, 0))

    def _learn(self, node: Node, facts: Facts, seen: int) -> Node:
        """The fact at `seen` reaches a node that has heard all before it."""
        if node.core.leader_epoch != facts.leader_epoch:
            return self._known_as(self._with_role(node, facts, seen))
        core = _copy(node.core)
        if isinstance(core, Leader):
            core.on_facts(self._partition(facts, seen), SOON_MS)
        return self._changed(node, core, seen=seen)

    def _with_role(self, node: Node, facts: Facts, seen: int) -> Node:
        """As the broker changes a partition's role: another core over the same log."""
        leader_epoch, core = LeaderEpoch(facts.leader_epoch), node.core
        settled = self._settled(node)
        if facts.leader == node.node_id:
            core = self._cores.leader(
                self._partition(facts, seen),
                node_id=NodeId(node.node_id),
                broker_epoch=node.broker_epoch,
                end_offset=Offset(len(node.records)),
                durable_offset=settled,
                high_watermark=Offset(min(node.high_watermark, settled)),
                settings=self._settings,
                now_ms=SOON_MS,
            )
        else:
            core = self._cores.follower(leader_epoch=leader_epoch, high_watermark=Offset(node.high_watermark))
        return self._changed(node, core, seen=seen)

    def _write(self, node: Node, value: int) -> Node:
        leader = _copy(node.core)
        assert isinstance(leader, Leader)
        records = (*node.records, (int(leader.leader_epoch), value))
        leader.on_appended(Offset(len(records)), SOON_MS)
        if self._cores.syncs_late and not self._cores.counts_unsynced:
            return self._changed(node, leader, records=records)
        leader.on_durable(Offset(len(records)))
        durable = node.durable if self._cores.syncs_late else len(records)
        return self._changed(node, leader, records=records, durable=durable)

    def _sync(self, node: Node) -> Node:
        core = _copy(node.core)
        if isinstance(core, Leader):
            core.on_durable(Offset(len(node.records)))
        return self._changed(node, core, durable=len(node.records))

    def _restart(self, node: Node, facts: Facts, seen: int) -> Node:
        """After a power cut: what was not durable is gone, and so is all that was under way."""
        durable, known = node.durable, min(node.high_watermark, node.durable)
        blank = Follower(leader_epoch=LeaderEpoch(-1), high_watermark=Offset(known))
        restarted = Node(
            node.node_id,
            blank,
            records=node.records[:durable],
            durable=durable,
            broker_epoch=node.broker_epoch + 1,
        )
        return self._known_as(self._with_role(restarted, facts, seen))

    def _propose(self, node: Node, broker_epochs: tuple[int, ...], now_ms: int) -> Node | None:
        leader = _copy(node.core)
        assert isinstance(leader, Leader)
        brokers = {
            NodeId(node_id): Broker(NodeId(node_id), epoch, b"", (), None)
            for node_id, epoch in enumerate(broker_epochs)
        }
        proposal = leader.propose(brokers, now_ms)
        return None if proposal is None else self._changed(node, leader, proposal=proposal)

    def _hear(self, node: Node, outcome: Outcome) -> Node:
        """Of the proposal that is under way. If the node no longer leads, it does not matter to anybody."""
        core = _copy(node.core)
        if isinstance(core, Leader):
            assert node.proposal is not None
            core.on_outcome(node.proposal, outcome, SOON_MS)
        return self._changed(node, core, proposal=None)

    def _ask(self, node: Node, leader: int) -> Node:
        """The follower's next question is under way, if it may ask one."""
        follower = _copy(node.core)
        assert isinstance(follower, Follower)
        question = follower.ask(ListLog(node.records), settled_offset=self._settled(node))
        if question is None:
            return node
        return self._changed(node, follower, message=Asked(leader, question))

    def _serve(
        self, node: Node, sender: int, broker_epoch: int, question: Question
    ) -> tuple[Node, Told | None]:
        """As a broker serves a replica's fetch: its epoch, its lineage, and only then its progress.

        A refusal is no answer here: to hear of one and to hear nothing come to the same.
        """
        leader = _copy(node.core)
        if not isinstance(leader, Leader):
            return node, None
        if self._cores.fences_epochs and question.leader_epoch != leader.leader_epoch:
            return node, None
        offset = question.fetch_offset
        divergence = find_divergence(
            ListLog(node.records), fetch_offset=offset, last_fetched_epoch=question.last_fetched_epoch
        )
        match divergence:
            case OutOfRange(start_offset=start_offset):
                return node, Told(question, Elsewhere(start_offset), ())
            case EpochEnd():
                return node, Told(question, Diverging(divergence), ())
        leader.on_fetch(NodeId(sender), broker_epoch=broker_epoch, fetch_offset=offset, now_ms=SOON_MS)
        answer = Records(leader.high_watermark, Offset(0))
        return self._changed(node, leader), Told(question, answer, node.records[offset : offset + 1])

    def _receive(self, node: Node, told: Told) -> Node:
        """An answer arrives, be it the one that the follower waits for or one from another time."""
        core, records = _copy(node.core), node.records
        if isinstance(core, Follower):
            for effect in core.on_answer(told.question, told.answer, ListLog(records)):
                match effect:
                    case Append():
                        records += told.records
                    case Truncate(offset=offset) | Restart(offset=offset):
                        records = records[:offset]
                    case MoveStart() | Wait(reason=Refusal()):
                        pass
        durable = min(node.durable, len(records)) if self._cores.syncs_late else len(records)
        return self._changed(node, core, records=records, durable=durable)

    def _stray(self, node: Node) -> Node:
        """What is under way does not keep it from asking any more, and may arrive after what it asks from here on."""
        return self._changed(node, node.core, message=None, stray=node.message)

    def _lose_stray(self, node: Node) -> Node:
        return self._changed(node, node.core, stray=None)

    def _drop(self, node: Node) -> Node:
        """What was under way is lost."""
        return self._changed(node, node.core, message=None)

    def _tell(self, node: Node, told: Told) -> Node:
        """The answer is under way."""
        return self._changed(node, node.core, message=told)

    def _settled(self, node: Node) -> Offset:
        return Offset(len(node.records) if self._cores.counts_unsynced else node.durable)

    def _partition(self, facts: Facts, partition_epoch: int) -> Partition:
        return Partition(
            index=0,
            replicas=self._replicas,
            isr=tuple(NodeId(node_id) for node_id in sorted(facts.isr)),
            leader=NodeId(facts.leader),
            leader_epoch=LeaderEpoch(facts.leader_epoch),
            partition_epoch=partition_epoch,
            eligible=tuple(NodeId(node_id) for node_id in sorted(facts.eligible)),
        )

    def _changed(
        self,
        node: Node,
        core: Leader | Follower,
        *,
        records: tuple[Record, ...] | None = None,
        durable: int | None = None,
        seen: int | None = None,
        message: Asked | Told | _Unchanged | None = _UNCHANGED,
        stray: Asked | Told | _Unchanged | None = _UNCHANGED,
        proposal: Proposal | _Unchanged | None = _UNCHANGED,
    ) -> Node:
        return self._known_as(
            Node(
                node.node_id,
                core,
                records=node.records if records is None else records,
                durable=node.durable if durable is None else durable,
                seen=node.seen if seen is None else seen,
                broker_epoch=node.broker_epoch,
                message=node.message if isinstance(message, _Unchanged) else message,
                stray=node.stray if isinstance(stray, _Unchanged) else stray,
                proposal=node.proposal if isinstance(proposal, _Unchanged) else proposal,
            )
        )

    def _known_as(self, node: Node) -> Node:
        key = _key(node, tuple(range(len(self._replicas))))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = node
            node.names = tuple(
                self._names.setdefault(_key(node, order), len(self._names)) for order in self._orders
            )
        return known


def _copy(core: C) -> C:
    """Another core with the same state. That is all in the slots, so nothing can be forgotten."""
    copy: C = object.__new__(type(core))
    for name in Leader.__slots__ if isinstance(core, Leader) else Follower.__slots__:
        setattr(copy, name, getattr(core, name))
    if isinstance(copy, Leader):
        copy._followers = {
            node_id: Progress(*(getattr(progress, field) for field in Progress.__struct_fields__))
            for node_id, progress in copy._followers.items()
        }
        copy._recount()
    return copy


def _key(node: Node, order: tuple[int, ...]) -> Key:
    """All that the node's future depends on, with the nodes numbered in `order`."""
    message, stray, core = node.message, node.stray, node.core
    if isinstance(message, Asked):
        message = message._replace(leader=order[message.leader])
    if isinstance(stray, Asked):
        stray = stray._replace(leader=order[stray.leader])
    return (
        order[node.node_id],
        node.records,
        node.durable,
        node.seen,
        node.broker_epoch,
        message,
        stray,
        proposal_key(node.proposal, order),
        _leader_key(core, order) if isinstance(core, Leader) else _follower_key(core),
    )


def _follower_key(follower: Follower) -> Key:
    return (follower.leader_epoch, follower._high_watermark_told, follower._open)


def _leader_key(leader: Leader, order: tuple[int, ...]) -> Key:
    return (
        leader.leader_epoch,
        leader.partition_epoch,
        leader.high_watermark,
        leader.end_offset,
        leader.durable_offset,
        leader.epoch_start_offset,
        renumbered(leader.isr, order),
        renumbered(leader._doubted, order),
        proposal_key(leader._in_flight, order),
        tuple(
            sorted(
                (order[node_id], progress.durable_offset, progress.broker_epoch)
                for node_id, progress in leader.followers.items()
            )
        ),
    )


def proposal_key(proposal: Proposal | None, order: tuple[int, ...]) -> Key | None:
    if proposal is None:
        return None
    members = sorted((order[member.node_id], member.broker_epoch) for member in proposal.isr)
    return (proposal.leader_epoch, proposal.partition_epoch, *members)


def renumbered(node_ids: frozenset[int] | frozenset[NodeId], order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(order[node_id] for node_id in node_ids))
