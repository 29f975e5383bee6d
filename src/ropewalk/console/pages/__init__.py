"""Every page of the console, in the order of the menu. No listing, no page."""

from collections.abc import Sequence
from typing import Final

from ropewalk.console.page import Page
from ropewalk.console.pages import (
    access,
    alerts,
    cluster,
    group,
    groups,
    messages,
    overview,
    queue,
    queues,
    reset,
    settings,
    topic,
    topics,
    transactions,
)

PAGES: Final[Sequence[Page]] = (
    overview.PAGE,
    topics.PAGE,
    topic.PAGE,
    messages.PAGE,
    groups.PAGE,
    group.PAGE,
    reset.PAGE,
    queues.PAGE,
    queue.PAGE,
    cluster.PAGE,
    alerts.PAGE,
    settings.PAGE,
    access.PAGE,
    transactions.PAGE,
)
