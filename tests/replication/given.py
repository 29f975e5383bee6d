"""Small pieces that the tests of the cores are put together from."""

from collections.abc import Iterable

from ropewalk.base.ids import LeaderEpoch, NodeId, Offset
from ropewalk.metadata.image import Broker, Partition
from ropewalk.metadata.records import BrokerState
from ropewalk.replication.leader import Leader, LeaderSettings, Outcome, Proposal


def node_ids(*numbers: int) -> tuple[NodeId, ...]:
    return tuple(NodeId(number) for number in numbers)


def facts(
    *isr: int,
    replicas: Iterable[int] = (1, 2, 3),
    observers: Iterable[int] = (),
    partition_epoch: int = 0,
    leader_epoch: int = 5,
) -> Partition:
    """A partition that 1 leads."""
    return Partition(
        index=0,
        replicas=node_ids(*replicas),
        isr=node_ids(*isr),
        leader=NodeId(1),
        leader_epoch=LeaderEpoch(leader_epoch),
        partition_epoch=partition_epoch,
        observers=node_ids(*observers),
    )


def brokers(
    *, epochs: dict[int, int] | None = None, states: dict[int, BrokerState] | None = None
) -> dict[NodeId, Broker]:
    """Brokers 1 to 4, in service with epoch 7 unless something else is said."""
    return {
        NodeId(number): Broker(
            node_id=NodeId(number),
            epoch=(epochs or {}).get(number, 7),
            directory=b"",
            endpoints=(),
            rack=None,
            state=(states or {}).get(number, BrokerState.ACTIVE),
        )
        for number in (1, 2, 3, 4)
    }


def leader(
    partition: Partition,
    *,
    end_offset: int = 0,
    durable_offset: int | None = None,
    high_watermark: int = 0,
    isr_count_min: int = 1,
    straggler_ms: int | None = None,
    lag_ms_max: int = 1000,
    now_ms: int = 0,
) -> Leader:
    return Leader(
        partition,
        node_id=NodeId(1),
        broker_epoch=7,
        end_offset=Offset(end_offset),
        durable_offset=Offset(end_offset if durable_offset is None else durable_offset),
        high_watermark=Offset(high_watermark),
        settings=LeaderSettings(
            isr_count_min=isr_count_min, lag_ms_max=lag_ms_max, straggler_ms=straggler_ms, retry_ms=100
        ),
        now_ms=now_ms,
    )


class Story:
    """A leader with its clock, and a shorter way to say what happens to it."""

    def __init__(self, core: Leader) -> None:
        self.core = core
        self.now_ms = 0

    def append(self, end_offset: int, *, durable: bool = True) -> None:
        self.core.on_appended(Offset(end_offset), self.now_ms)
        if durable:
            self.core.on_durable(Offset(end_offset))

    def fetch(self, node: int, offset: int, *, epoch: int = 7) -> bool:
        return self.core.on_fetch(
            NodeId(node), broker_epoch=epoch, fetch_offset=Offset(offset), now_ms=self.now_ms
        )

    def propose(
        self, *, epochs: dict[int, int] | None = None, states: dict[int, BrokerState] | None = None
    ) -> Proposal | None:
        return self.core.propose(brokers(epochs=epochs, states=states), self.now_ms)

    def proposed(self) -> list[int]:
        """Whom the leader asks for; nobody if it does not ask."""
        proposal = self.propose()
        return [] if proposal is None else [int(member.node_id) for member in proposal.isr]

    def hear(self, proposal: Proposal | None, outcome: Outcome) -> None:
        assert proposal is not None, "nothing was proposed"
        self.core.on_outcome(proposal, outcome, self.now_ms)

    def learn(self, *isr: int, partition_epoch: int, replicas: tuple[int, ...] = (1, 2, 3)) -> None:
        self.core.on_facts(facts(*isr, partition_epoch=partition_epoch, replicas=replicas), self.now_ms)

    @property
    def high_watermark(self) -> int:
        return self.core.high_watermark
