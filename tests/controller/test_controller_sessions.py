"""Sessions: silence, lost connections, and a controller that has just taken over."""

from ropewalk.base.ids import NodeId
from ropewalk.controller.sessions import Sessions

A, B = NodeId(1), NodeId(2)


def sessions(*brokers: NodeId) -> "Sessions[str]":
    made: Sessions[str] = Sessions(session_timeout_ms=6000, connection_grace_ms=500, take_over_grace_ms=2000)
    made.begin([(node_id, 10) for node_id in brokers], 0)
    return made


def test_a_broker_that_died_with_the_former_controller_is_missed_soon() -> None:
    """Nobody has a connection to it here, so waiting for silence would take a whole session."""
    held = sessions(A, B)
    held.on_heartbeat(A, 10, 300)
    assert held.missed(1999) == []
    assert held.missed(2000) == [(B, 10)]
    assert held.due_at_ms(0) == 2000
    assert held.due_at_ms(2000) == 6300


def test_silence_ends_a_session_and_a_heartbeat_brings_it_back() -> None:
    held = sessions(A, B)
    held.on_heartbeat(A, 10, 1000)
    held.on_heartbeat(B, 10, 4000)
    assert held.missed(7000) == [(A, 10)]
    assert held.is_live(B, 9_999)
    assert not held.is_live(B, 10_000)
    held.on_heartbeat(B, 10, 12_000)
    assert held.is_live(B, 12_000)


def test_a_lost_connection_ends_a_session_sooner() -> None:
    held = sessions(A)
    held.on_connected(A)
    held.on_heartbeat(A, 10, 1000)
    held.on_connection_lost(A, 1100)
    assert held.due_at_ms(1100) == 1600
    assert held.missed(1599) == []
    assert held.missed(1600) == [(A, 10)]


def test_a_connection_that_is_back_in_time_was_not_lost() -> None:
    held = sessions(A)
    held.on_connected(A)
    held.on_connection_lost(A, 1000)
    held.on_connected(A)
    assert held.missed(1500) == []


def test_an_older_connection_may_close_after_another_has_opened() -> None:
    held = sessions(A)
    held.on_connected(A)
    held.on_connected(A)
    held.on_connection_lost(A, 1000)
    assert held.missed(1500) == []
    held.on_connection_lost(A, 1200)
    assert held.missed(1700) == [(A, 10)]


def test_a_heartbeat_that_arrives_after_its_connection_closed_does_not_help() -> None:
    held = sessions(A)
    held.on_connected(A)
    held.on_connection_lost(A, 1000)
    held.on_heartbeat(A, 10, 1001)
    assert held.missed(1500) == [(A, 10)]


def test_a_new_process_has_a_session_of_its_own() -> None:
    held = sessions(A)
    held.on_registered(A, 20, 7000)
    held.on_heartbeat(A, 10, 9000)
    assert held.missed(13_000) == [(A, 20)]
    held.on_heartbeat(B, 30, 9000)
    assert held.is_live(B, 9000)


def test_the_last_load_is_remembered_until_the_broker_is_taken_away() -> None:
    held = sessions(A)
    held.on_heartbeat(A, 10, 0, "much")
    held.on_heartbeat(A, 10, 1)
    assert held.load(A) == "much"
    held.on_removed(A)
    assert held.load(A) is None
    assert held.missed(99_999) == []
