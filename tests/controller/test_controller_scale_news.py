"""When somebody outside is told whether another node is wanted."""

from ropewalk.base.limits import SCALE_NEWS_ATTEMPTS_MAX, SCALE_NEWS_MS_MIN, SCALE_NEWS_RETRY_MS
from ropewalk.controller.scale_news import ScaleNews

BUSY, FULL = "cpu", "disk"


def told(*kinds: str) -> ScaleNews:
    news = ScaleNews(0, sustained_ms=0)
    assert news.is_due(kinds, 0)
    news.on_told(kinds, 0)
    return news


def test_whoever_takes_over_tells_how_it_is_after_it_has_watched() -> None:
    news = ScaleNews(1_000, sustained_ms=500)
    assert not news.is_due([], 1_499)
    assert news.is_due([], 1_500)


def test_only_reasons_that_come_or_go_are_news_and_not_more_than_once_a_minute() -> None:
    news = told(BUSY)
    assert not news.is_due([BUSY], SCALE_NEWS_MS_MIN)
    assert not news.is_due([BUSY, FULL], SCALE_NEWS_MS_MIN - 1)
    assert news.is_due([BUSY, FULL], SCALE_NEWS_MS_MIN)
    assert news.is_due([], SCALE_NEWS_MS_MIN)


def test_a_reason_that_comes_and_goes_within_a_minute_is_told_to_nobody() -> None:
    news = told()
    assert not news.is_due([BUSY], SCALE_NEWS_MS_MIN // 2)
    assert not news.is_due([], SCALE_NEWS_MS_MIN)


def test_what_cannot_be_told_is_tried_again_ever_later_and_given_up_until_there_is_other_news() -> None:
    news = told()
    now_ms, waits = SCALE_NEWS_MS_MIN, []
    for _ in range(SCALE_NEWS_ATTEMPTS_MAX):
        assert news.is_due([BUSY], now_ms)
        news.on_failed(now_ms)
        wait_ms = 0
        while wait_ms <= SCALE_NEWS_MS_MIN and not news.is_due([BUSY], now_ms + wait_ms):
            wait_ms += SCALE_NEWS_RETRY_MS
        waits.append(wait_ms // SCALE_NEWS_RETRY_MS)
        now_ms += wait_ms
    assert waits[:7] == [1, 2, 4, 8, 16, 32, 60]
    assert not news.is_due([BUSY], now_ms + 100 * SCALE_NEWS_MS_MIN)
    assert news.is_due([BUSY, FULL], now_ms + 100 * SCALE_NEWS_MS_MIN)
