"""Which brokers clients hear of, and which of them they are told is the controller."""

import pytest

from ropewalk.base.ids import NodeId
from ropewalk.kafka.brokers import (
    controller_for_clients,
    offline_replicas,
    reachable_brokers,
    registered_brokers,
    serving_nodes,
)
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import (
    KAFKA_LISTENER,
    BrokerRegistered,
    BrokerState,
    ControllerChanged,
    Endpoint,
)

ACTIVE, FENCED, STOPPING = BrokerState.ACTIVE, BrokerState.FENCED, BrokerState.STOPPING


def cluster(*states: BrokerState, controller: int | None = None, listeners: tuple[str, ...] = ()) -> Image:
    image = Image()
    for number, state in enumerate(states):
        listener = listeners[number] if listeners else KAFKA_LISTENER
        endpoint = Endpoint(listener, "h", 9092 + number)
        image.apply(BrokerRegistered(NodeId(number), number, bytes(16), (endpoint,), state=state))
    if controller is not None:
        image.apply(ControllerChanged(NodeId(controller), 1))
    return image


def test_clients_hear_of_those_that_serve_and_of_the_fenced_when_they_ask() -> None:
    image = cluster(ACTIVE, FENCED, STOPPING)
    assert [broker.node_id for broker, _ in reachable_brokers(image, KAFKA_LISTENER)] == [0, 2]
    assert [broker.node_id for broker, _ in registered_brokers(image, KAFKA_LISTENER)] == [0, 1, 2]


def test_a_node_without_a_kafka_door_is_not_named() -> None:
    image = cluster(ACTIVE, ACTIVE, listeners=("PEER", KAFKA_LISTENER))
    assert [broker.node_id for broker, _ in registered_brokers(image, KAFKA_LISTENER)] == [1]


def test_who_comes_by_one_listener_hears_of_the_brokers_that_have_it() -> None:
    image = cluster(ACTIVE, ACTIVE, listeners=("OUTSIDE", KAFKA_LISTENER), controller=1)
    assert [broker.node_id for broker, _ in reachable_brokers(image, "OUTSIDE")] == [0]
    assert [broker.node_id for broker, _ in reachable_brokers(image, KAFKA_LISTENER)] == [1]
    assert [controller_for_clients(image, name) for name in ("OUTSIDE", KAFKA_LISTENER, "NONE")] == [0, 1, -1]
    assert [broker.client_endpoint is not None for broker in image.brokers.values()] == [True, True]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        pytest.param(cluster(ACTIVE, ACTIVE, controller=1), 1, id="the one that decides"),
        pytest.param(cluster(ACTIVE, FENCED, controller=1), 0, id="another, while that one is fenced"),
        pytest.param(cluster(FENCED, ACTIVE), 1, id="any that serves, while nobody decides"),
        pytest.param(cluster(FENCED), -1, id="none"),
        pytest.param(cluster(), -1, id="nobody registered"),
        pytest.param(
            cluster(ACTIVE, ACTIVE, controller=0, listeners=("PEER", KAFKA_LISTENER)),
            1,
            id="a pure controller",
        ),
    ],
)
def test_the_controller_that_clients_are_told(image: Image, expected: int) -> None:
    assert controller_for_clients(image, KAFKA_LISTENER) == expected


def test_replicas_of_fenced_and_of_removed_brokers_are_offline() -> None:
    serving = serving_nodes(cluster(ACTIVE, FENCED, STOPPING))
    assert offline_replicas((NodeId(0), NodeId(2)), serving) == ()
    assert offline_replicas((NodeId(0), NodeId(1), NodeId(7)), serving) == (1, 7)
