"""Which brokers clients are told of, and which one they should take changes to.

Behaviour worth knowing
    A client hears of the addresses that belong to the listener it came by, and of no broker that has no such listener.
    A fenced broker serves nobody, so clients do not hear of it, except from DescribeCluster when they ask.
    Every node passes changes on to the one that decides. Clients are told that one where it is a broker they can reach,
    and else any other, as Kafka does.
"""

from collections.abc import Callable, Iterator

from ropewalk.base.ids import NodeId
from ropewalk.metadata.image import Broker, Image
from ropewalk.metadata.records import BrokerState, Endpoint

Reach = Callable[[Broker, str], Endpoint | None]
"""Where clients that came by a listener reach a broker, if they do."""


def reachable_brokers(image: Image, listener: str) -> Iterator[tuple[Broker, Endpoint]]:
    for broker, endpoint in registered_brokers(image, listener):
        if broker.state is not BrokerState.FENCED:
            yield broker, endpoint


def registered_brokers(image: Image, listener: str) -> Iterator[tuple[Broker, Endpoint]]:
    for broker in image.brokers.values():
        endpoint = broker.endpoint(listener)
        if endpoint is not None:
            yield broker, endpoint


def controller_for_clients(image: Image, listener: str) -> int:
    """A node id, or -1 while there is no broker."""
    node_ids = [broker.node_id for broker, _ in reachable_brokers(image, listener)]
    if image.controller_id is not None and image.controller_id in node_ids:
        return image.controller_id
    return node_ids[0] if node_ids else -1


def serving_nodes(image: Image) -> frozenset[NodeId]:
    """Those whose replicas are not offline."""
    return frozenset(
        broker.node_id for broker in image.brokers.values() if broker.state is not BrokerState.FENCED
    )


def offline_replicas(replicas: tuple[NodeId, ...], serving: frozenset[NodeId]) -> tuple[NodeId, ...]:
    return () if serving.issuperset(replicas) else tuple(node for node in replicas if node not in serving)
