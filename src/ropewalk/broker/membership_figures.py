"""Figures of a node as a member of its cluster, and of the controller if it is that."""

from collections.abc import Iterator

from ropewalk.base import metrics
from ropewalk.base.metrics import Sheet
from ropewalk.broker.cluster import Cluster
from ropewalk.broker.membership import Membership
from ropewalk.broker.registry import Registry
from ropewalk.metadata.records import BrokerState


class MembershipFigures:
    def __init__(self, cluster: Cluster, membership: Membership, registry: Registry) -> None:
        self._cluster = cluster
        self._membership = membership
        self._registry = registry

    def collect(self, sheet: Sheet) -> Iterator[None]:
        image = self._cluster.image
        sheet.add(metrics.CONTROLLER_ACTIVE, int(self._cluster.decides))
        sheet.add(metrics.CONTROLLER_EPOCH, image.controller_epoch)
        sheet.add(metrics.METADATA_OFFSET, self._cluster.facts.followed_offset)
        sheet.add(metrics.NODE_FENCED, int(self._membership.is_fenced))
        sheet.add(metrics.CONTROLLER_LOST, int(self._membership.trouble is not None))
        sheet.add(metrics.NODES_FENCED, self._registry.fenced_count)
        for state in BrokerState:
            count = sum(broker.state is state for broker in image.brokers.values())
            sheet.add(metrics.NODES, count, state.value)
        sheet.add(metrics.LOSSES, len(image.losses))
        yield
