"""The first page: whether all is well and why not, what goes on, who is behind, and what changed lately."""

import asyncio
from typing import Final

from msgspec import Struct

from ropewalk.client.administration.membership import Alert
from ropewalk.client.calls.together import together
from ropewalk.client.errors import ApiNotOffered
from ropewalk.console.page import Asked, Page, Shown
from ropewalk.controller.health import Trouble
from ropewalk.http1.events import EventStream
from ropewalk.views import cluster_state
from ropewalk.views.cluster_state import ClusterState
from ropewalk.views.observation import Picture
from ropewalk.views.standing_alerts import alerts_in, state_of

_LEADERS_MAX: Final = 6
_CHANGES_MAX: Final = 6
_TROUBLES_MAX: Final = 20


class ShownAlert(Struct, frozen=True):
    alert: Alert
    node: int
    state: str
    for_ms: int


class Change(Struct, frozen=True):
    topic: str
    what: str
    at_ms: int


async def show(asked: Asked) -> Shown:
    picture, state = await together([_picture(asked), _state(asked)])
    assert isinstance(picture, Picture), "the first of the two"
    assert state is None or isinstance(state, ClusterState), "the second"
    now_ms = asked.clock.now_ms()
    behind = sorted((each for each in picture.groups if each.lag), key=lambda each: -(each.lag or 0))
    troubles = _troubles(picture) if state is None else state.grouped_troubles()
    values: dict[str, object] = {
        "picture": picture,
        "state": state,
        "summary": None if state is None else state.summary(),
        "troubles": troubles[:_TROUBLES_MAX],
        "trouble_count": len(troubles),
        "losses": [] if state is None else state.losses()[:_TROUBLES_MAX],
        "alerts": [] if state is None else _alerts(state, now_ms),
        "behind": behind[:_LEADERS_MAX],
        "behind_count": len(behind),
        "lag": sum(each.lag or 0 for each in picture.groups),
        "unknown": sum(each.lag is None for each in picture.groups),
        "changes": [] if state is None else _changes(state),
        "points": asked.watcher.points,
    }
    return Shown("overview.html", values)


async def live(asked: Asked, stream: EventStream) -> None:
    """The chart's points, for as long as the page is open."""
    asked.watcher.follow(stream)
    try:
        await asyncio.wait((stream.ended,))
    finally:
        asked.watcher.unfollow(stream)


async def _picture(asked: Asked) -> Picture:
    return await asked.watcher.picture()


async def _state(asked: Asked) -> ClusterState | None:
    """None from a broker that is not ours."""
    try:
        return await cluster_state.collect(asked.client)
    except ApiNotOffered:
        return None


def _troubles(picture: Picture) -> list[Trouble]:
    """What any Kafka tells of itself."""
    return [
        Trouble("nobody leads", topic.topic, f"{topic.offline} of {topic.partitions} partitions")
        for topic in picture.topics
        if topic.offline
    ] + [
        Trouble("under-replicated", topic.topic, f"{topic.under_replicated} of {topic.partitions} partitions")
        for topic in picture.topics
        if topic.under_replicated
    ]


def _alerts(state: ClusterState, now_ms: int) -> list[ShownAlert]:
    return [
        ShownAlert(alert, node_id, state_of(alert), max(0, now_ms - alert.since_ms))
        for node_id, alert in alerts_in(state.answers)
    ]


def _changes(state: ClusterState) -> list[Change]:
    """The newest first. Of topics: when they were made and when their settings were last changed is what a cluster keeps of itself."""
    made = [
        Change(topic.name, "created", topic.created_at_ms)
        for topic in state.topics
        if topic.created_at_ms is not None and not topic.is_internal
    ]
    changed = [
        Change(topic.name, "changed", topic.modified_at_ms)
        for topic in state.topics
        if topic.modified_at_ms is not None
        and not topic.is_internal
        and topic.modified_at_ms != topic.created_at_ms
    ]
    return sorted([*made, *changed], key=lambda each: -each.at_ms)[:_CHANGES_MAX]


PAGE: Final = Page(
    name="overview", title="Overview", menu="Overview", key="o", show=show, streams={"live": live}
)
