"""Where a node's log lines go: standard error, as text on a terminal and as JSON elsewhere."""

import logging
import sys

import structlog

from ropewalk.node.config import Config


def configure(config: Config) -> None:
    level = logging.getLevelNamesMapping()[config["node.log.level"].upper()]
    form = config["node.log.format"]
    as_text = form == "text" or (form == "auto" and sys.stderr.isatty())
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if as_text else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
