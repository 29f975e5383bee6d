"""When offsets, and groups, are forgotten (KIP-211).

    a group that never had members    each offset, a retention time after it was committed
    a group that has become empty     each offset, a retention time after that, or after its commit if later
    a stable group of consumers       offsets of topics that nobody reads, a retention time after their commit;
                                      likewise any group whose assignments are made here
    any other group                   nothing: its members are the ones to know

Kafka counts from the time a group became empty even for offsets committed since, so that an administrator's
commit to a group that has long been empty may be gone the next minute; here it lasts as long as any other.
An empty group without offsets is removed. Where a transaction has an offset pending nothing is forgotten.
"""

from msgspec import Struct

from ropewalk.groups.answers import CommittedOffset, GroupState
from ropewalk.groups.durable import DurableState
from ropewalk.groups.events import Event, GroupRemoved, OffsetRemoved
from ropewalk.groups.group import Group
from ropewalk.groups.settings import GroupSettings


class Expired(Struct, frozen=True):
    events: tuple[Event, ...]
    check_at_ms: int | None
    """When to look again; None if nothing is left."""


def decide_expiry(
    durable: DurableState, group_id: str, group: Group | None, settings: GroupSettings, now_ms: int
) -> Expired:
    removed: list[Event] = []
    due_at_ms: list[int] = []
    consumers = durable.consumers.get(group_id)
    if consumers is None:
        has_members = group is not None and group.state is not GroupState.EMPTY
        subscribed = _kept_topics(group)
    else:
        has_members = bool(consumers.members)
        subscribed = frozenset(consumers.subscribed_names())
    interval_ms = min(settings.offsets_check_interval_ms, settings.offsets_retention_ms)
    for partition, committed in durable.offsets(group_id):
        if durable.pending.has(group_id, partition):
            continue
        if subscribed is None or partition.topic in subscribed:
            continue
        expires_at_ms = _counted_from_ms(group, committed) + settings.offsets_retention_ms
        if expires_at_ms <= now_ms:
            removed.append(OffsetRemoved(group_id, partition.topic, partition.partition))
        else:
            due_at_ms.append(expires_at_ms)
    if has_members or (group is not None and group.pending) or durable.pending.has_any(group_id):
        due_at_ms.append(now_ms + interval_ms)  # what they read may change at any time
    elif not due_at_ms and group_id in durable.generations:
        removed.append(GroupRemoved(group_id))
    elif not due_at_ms and consumers is not None:
        removed += consumers.removal()
    return Expired(tuple(removed), min(due_at_ms, default=None))


def _kept_topics(group: Group | None) -> frozenset[str] | None:
    """Topics whose offsets are kept however old; None for all."""
    if group is None or group.state is GroupState.EMPTY:
        return frozenset()
    if group.state is GroupState.STABLE:
        return group.subscribed_topics()
    return None


def _counted_from_ms(group: Group | None, committed: CommittedOffset) -> int:
    if group is not None and group.state is GroupState.EMPTY:
        return max(group.state_at_ms, committed.committed_at_ms)
    return committed.committed_at_ms
