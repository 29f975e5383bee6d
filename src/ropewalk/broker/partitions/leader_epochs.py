"""Whether a caller and a partition mean the same leader (KIP-320)."""

from ropewalk.base.errors import FencedEpoch, UnknownEpoch
from ropewalk.base.ids import LeaderEpoch, TopicPartition


def check_leader_epoch(name: TopicPartition, leader_epoch: LeaderEpoch, caller_epoch: int) -> None:
    """A caller whose metadata is older or newer than ours must hear of it. -1: it does not care."""
    if caller_epoch == -1 or caller_epoch == leader_epoch:
        return
    if caller_epoch < leader_epoch:
        raise FencedEpoch(f"{name} is in epoch {leader_epoch}, not {caller_epoch}")
    raise UnknownEpoch(f"{name} is in epoch {leader_epoch}, not yet {caller_epoch}")
