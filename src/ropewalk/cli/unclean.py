"""What is known of partitions that nobody leads, before somebody out of sync is made to lead them.

What a reader could get wrong
    What would be lost cannot be counted: whoever holds it is not there. What is there can be compared, and it says who holds all.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ropewalk.base.ids import NodeId
from ropewalk.client.administration.copies import Copy, copies
from ropewalk.client.calls.client import Client
from ropewalk.views.cluster_state import ClusterState


class Leaderless(Struct, frozen=True):
    partition: str
    leader_epoch: int
    """Since when nobody leads."""
    held_by: tuple[int, ...]
    """Those who hold all that was acknowledged; if one of them comes back, nothing is lost."""
    would_lead: int | None
    """Of the replicas in service the one that holds most, or the first where none says; None where there is none to be elected."""
    replicas: tuple[tuple[NodeId, Copy | str | None], ...]
    """In their order: what each holds, why that is not known, or None where the node is not in service."""


async def leaderless(client: Client, state: ClusterState, names: Sequence[str]) -> list[Leaderless]:
    found = []
    for name, partition in state.leaderless(names):
        online = [node for node in partition.replicas if node not in partition.offline]
        held = await copies(client, name, online) if online else {}
        found.append(
            Leaderless(
                str(name),
                partition.leader_epoch,
                tuple(dict.fromkeys((*partition.isr, *partition.eligible))),
                _furthest(online, held),
                tuple((node, held.get(node)) for node in partition.replicas),
            )
        )
    return found


def _furthest(online: Sequence[NodeId], held: Mapping[NodeId, Copy | str]) -> NodeId | None:
    """As the cluster chooses: by the last epoch, then by the end; of equals the first."""

    def place(node: NodeId) -> tuple[int, int]:
        copy = held.get(node)
        return (copy.last_epoch, copy.end_offset) if isinstance(copy, Copy) else (-2, -1)

    return max(online, key=place, default=None)


def lines(found: Leaderless) -> Iterator[str]:
    yield f"{found.partition}: nobody leads since epoch {found.leader_epoch}"
    for node, copy in found.replicas:
        leads = ", would lead" if node == found.would_lead else ""
        if copy is None:
            yield f"  node {node} is not in service"
        elif isinstance(copy, str):
            yield f"  node {node} does not say what it holds{leads}: {copy}"
        else:
            yield (
                f"  node {node} holds offsets {copy.start_offset} to {copy.end_offset}, the last of epoch "
                f"{copy.last_epoch}{leads}"
            )
    if found.would_lead is None:
        yield "  no replica is in service, so nobody can be elected"
    elif found.held_by:
        holders = ", ".join(map(str, found.held_by))
        yield f"  all that was acknowledged is with {holders}; what {found.would_lead} lacks of it is lost for good"
    else:
        yield f"  nobody is known to hold all that was acknowledged; what {found.would_lead} lacks of it is lost for good"
