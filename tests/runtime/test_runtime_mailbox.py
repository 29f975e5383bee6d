"""The mailbox between threads: order, bounds, and who is woken."""

import threading

from ropewalk.runtime.mailbox import Mailbox


def test_the_loop_is_woken_once_for_all_that_lies_in_the_box() -> None:
    woken: list[None] = []
    mail: Mailbox[int] = Mailbox(bytes_max=100, held_bytes=lambda: 0, wake=lambda: woken.append(None))
    for number in range(5):
        assert mail.put(number, 1, timeout_s=0)
    assert len(woken) == 1
    assert mail.take() == [0, 1, 2, 3, 4]
    mail.put(5, 1, timeout_s=0)
    assert len(woken) == 2


def test_a_full_box_takes_no_more_until_there_is_room() -> None:
    held = [0]
    mail: Mailbox[str] = Mailbox(bytes_max=10, held_bytes=lambda: held[0], wake=lambda: None)
    assert mail.put("first", 8, timeout_s=0)
    assert not mail.put("second", 8, timeout_s=0)
    assert mail.take() == ["first"]
    assert not mail.put("second", 8, timeout_s=0), "what was taken counts until it lies somewhere else"
    held[0] = 8
    mail.on_taken(8)
    put = threading.Thread(target=mail.put, args=("second", 8), kwargs={"timeout_s": 60})
    put.start()
    while put.is_alive():
        held[0] = 0
        mail.on_room()
        put.join(0.01)
    assert mail.take() == ["second"]


def test_an_empty_box_takes_what_is_larger_than_the_bound() -> None:
    mail: Mailbox[str] = Mailbox(bytes_max=10, held_bytes=lambda: 0, wake=lambda: None)
    assert mail.put("large", 50, timeout_s=0)
    assert not mail.put("small", 1, timeout_s=0)


def test_closing_lets_everybody_go() -> None:
    mail: Mailbox[str] = Mailbox(bytes_max=10, held_bytes=lambda: 20, wake=lambda: None)
    refused: list[bool] = []
    waiting = threading.Thread(target=lambda: refused.append(mail.put("x", 1, timeout_s=60)))
    waiting.start()
    mail.close()
    waiting.join(10)
    assert refused == [False]
