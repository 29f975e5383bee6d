"""Figures of a node as a member of its cluster, and of the controller if it is that."""

from collections.abc import Callable, Iterator

from ropewalk.base import metrics
from ropewalk.base.metrics import Sheet
from ropewalk.broker.cluster.cluster import Cluster
from ropewalk.broker.cluster.membership import Membership
from ropewalk.broker.cluster.registry import Registry
from ropewalk.metadata.image import Broker
from ropewalk.metadata.records import BrokerState


class MembershipFigures:
    def __init__(
        self,
        cluster: Cluster,
        membership: Membership,
        registry: Registry,
        metadata_trouble: Callable[[], str | None],
    ) -> None:
        """`metadata_trouble` says why the metadata cannot be followed at present."""
        self._cluster = cluster
        self._membership = membership
        self._registry = registry
        self._metadata_trouble = metadata_trouble

    def collect(self, sheet: Sheet) -> Iterator[None]:
        image = self._cluster.image
        sheet.add(metrics.CONTROLLER_ACTIVE, int(self._cluster.decides))
        sheet.add(metrics.CONTROLLER_EPOCH, image.controller_epoch)
        sheet.add(metrics.METADATA_OFFSET, self._cluster.facts.followed_offset)
        sheet.add(metrics.METADATA_LOST, int(self._metadata_trouble() is not None))
        sheet.add(metrics.METADATA_PARTED, int(self._membership.parted is not None))
        sheet.add(metrics.NODE_FENCED, int(self._membership.is_fenced or self._membership.parted is not None))
        sheet.add(metrics.CONTROLLER_LOST, int(self._membership.trouble is not None))
        sheet.add(metrics.NODES_FENCED, self._registry.fenced_count)
        brokers = image.brokers.values()
        for state in BrokerState:
            # Of one that is to leave it is no trouble that it is gone.
            count = sum(broker.state is state and not _has_left(broker) for broker in brokers)
            sheet.add(metrics.NODES, count, state.value)
        sheet.add(metrics.NODES, sum(map(_has_left, brokers)), "left")
        sheet.add(metrics.LOSSES, len(image.losses))
        yield


def _has_left(broker: Broker) -> bool:
    return broker.is_leaving and broker.state is BrokerState.FENCED
