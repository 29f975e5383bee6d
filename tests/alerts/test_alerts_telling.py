"""What comes of a rule that holds: alerts, silences, notices, and how often a webhook is tried."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropewalk.alerts.declared import RULES
from ropewalk.alerts.history import Labels
from ropewalk.alerts.notices import Notice, Notices, Telling
from ropewalk.alerts.silences import Silence, parse_silence, silenced_until_ms
from ropewalk.alerts.standing import Alert, Standings, State
from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import ALERT_NOTICE_ATTEMPTS_MAX, ALERT_NOTICES_MAX, ALERTS_MAX
from ropewalk.metadata.settings.alerts import ALERT_SETTINGS


def always(_: Alert) -> bool:
    return True


def never(_: Alert) -> bool:
    return False


LAG = next(rule for rule in RULES if rule.name == "RopewalkLag")
LABELS = (("consumergroup", "g"), ("topic", "t"))
OTHER = (("consumergroup", "h"), ("topic", "t"))


def states(standings: Standings) -> dict[str, State]:
    return {dict(alert.labels)["consumergroup"]: alert.state for alert in standings.alerts()}


def test_a_rule_must_hold_without_a_break() -> None:
    standings, wait_ms = Standings(), LAG.for_s * 1000
    standings.on_result(LAG, {LABELS: 11_000}, 0)
    standings.on_result(LAG, {LABELS: 12_000, OTHER: 11_000}, wait_ms - 1)
    assert states(standings) == {"g": State.PENDING, "h": State.PENDING}
    standings.on_result(LAG, {OTHER: 11_000}, wait_ms)
    standings.on_result(LAG, {LABELS: 12_000, OTHER: 11_000}, wait_ms + 1)
    assert states(standings) == {"g": State.PENDING, "h": State.PENDING}
    standings.on_result(LAG, {LABELS: 12_345, OTHER: 11_000}, 2 * wait_ms)
    assert states(standings) == {"g": State.PENDING, "h": State.FIRING}
    (alert,) = [each for each in standings.alerts() if each.labels == LABELS]
    assert (alert.since_ms, alert.summary) == (wait_ms + 1, "g is 12345 records behind in t")
    standings.forget(LAG)
    assert not list(standings.alerts())


def test_alerts_are_bounded() -> None:
    standings = Standings()
    holding: dict[Labels, float] = {
        (("consumergroup", str(number)),): 1.0 for number in range(ALERTS_MAX + 7)
    }
    standings.on_result(LAG, holding, 0)
    assert len(list(standings.alerts())) == ALERTS_MAX
    assert standings.left_out_count == 7
    standings.on_result(LAG, {}, 1)
    standings.on_result(LAG, {LABELS: 1.0}, 2)
    assert len(list(standings.alerts())) == 1


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_each_alert_is_told_once_and_its_end_once_if_it_was(seed: int) -> None:
    rng = random.Random(seed)
    standings, telling = Standings(), Telling()
    begun: dict[tuple[object, int], int] = {}
    ended: dict[tuple[object, int], int] = {}
    for now_ms in range(0, 3_000_000, 60_000):
        holding: dict[Labels, float] = {labels: 1.0 for labels in (LABELS, OTHER) if rng.random() < 0.9}
        standings.on_result(LAG, holding, now_ms)
        is_silent = rng.random() < 0.5
        for news in telling.on_round(standings.alerts(), always if is_silent else never):
            key = (news.alert.labels, news.alert.since_ms)
            where = ended if news.is_over else begun
            where[key] = where.get(key, 0) + 1
            assert news.is_over or not is_silent
    assert set(begun.values()) | set(ended.values()) <= {1}
    assert ended.keys() <= begun.keys()
    firing = {(alert.labels, alert.since_ms) for alert in standings.alerts() if alert.state is State.FIRING}
    assert begun.keys() - ended.keys() <= firing


def test_what_still_fires_when_a_silence_ends_is_told() -> None:
    standings, telling = Standings(), Telling()
    standings.on_result(LAG, {LABELS: 1.0}, 0)
    standings.on_result(LAG, {LABELS: 1.0}, LAG.for_s * 1000)
    assert telling.on_round(standings.alerts(), lambda _: True) == []
    (news,) = telling.on_round(standings.alerts(), lambda _: False)
    assert not news.is_over
    standings.on_result(LAG, {}, LAG.for_s * 1000 + 1)
    (news,) = telling.on_round(standings.alerts(), lambda _: True)
    assert news.is_over


@given(
    st.text("RopewalkLag", min_size=1),
    st.dictionaries(st.text("abc_", min_size=1), st.text(max_size=20)),
    st.integers(10**12, 10**13 - 1),
)
def test_a_silence_is_read_as_it_was_written(rule: str, where: dict[str, str], until_ms: int) -> None:
    silence = Silence(rule, tuple(sorted(where.items())), until_ms)
    assert parse_silence(silence.written) == silence
    assert ALERT_SETTINGS["alerts.silences"].parse(silence.written) == (silence.written,)


@pytest.mark.parametrize(
    "item", ["RopewalkLag", "RopewalkLag@12", "a b@1795057200000", "A:=@1795057200000", "A:x=ä@1795057200000"]
)
def test_what_is_no_silence_is_refused(item: str) -> None:
    with pytest.raises(ValueError, match="is no silence"):
        parse_silence(item)
    with pytest.raises(InvalidSetting):
        ALERT_SETTINGS["alerts.silences"].parse(item)


def test_a_silence_covers_what_has_its_labels_until_it_ends() -> None:
    there = [Silence("A", (("q", "x"),), 10), Silence("A", (), 20), Silence("B", (), 99)]
    assert silenced_until_ms(there, "A", {"q": "x"}, 5) == 20
    assert silenced_until_ms(there[:1], "A", {"q": "y"}, 5) is None
    assert silenced_until_ms(there[:1], "A", {}, 5) is None
    assert silenced_until_ms(there[:1], "A", {"q": "x"}, 10) is None
    assert silenced_until_ms(there, "C", {}, 5) is None


def test_a_notice_is_tried_a_bounded_number_of_times_later_each_time() -> None:
    notices = Notices()
    notices.add(Notice("1", b"{}"))
    notices.add(Notice("2", b"{}"))
    now_ms, waits = 0.0, []
    for attempt in range(1, ALERT_NOTICE_ATTEMPTS_MAX + 1):
        notice = notices.due(now_ms)
        assert notice is not None
        assert notice.id == "1"
        is_tried_again = notices.on_failed(notice, now_ms)
        assert is_tried_again == (attempt < ALERT_NOTICE_ATTEMPTS_MAX)
        if is_tried_again:
            assert notices.due(notice.due_at_ms - 1) is None
            waits.append(notice.due_at_ms - now_ms)
            now_ms = notice.due_at_ms
    assert waits == sorted(waits)
    assert 300_000 < sum(waits) < 900_000
    assert (notices.failed_count, notices.dropped_count) == (ALERT_NOTICE_ATTEMPTS_MAX, 1)
    following = notices.due(now_ms)
    assert following is not None
    notices.on_delivered(following)
    assert (following.id, notices.delivered_count, len(notices)) == ("2", 1, 0)


def test_notices_that_wait_are_bounded() -> None:
    notices = Notices()
    for number in range(ALERT_NOTICES_MAX + 3):
        notices.add(Notice(str(number), b""))
    assert (len(notices), notices.dropped_count) == (ALERT_NOTICES_MAX, 3)
    first = notices.due(0)
    assert first is not None
    assert first.id == "3"
    notices.add(Notice("more", b""))
    notices.on_delivered(first)  # which made way meanwhile
    assert len(notices) == ALERT_NOTICES_MAX
