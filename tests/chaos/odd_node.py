"""A node that can be made to err while it runs: `python odd_node.py CONTROL ropewalk up …`.

CONTROL is a JSON file that is looked at ten times a second:

    clock_s     by how much the node's clock is wrong
    feed        "stuck": nodes that ask for the metadata get no answer

Transactions count as hanging after a second instead of twenty minutes.
"""

import asyncio
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ropewalk.broker.cluster import metadata_feed
from ropewalk.broker.partitions import partition
from ropewalk.cli.main import main
from ropewalk.runtime import clock

LOOK_EVERY_S = 0.1
TRANSACTION_MS_MAX = 900_000

_control: dict[str, Any] = {}


def _watch(path: Path) -> None:
    while True:
        try:
            found = json.loads(path.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            found = None  # it is being written
        if found is not None:
            _control.clear()
            _control.update(found)
        time.sleep(LOOK_EVERY_S)


def _make_odd() -> None:
    true_now_ms = clock.SystemClock.now_ms
    true_fetch = metadata_feed.MetadataFeed.fetch

    def now_ms(self: clock.SystemClock) -> int:
        return true_now_ms(self) + int(_control.get("clock_s", 0) * 1000)

    async def fetch(self: metadata_feed.MetadataFeed, *arguments: Any, **named: Any) -> Any:
        while _control.get("feed") == "stuck":
            await asyncio.sleep(LOOK_EVERY_S)
        return await true_fetch(self, *arguments, **named)

    clock.SystemClock.now_ms = now_ms  # type: ignore[method-assign]
    metadata_feed.MetadataFeed.fetch = fetch  # type: ignore[method-assign]
    vars(partition)["HANGING_SLACK_MS"] = 1_000 - TRANSACTION_MS_MAX


if __name__ == "__main__":
    threading.Thread(target=_watch, args=(Path(sys.argv[1]),), daemon=True).start()
    _make_odd()
    sys.argv = sys.argv[2:]
    main()
