"""Where a node's log lines go: standard error, as text on a terminal and as JSON elsewhere.

Every line of JSON says which node of which cluster wrote it, so that the journals of many can be kept in one place. Text in a file has no
colours.
"""

import logging
import os
import platform
import sys
from collections import deque
from collections.abc import Iterator, MutableMapping
from copy import copy
from typing import Any, Final

import structlog

from ropewalk import __version__
from ropewalk.base.limits import JOURNAL_LINE_CHARACTERS_MAX, JOURNAL_LINES_KEPT_MAX
from ropewalk.node.config import Config
from ropewalk.node.exposure import warnings_of

_log = structlog.get_logger()


class _Identity:
    """Adds who writes. A field of the line's own by the same name, of another node that it is about, stays."""

    def __init__(self) -> None:
        self.fields: dict[str, object] = {}

    def __call__(
        self, _logger: object, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        for name, value in self.fields.items():
            event.setdefault(name, value)
        return event


class _Kept:
    """The latest lines, as JSON whatever is written: for whoever may see them without being on the machine."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=JOURNAL_LINES_KEPT_MAX)
        self._render: Final = structlog.processors.JSONRenderer()

    def __call__(
        self, logger: object, method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        rendered = self._render(logger, method, _identity(logger, method, copy(event)))
        text = rendered if isinstance(rendered, str) else rendered.decode()
        self._lines.append(text[:JOURNAL_LINE_CHARACTERS_MAX])
        return event

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._lines))


_identity = _Identity()
_kept = _Kept()


def configure(config: Config) -> None:
    level = logging.getLevelNamesMapping()[config["node.log.level"].upper()]
    form = config["node.log.format"]
    is_terminal = sys.stderr.isatty()
    as_text = form == "text" or (form == "auto" and is_terminal)
    _identity.fields = {"node_id": config.node_id}
    ending: list[structlog.typing.Processor] = (
        [structlog.dev.ConsoleRenderer(colors=is_terminal and not os.environ.get("NO_COLOR"))]
        if as_text
        else [_identity, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _kept,
            *ending,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def kept() -> Iterator[str]:
    """The latest lines of this process, the oldest first."""
    return iter(_kept)


def begin(config: Config, *, cluster_id: str | None) -> None:
    """The first lines: what starts here, where, and with which settings that somebody chose; then what of these could surprise.

    `cluster_id` as the data directory has it, None where there is none yet.
    """
    join(cluster_id)
    _log.info(
        "ropewalk starts",
        version=__version__,
        python=platform.python_version(),
        pid=os.getpid(),
        node=config.node_id,
        cluster=cluster_id,
        directory=None if config.in_memory else config.data_path,
        kafka=config["kafka.listen" if config.is_default("listeners") else "listeners"],
        http=config["http.listen"],
        peer=None if config.is_alone else config["peer.listen"],
        settings={
            name: configured.shown(name)
            for name, configured in config.entries()
            if not config.is_default(name)
        },
    )
    for warning in warnings_of(config):
        _log.warning(warning)


def join(cluster_id: str | None) -> None:
    """From here on every line says that it is of this cluster."""
    if cluster_id is not None:
        _identity.fields["cluster_id"] = cluster_id
