"""Where the replicas of new partitions go.

Brokers are dealt out in turn: partition by partition the first replica moves on by one broker, so that leaders
are spread evenly, and the following replicas go to the next brokers in an order in which neighbours stand in
different racks. The first broker is drawn with the `Rng`; given the same draw and the same brokers the result is the same.
Brokers that are out of service are used only where the others are too few, and never come first.

Invariants
    No broker holds two replicas of one partition.
    No rack holds two replicas of a partition while another rack with a broker to spare holds none.
    Over all new partitions, first replicas per broker differ by at most one.
"""

from collections.abc import Iterable, Sequence

from ropewalk.base.errors import InvalidReplicationFactor
from ropewalk.base.ids import NodeId
from ropewalk.base.ports import Rng
from ropewalk.metadata.image import Broker


def place(
    brokers: Iterable[Broker], *, partition_count: int, replication_factor: int, rng: Rng
) -> list[tuple[NodeId, ...]]:
    """The replicas of each new partition, the preferred leader first."""
    takers = [broker for broker in brokers if broker.takes_replicas]
    active = [broker for broker in takers if broker.is_active]
    if not 1 <= replication_factor <= len(takers):
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of "
            f"{replication_factor} cannot be reached because only {len(takers)} broker(s) are registered."
        )
    if not active:
        raise InvalidReplicationFactor(f"none of the {len(takers)} registered brokers is in service")
    start = rng.randrange(0, len(takers))
    in_service_count = min(replication_factor, len(active))
    placed = _dealt(active, partition_count, in_service_count, start)
    if replication_factor == in_service_count:
        return placed
    away = [broker for broker in takers if not broker.is_active]
    rest = _dealt(away, partition_count, replication_factor - in_service_count, start)
    return [(*first, *others) for first, others in zip(placed, rest, strict=True)]


def _dealt(
    brokers: Iterable[Broker], partition_count: int, replication_factor: int, start: int
) -> list[tuple[NodeId, ...]]:
    order = _alternate_racks(brokers)
    return [
        _replicas_from(order, start + index, replication_factor, shift=index // len(order))
        for index in range(partition_count)
    ]


def _alternate_racks(brokers: Iterable[Broker]) -> list[Broker]:
    """All brokers, one of each rack in turn. Brokers without a rack count as a rack each."""
    racks: dict[tuple[str, NodeId], list[Broker]] = {}
    for broker in sorted(brokers, key=lambda broker: broker.node_id):
        rack = ("", broker.node_id) if broker.rack is None else (broker.rack, NodeId(-1))
        racks.setdefault(rack, []).append(broker)
    queues = list(racks.values())
    order: list[Broker] = []
    while queues:
        order.extend(queue.pop(0) for queue in queues)
        queues = [queue for queue in queues if queue]
    return order


def _replicas_from(
    order: Sequence[Broker], first: int, replication_factor: int, *, shift: int
) -> tuple[NodeId, ...]:
    """`shift` turns the followers further each time round, so that one broker's load is shared by all when it fails."""
    leader = order[first % len(order)]
    others = [broker for broker in order if broker is not leader]
    turn = (first + shift) % len(others) if others else 0
    candidates = others[turn:] + others[:turn]
    chosen = [leader]
    while len(chosen) < replication_factor:
        chosen.append(min(candidates, key=lambda broker: (broker in chosen, _in_rack(broker, chosen))))
    return tuple(broker.node_id for broker in chosen)


def _in_rack(broker: Broker, chosen: Sequence[Broker]) -> int:
    """How many of `chosen` share the broker's rack. `min` takes the first of equals, so the turn breaks ties."""
    return 0 if broker.rack is None else sum(other.rack == broker.rack for other in chosen)
