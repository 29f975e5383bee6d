"""The judge of queues: what it lets pass, and what it does not."""

import pytest

from tests.chaos.queue_ledger import Ledger


def ledger(*texts: str, is_fifo: bool = False) -> Ledger:
    judged = Ledger(is_fifo=is_fifo)
    for text in texts:
        judged.on_send(text, text[0])
        judged.on_send_acknowledged(text)
    return judged


def receive(judged: Ledger, *texts: str, at: float, visibility_s: float = 10) -> None:
    judged.on_received(list(texts), asked_at=at, answered_at=at + 0.5, visibility_s=visibility_s)


def delete(judged: Ledger, text: str, at: float) -> None:
    judged.on_delete_asked(text)
    judged.on_deleted(text, at)


@pytest.mark.parametrize("is_fifo", [False, True])
def test_a_sound_queue_passes(is_fifo: bool) -> None:
    judged = ledger("a1", "a2", "b1", is_fifo=is_fifo)
    receive(judged, "a1", "a2", "b1", at=1)
    delete(judged, "b1", 2)
    receive(judged, "a1", "a2", at=11.5)
    delete(judged, "a1", 12)
    delete(judged, "a2", 12)
    assert judged.finish() == []
    assert judged.again == {"deadline": 2}


def test_what_never_came_is_missed() -> None:
    judged = ledger("a1", "a2")
    receive(judged, "a1", at=1)
    assert "lost, a2 first" in judged.finish()[0]


def test_what_was_not_acknowledged_may_be_lost() -> None:
    judged = ledger("a1")
    judged.on_send("a2", "a")
    receive(judged, "a1", at=1)
    assert judged.finish() == []


def test_a_deleted_message_does_not_come_back() -> None:
    judged = ledger("a1")
    receive(judged, "a1", at=1)
    delete(judged, "a1", 2)
    receive(judged, "a1", at=20)
    assert "came back" in judged.finish()[0]


def test_a_delete_without_an_answer_promises_nothing() -> None:
    judged = ledger("a1")
    receive(judged, "a1", at=1)
    judged.on_delete_asked("a1")
    receive(judged, "a1", at=20)
    assert judged.finish() == []


def test_a_fifo_message_does_not_come_early() -> None:
    judged = ledger("a1", is_fifo=True)
    judged.on_leader_changed(2)
    receive(judged, "a1", at=1)
    receive(judged, "a1", at=5)
    assert "before it could be visible" in judged.finish()[0]


def test_an_extension_that_was_answered_counts_and_one_that_was_not_may() -> None:
    judged = ledger("a1", "b1", is_fifo=True)
    receive(judged, "a1", "b1", at=1)
    judged.on_visibility_asked("a1", at=2, visibility_s=1)
    receive(judged, "a1", at=4)
    assert judged.finish() == []
    judged.on_visibility_asked("b1", at=2, visibility_s=60)
    judged.on_visibility_changed("b1", asked_at=2, visibility_s=60)
    receive(judged, "b1", at=30)
    assert "b1 came again" in judged.finish()[0]


def test_a_standard_message_comes_early_only_after_a_change_of_leader_or_the_loss_of_a_front_end() -> None:
    judged = ledger("a1")
    judged.on_leader_changed(-20)
    receive(judged, "a1", at=1)
    receive(judged, "a1", at=2)
    judged.on_front_end_lost(3)
    assert "no leader changed, no front end was lost" in judged.finish()[0]
    changed = ledger("a1")
    receive(changed, "a1", at=1)
    receive(changed, "a1", at=2)
    changed.on_leader_changed(4)  # it is noticed later than it happens
    assert (changed.finish(), changed.again) == ([], {"change of leader": 1})
    lost = ledger("a1")
    receive(lost, "a1", at=1)
    lost.on_front_end_lost(1.7)
    receive(lost, "a1", at=2)
    assert (lost.finish(), lost.again) == ([], {"lost front end": 1})


def test_what_its_receiver_shows_again_is_counted_apart() -> None:
    judged = ledger("a1")
    receive(judged, "a1", at=1)
    judged.on_visibility_asked("a1", at=2, visibility_s=0)
    receive(judged, "a1", at=3)
    assert (judged.finish(), judged.again) == ([], {"shown again": 1})


def test_a_fifo_group_keeps_its_order() -> None:
    judged = ledger("a1", "a2", is_fifo=True)
    receive(judged, "a2", at=1)
    receive(judged, "a1", at=2)
    assert "neither deleted nor with it" in judged.finish()[0]
