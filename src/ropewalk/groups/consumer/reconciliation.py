"""How a member comes from what it has to what it is to have, without anybody else having the same meanwhile.

First it gives up, in its old epoch, what is no longer its own, and says so. Then it is in the new epoch, and gets of
its target what nobody has; the rest follows when its owners have released it.
"""

from collections.abc import Mapping

from ropewalk.groups.assignors.model import Place, Share
from ropewalk.groups.consumer.events import Current, MemberState


def reconcile(
    member_id: str,
    current: Current,
    *,
    target_epoch: int,
    target: Share,
    owned: Share | None,
    owners: Mapping[Place, str],
) -> Current:
    """What the member has after a heartbeat in which it says that it holds `owned`; None: it does not say."""
    epoch = current.epoch
    if current.state is MemberState.STABLE and epoch == target_epoch:
        return current
    if current.state is MemberState.UNREVOKED:
        if owned is None or owned & current.revoking:
            return current
        epoch += 1
    assigned = current.assigned & target
    revoking = current.assigned - target
    if revoking and (owned is None or owned & revoking):
        return _moved(current, epoch, MemberState.UNREVOKED, assigned, revoking)
    wanted = target - assigned
    # What the member itself was still to give up is free again, should it be given back.
    free = frozenset(partition for partition in wanted if owners.get(partition, member_id) == member_id)
    state = MemberState.STABLE if free == wanted else MemberState.UNRELEASED
    return _moved(current, target_epoch, state, assigned | free, frozenset())


def _moved(current: Current, epoch: int, state: MemberState, assigned: Share, revoking: Share) -> Current:
    previous_epoch = current.previous_epoch if epoch == current.epoch else current.epoch
    return Current(epoch, previous_epoch, state, assigned, revoking)
