"""Which partitions may count what only the page cache has (`flush=os`), and the mark on disk that says so.

After a stop out of order the controller must know of which partitions a node may have acknowledged more than its disk held.
What their topics are set to by then does not tell. So a partition is marked in the data directory before the first record of it counts
that is not on disk, and the next process names the marked ones when it registers.

What a reader could get wrong
    Until its mark is durable a partition with `flush=os` waits for the disk, as with `flush=group`. That takes a moment once, and as long as
    the disk is full.
    A mark goes when everything that was ever acknowledged without the disk is on it and `flush=group` holds by then, not before.
    What was found at the start belongs to a former process. Nothing is marked or unmarked before this one has registered: if it
    died in between, the next would have nothing to tell.
"""

import asyncio

import structlog

from ropewalk.base.errors import StorageFailed
from ropewalk.base.ids import Offset, TopicId, TopicPartition
from ropewalk.broker.partitions.home import Home
from ropewalk.broker.partitions.hosted import Hosted

_log = structlog.get_logger()


class PageCacheMarks:
    def __init__(self, home: Home) -> None:
        self._home = home
        self._checkpoint = home.directory.unsynced
        self._durable = set(self._checkpoint.names())
        """By name, those whose marks are on disk."""
        self._has_file = self._checkpoint.existed
        self._wanting: dict[Hosted, None] = {}
        """Those that wait for the disk until they are marked."""
        self._waning: dict[Hosted, Offset] = {}
        """Marked ones with `flush=group`, and how far the disk must have come for the mark to go."""
        self._wake = asyncio.Event()

    @property
    def marked(self) -> frozenset[str]:
        """The names of the partitions whose marks are on disk."""
        return frozenset(self._durable)

    def is_marked(self, name: TopicPartition, topic_id: TopicId) -> bool:
        return str(name) in self._durable and self._checkpoint.holds(str(name), topic_id)

    def note(self, hosted: Hosted, flush: str) -> None:
        """What `flush` says of the partition from here on: say so to the role, at once or when the mark is on disk."""
        self._wanting.pop(hosted, None)
        self._waning.pop(hosted, None)
        is_marked = self.is_marked(hosted.name, hosted.topic_id)
        hosted.set_durable_first(flush != "os" or not is_marked)
        if flush == "os" and not is_marked:
            self._wanting[hosted] = None
            self._wake.set()
        elif flush != "os" and self._checkpoint.holds(str(hosted.name), hosted.topic_id):
            # The mark may be on its way to the disk just now, for a setting that holds no more.
            self._waning[hosted] = hosted.log.end_offset

    def forget(self, hosted: Hosted) -> None:
        """The role is over."""
        self._wanting.pop(hosted, None)
        self._waning.pop(hosted, None)

    def drop(self, name: TopicPartition) -> None:
        """The partition is deleted."""
        self._durable.discard(str(name))

    def tick(self) -> None:
        """Now and then: marks may have had their time, and what did not fit may fit by now."""
        if self._wanting or self._waning:
            self._wake.set()

    async def run(self) -> None:
        """Only once this process has registered."""
        while True:
            await self.step()
            await self._wake.wait()
            self._wake.clear()

    async def step(self) -> None:
        """Mark those that want it, and take marks away that nobody needs."""
        wanting = [each for each in self._wanting if not each.is_over]
        for hosted in wanting:
            self._checkpoint.set(str(hosted.name), hosted.topic_id, hosted.log.durable_offset)
        over = [each for each, until in self._waning.items() if _is_synced(each, until)]
        for hosted in over:
            del self._waning[hosted]
            self._durable.discard(str(hosted.name))
            self._checkpoint.drop(str(hosted.name))
        if self._has_file and not wanting and not over:
            return
        try:
            await self._home.unsynced.save()
        except StorageFailed as error:
            _log.warning("flush=os waits for the disk until there is room", reason=str(error))
            return
        self._has_file = True
        for hosted in wanting:
            if self._checkpoint.holds(str(hosted.name), hosted.topic_id):
                self._durable.add(str(hosted.name))
            if hosted in self._wanting and not hosted.is_over:
                del self._wanting[hosted]
                hosted.set_durable_first(False)


def _is_synced(hosted: Hosted, until: Offset) -> bool:
    """A log that was cut meanwhile may end before `until`."""
    return not hosted.is_over and hosted.log.durable_offset >= min(until, hosted.log.end_offset)
