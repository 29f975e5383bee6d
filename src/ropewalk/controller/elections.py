"""Who leads a partition, who is in sync and who is eligible: the one place where all of that follows from each other.

Every decision that touches a partition says what it wants (`wanted`: other replicas, another ISR) and who is fit for what
(`Standing`), and `settle` makes a partition of it that keeps the rules. Nothing else writes `leader`, `isr` or an epoch.

Invariants
    The leader is in sync, or there is none. Who is in sync is a replica and not fenced.
    While fewer than the minimum are in sync the high watermark stands still, so whoever left the ISR holds all that was
    acknowledged and stays eligible (KIP-966). With enough in sync nobody is eligible but them.
    A leader comes from the ISR, else from the eligible, the preferred replica first, and brokers in maintenance last. Only where both are empty may the last
    leader lead again, and only by force (or by `unclean.leader.election.enable`) anybody else; both are told as a loss.
    Each change has a partition epoch of its own, each change of the leader a leader epoch of its own.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct, structs

from ropewalk.base.ids import LeaderEpoch, NodeId
from ropewalk.metadata.image import Image, Partition, Topic, changed
from ropewalk.metadata.records import BrokerState, LossRecorded, MetadataRecord
from ropewalk.metadata.settings.applied import AppliedSettings

Minimum: TypeAlias = Callable[[Partition], int]
"""How many of the partition must be in sync for the high watermark to move."""

InTurns: TypeAlias = Generator[None, None, list[MetadataRecord]]
"""A decision about many partitions. Where it yields, its caller may let others run; if the image has changed by then, it is made anew."""

T = TypeVar("T")

NOBODY: Final[frozenset[NodeId]] = frozenset()


def whole(decision: Generator[None, None, T]) -> T:
    """The decision, made in one go."""
    while True:
        try:
            next(decision)
        except StopIteration as end:
            decided: T = end.value
            return decided


class Standing:
    """What brokers are fit for: as the image has it, but for those whose state the decision itself changes."""

    __slots__ = ("_resting", "_states")

    def __init__(
        self,
        image: Image,
        changes: Mapping[NodeId, BrokerState] | None = None,
        *,
        resting: Mapping[NodeId, bool] | None = None,
    ) -> None:
        """`resting`: whose maintenance the decision begins or ends."""
        in_maintenance = {node_id: broker.in_maintenance for node_id, broker in image.brokers.items()}
        self._resting = {
            node_id for node_id, is_on in (in_maintenance | dict(resting or {})).items() if is_on
        }
        self._states = {node_id: broker.state for node_id, broker in image.brokers.items()} | dict(
            changes or {}
        )

    def may_lead(self, node_id: NodeId) -> bool:
        return self._states.get(node_id) is BrokerState.ACTIVE

    def rests(self, node_id: NodeId) -> bool:
        """Is in maintenance: it may lead, and does where nobody else can."""
        return node_id in self._resting

    def serves(self, node_id: NodeId) -> bool:
        """May keep what it has: one that is about to stop goes on until it does."""
        return self._states.get(node_id) in (BrokerState.ACTIVE, BrokerState.STOPPING)


class Elections:
    """Settles partitions for one decision and gathers the records of those that change."""

    __slots__ = ("_now_ms", "_settings", "_topic", "_unclean", "records", "standing")

    def __init__(self, standing: Standing, settings: AppliedSettings, now_ms: int) -> None:
        self.standing = standing
        self.records: list[MetadataRecord] = []
        self._settings = settings
        self._now_ms = now_ms
        self._topic: Topic | None = None
        """The one whose setting `_unclean` is: partitions come topic by topic."""
        self._unclean: str | None = None

    def minimum(self, topic: Topic, partition: Partition) -> int:
        return self._settings.minimum_in_sync(topic, partition)

    def settle(
        self,
        topic: Topic,
        before: Partition,
        wanted: Partition,
        *,
        doubtful: Collection[NodeId] = NOBODY,
        gone: Collection[NodeId] = NOBODY,
        leader: NodeId | None = None,
        unclean: str | None = None,
    ) -> Partition:
        """The partition as it will be. `settle` below has the rules."""
        if topic is not self._topic:
            is_allowed = self._settings.of_topic(topic).unclean_leader_election_enable
            self._topic, self._unclean = topic, _UNCLEAN_ALLOWED if is_allowed else None
        if unclean is None:
            unclean = self._unclean
        settled = settle(
            before,
            wanted,
            standing=self.standing,
            minimum=partial(self.minimum, topic),
            doubtful=doubtful,
            gone=gone,
            leader=leader,
            unclean=unclean,
        )
        after = settled.partition
        if after is not before:
            self.records.append(changed(topic.topic_id, after))
        if settled.loss is not None:
            assert after.leader is not None, "a loss comes of an election"
            epoch = after.leader_epoch
            self.records.append(
                LossRecorded(topic.topic_id, after.index, after.leader, epoch, self._now_ms, settled.loss)
            )
        return after

    def restate(self, topic: Topic, partition: Partition) -> Partition:
        """The same partition in another partition epoch, so that whatever compares with the one before comes too late."""
        restated = structs.replace(partition, partition_epoch=partition.partition_epoch + 1)
        self.records.append(changed(topic.topic_id, restated))
        return restated


class Settled(Struct, frozen=True):
    partition: Partition
    loss: str | None
    """Why acknowledged records may be missing from here on; None where they cannot be."""


def settle(
    before: Partition,
    wanted: Partition,
    *,
    standing: Standing,
    minimum: Minimum,
    doubtful: Collection[NodeId] = NOBODY,
    gone: Collection[NodeId] = NOBODY,
    leader: NodeId | None = None,
    unclean: str | None = None,
) -> Settled:
    """`wanted` with everything that follows from it; `before` itself where nothing does.

    Of `wanted` the replicas, observers, the move under way and the ISR count; the rest is found here.
    `doubtful` may lack records that they were thought to have, `gone` have nothing left at all.
    `leader` is elected rather than another if it is in sync. With `unclean` (the reason) a replica out of sync may be
    elected, `leader` before the others.
    """
    isr = tuple(
        node_id
        for node_id in wanted.isr
        if node_id in wanted.replicas and standing.serves(node_id) and node_id not in doubtful
    )
    after = _completed(wanted if isr == wanted.isr else structs.replace(wanted, isr=isr), standing, minimum)
    held = tuple(
        node_id
        for node_id in after.replicas
        if (node_id in before.isr or node_id in before.eligible)
        and node_id not in after.isr
        and node_id not in doubtful
    )
    last = before.leader if before.leader is not None else before.last_leader
    if last in gone or last not in after.replicas:
        last = None
    isr, loss = after.isr, None
    elected = _of_isr(before, after, standing, leader)
    if elected is None:
        elected = _first(held, standing)
        if elected is None and not isr and not held and last is not None and standing.may_lead(last):
            elected, loss = last, "nobody in sync was left, the last leader leads again"
        if elected is None and unclean is not None:
            others = [node_id for node_id in after.replicas if node_id not in gone]
            elected = _first(others if leader is None else (leader, *others), standing)
            loss = None if elected is None else unclean
        if elected is not None:
            held = tuple(node_id for node_id in (*isr, *held) if node_id != elected) if loss is None else ()
            isr = (elected,)
    after = structs.replace(
        after,
        isr=isr,
        leader=elected,
        last_leader=last if elected is None else None,
        eligible=held if len(isr) < minimum(after) else (),
        leader_epoch=before.leader_epoch,
        partition_epoch=before.partition_epoch,
    )
    if after == before and loss is None:
        return Settled(before, None)
    is_new_reign = elected != before.leader or loss is not None
    settled = structs.replace(
        after,
        leader_epoch=LeaderEpoch(before.leader_epoch + is_new_reign),
        partition_epoch=before.partition_epoch + 1,
    )
    return Settled(settled, loss)


def all_partitions(image: Image) -> Iterator[tuple[Topic, Partition]]:
    for topic in image.topics.values():
        for partition in topic.partitions:
            yield topic, partition


def _completed(moving: Partition, standing: Standing, minimum: Minimum) -> Partition:
    """The move done, once everybody who was added is in sync and enough of those who stay are."""
    if not moving.is_moving or not set(moving.adding) <= set(moving.isr):
        return moving
    done = structs.replace(
        moving,
        replicas=_without(moving.replicas, moving.removing),
        isr=_without(moving.isr, moving.removing),
        adding=(),
        removing=(),
    )
    enough = len(done.isr) >= minimum(done) and _first(done.isr, standing) is not None
    return done if enough else moving


def _of_isr(before: Partition, after: Partition, standing: Standing, leader: NodeId | None) -> NodeId | None:
    """Who leads among those in sync: whoever is asked for, the present leader, or the first that may."""
    if leader is not None and leader in after.isr and standing.may_lead(leader):
        return leader
    keeps = before.leader if before.leader in after.isr else None
    if keeps is not None and standing.may_lead(keeps) and not standing.rests(keeps):
        return keeps
    other = _first((node_id for node_id in after.replicas if node_id in after.isr), standing)
    if keeps is not None and (other is None or (standing.may_lead(keeps) and standing.rests(other))):
        return keeps
    return other


def _first(nodes: Iterable[NodeId], standing: Standing) -> NodeId | None:
    fit = [node_id for node_id in nodes if standing.may_lead(node_id)]
    return next((node_id for node_id in fit if not standing.rests(node_id)), fit[0] if fit else None)


def _without(nodes: tuple[NodeId, ...], unwanted: Collection[NodeId]) -> tuple[NodeId, ...]:
    return tuple(node_id for node_id in nodes if node_id not in unwanted)


_UNCLEAN_ALLOWED: Final = "elected out of sync, as unclean.leader.election.enable allows"
