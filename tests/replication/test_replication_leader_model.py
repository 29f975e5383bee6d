"""Random lives of a leader beside a controller that decides in its own time, and followers that come and go."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec import structs

from ropewalk.base.ids import NodeId, Offset
from ropewalk.metadata.image import Broker, Partition
from ropewalk.metadata.records import BrokerState
from ropewalk.replication.leader import Leader, LeaderSettings, Outcome, Proposal
from ropewalk.replication.stragglers import Stragglers
from tests.replication.given import brokers, facts

FOLLOWERS = st.sampled_from([NodeId(2), NodeId(3), NodeId(4)])


class LeaderLife(RuleBasedStateMachine):
    """Node 1 leads 1 to 4 with a minimum of 2, after a predecessor that may have committed all there is.

    `self.facts` is what the controller has decided, which the leader hears of in order and later.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.facts = [facts(1, 2, 3, replicas=(1, 2, 3, 4))]
        self.seen = 0
        self.brokers: dict[NodeId, Broker] = brokers()
        self.held: dict[NodeId, int] = {NodeId(node): 10 for node in (2, 3)} | {NodeId(4): 0}
        """What each follower has, durably. Those in sync have all that the predecessor committed."""

        self.under_way: list[Proposal] = []
        self.given_up: list[Proposal] = []
        self.stragglers = Stragglers()
        self.leader = Leader(
            self.facts[0],
            node_id=NodeId(1),
            broker_epoch=7,
            end_offset=Offset(10),
            durable_offset=Offset(10),
            high_watermark=Offset(4),
            settings=LeaderSettings(isr_count_min=2, lag_ms_max=1000, straggler_ms=100, retry_ms=100),
            now_ms=0,
        )
        self.high_watermark_before = 4

    @property
    def now(self) -> Partition:
        return self.facts[-1]

    def append(self, count: int) -> None:
        self.leader.on_appended(Offset(self.leader.end_offset + count), self.now_ms)

    def sync(self, share: float) -> None:
        unsynced = self.leader.end_offset - self.leader.durable_offset
        self.leader.on_durable(Offset(self.leader.durable_offset + round(share * unsynced)))

    @rule(node=FOLLOWERS, count=st.integers(0, 20))
    def fetch(self, node: NodeId, count: int) -> None:
        """It asks for what it does not have, and gets some of it durably before it asks again."""
        self.leader.on_fetch(
            node,
            broker_epoch=self.brokers[node].epoch,
            fetch_offset=Offset(self.held[node]),
            now_ms=self.now_ms,
        )
        self.held[node] = min(self.held[node] + count, self.leader.end_offset)

    @rule(nodes=st.sets(FOLLOWERS), count=st.integers(0, 5), share=st.sampled_from([0.0, 0.5, 1.0]))
    def write(self, nodes: set[NodeId], count: int, share: float) -> None:
        """Records are appended, some are durable, and some followers get all of them and say so."""
        self.append(count)
        self.sync(share)
        for node in sorted(nodes) * 2:
            self.fetch(node, 1000)

    @rule(count=st.integers(1, 5))
    def commit(self, count: int) -> None:
        """Those whom the leader knows to be in sync get all there is: it is committed unless somebody else counts."""
        self.write(set(self.leader.isr - {NodeId(1)}), count, 1.0)

    @rule(node=FOLLOWERS, share=st.floats(0, 1))
    def lose_records(self, node: NodeId, share: float) -> None:
        """It starts again with less, so it is neither in sync nor in service until the controller has seen it."""
        self._leave(node)
        self.held[node] = round(share * self.held[node])
        self.brokers[node] = structs.replace(self.brokers[node], epoch=self.brokers[node].epoch + 1)

    @rule(node=FOLLOWERS)
    def fence(self, node: NodeId) -> None:
        self._leave(node)
        self.brokers[node] = structs.replace(self.brokers[node], state=BrokerState.FENCED)

    @rule(node=FOLLOWERS)
    def unfence(self, node: NodeId) -> None:
        self.brokers[node] = structs.replace(self.brokers[node], state=BrokerState.ACTIVE)

    @rule(duration_ms=st.sampled_from([1, 60, 150, 1100, 11_000, 31_000]))
    def wait(self, duration_ms: int) -> None:
        self.now_ms += duration_ms

    @rule()
    def sweep(self) -> None:
        self.stragglers.sweep([self.leader], self.now_ms)

    @rule(catches_up=st.booleans(), decides=st.booleans())
    def alter(self, catches_up: bool, decides: bool) -> None:
        """The leader has heard all there is, or not; the controller decides at once, or later."""
        while catches_up and self.seen + 1 < len(self.facts):
            self.learn()
        self.propose()
        if decides and self.under_way:
            self.decide(is_heard=True)

    def propose(self) -> None:
        proposal = self.leader.propose(self.brokers, self.now_ms)
        if proposal is None:
            return
        members = {member.node_id: member.broker_epoch for member in proposal.isr}
        assert NodeId(1) in members
        for node in members.keys() - self.leader.isr:
            assert self.brokers[node].is_active
            assert members[node] == self.brokers[node].epoch
            progress = self.leader.followers[node].durable_offset
            assert progress >= max(self.leader.high_watermark, self.leader.epoch_start_offset)
        self.under_way.append(proposal)

    @precondition(lambda self: self.under_way)
    @rule(is_heard=st.booleans())
    def decide(self, is_heard: bool) -> None:
        proposal = self.under_way.pop()
        is_accepted = self._take(proposal)
        outcome = Outcome.ACCEPTED if is_accepted else Outcome.REFUSED
        self.leader.on_outcome(proposal, outcome if is_heard else Outcome.UNKNOWN, self.now_ms)

    @precondition(lambda self: self.under_way)
    @rule()
    def give_up(self) -> None:
        proposal = self.under_way.pop()
        self.leader.on_outcome(proposal, Outcome.UNKNOWN, self.now_ms)
        self.given_up.append(proposal)

    @precondition(lambda self: self.given_up)
    @rule(index=st.integers(0, 9))
    def decide_late(self, index: int) -> None:
        self._take(self.given_up.pop(index % len(self.given_up)))

    @precondition(lambda self: self.seen + 1 < len(self.facts))
    @rule()
    def learn(self) -> None:
        self.seen += 1
        self.leader.on_facts(self.facts[self.seen], self.now_ms)

    def _leave(self, node: NodeId) -> None:
        if node in self.now.isr:
            self._change(tuple(member for member in self.now.isr if member != node))

    def _take(self, proposal: Proposal) -> bool:
        is_current = proposal.partition_epoch == self.now.partition_epoch and all(
            self.brokers[member.node_id].epoch == member.broker_epoch
            and self.brokers[member.node_id].is_active
            for member in proposal.isr
        )
        if is_current:
            self._change(tuple(member.node_id for member in proposal.isr))
        return is_current

    def _change(self, isr: tuple[NodeId, ...]) -> None:
        epoch = self.now.partition_epoch + 1
        self.facts.append(structs.replace(self.now, isr=isr, partition_epoch=epoch))

    @invariant()
    def all_in_sync_have_what_is_committed(self) -> None:
        for node in self.now.isr[1:]:
            assert self.held[node] >= self.leader.high_watermark
            assert self.held[node] >= 10, "the predecessor may have committed that much"

    @invariant()
    def the_high_watermark_is_durable_and_never_moves_back(self) -> None:
        assert self.high_watermark_before <= self.leader.high_watermark <= self.leader.durable_offset
        self.high_watermark_before = self.leader.high_watermark

    @invariant()
    def the_leader_s_set_is_one_that_was_committed(self) -> None:
        assert self.leader.isr == set(self.facts[self.seen].isr)

    def teardown(self) -> None:
        """Whatever has happened: once everybody is in service and keeps up, all are in sync and all is committed."""
        for node in self.held:
            self.unfence(node)
        while self.under_way:
            self.decide(is_heard=True)
        self.given_up.clear()
        self.sync(1.0)
        for _ in range(50):
            self.now_ms += 500
            for node in self.held:
                self.fetch(node, 1000)
            self.propose()
            if self.under_way:
                self.decide(is_heard=True)
            while self.seen + 1 < len(self.facts):
                self.learn()
        assert self.leader.isr == {1, 2, 3, 4}
        assert self.leader.high_watermark == self.leader.end_offset


TestLeaderLife = LeaderLife.TestCase
TestLeaderLife.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
