"""What a position remembers of the history that it is of."""

from ropewalk.base.ids import TopicPartition
from ropewalk.client.consuming.assignment import Held


def held_that_has_read() -> Held:
    """Epoch 0 up to offset 4, epoch 2 up to 8, and then epoch 3."""
    held = Held(TopicPartition("orders", 0))
    held.seek(0)
    held.on_fetched(10, [(0, 0), (2, 4), (3, 8)])
    return held


def test_who_goes_back_still_knows_the_epochs_of_what_stays_read() -> None:
    held = held_that_has_read()
    held.go_back(6, 2)
    assert (held.position, held.leader_epoch) == (6, 2)
    assert held.epochs == [(0, 0), (2, 4)]
    held.go_back(4)
    assert (held.position, held.leader_epoch) == (4, 0)
    assert held.epochs == [(0, 0)]


def test_who_goes_back_into_an_epoch_that_was_not_seen_there_believes_who_knows() -> None:
    held = held_that_has_read()
    held.go_back(4, 1)
    assert held.leader_epoch == 1
    assert held.epochs == [(0, 0), (1, 3)]


def test_who_goes_back_before_all_that_was_read_knows_nothing() -> None:
    held = held_that_has_read()
    held.go_back(0)
    assert held.leader_epoch == -1
    assert held.epochs == []


def test_a_position_that_is_set_is_not_of_the_history_read_before() -> None:
    held = held_that_has_read()
    held.seek(6)
    assert held.leader_epoch == -1
    assert held.epochs == []
