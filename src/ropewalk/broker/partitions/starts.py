"""Where logs begin by what the cluster says: nobody shows records that were deleted elsewhere while this node was away.

Most of the time a copy hears of a deletion from its leader. The metadata speak for those who could not: whoever deleted the
records was answered without them (`replication/leader.py`). What they say counts before a log has a role, so that no leader
begins before it, and for a role that is there already.

What a reader could get wrong
    The start moves without being durable here. It need not be: after a power cut the image says the same.
    Files below the start go with the next round of retention.
"""

from ropewalk.base.ids import Offset, TopicId, TopicPartition
from ropewalk.base.ports import Clock, Pool
from ropewalk.broker.partitions.cutting import begin_log_anew
from ropewalk.broker.partitions.home import Home
from ropewalk.broker.partitions.hosted import Hosted
from ropewalk.broker.partitions.log_work import LogWork
from ropewalk.log.log import Log
from ropewalk.metadata.image import Partition as PartitionFacts


class Starts:
    def __init__(self, work: LogWork, pool: Pool, clock: Clock) -> None:
        self._work = work
        self._pool = pool
        self._clock = clock

    async def leave_behind(
        self,
        name: TopicPartition,
        topic_id: TopicId,
        log: Log,
        facts: PartitionFacts,
        home: Home,
        *,
        leads: bool,
    ) -> None:
        """For a log that has no role. `StorageFailed` where it cannot be given one.

        A leader that was elected without being in sync may not even reach the start: then nothing that it has counts, and
        what it is given must not be taken for something deleted later. A copy that does not reach it hears so from its leader.
        """
        start_offset = Offset(facts.start_offset)
        if start_offset <= log.start_offset:
            return
        if leads and start_offset > log.end_offset:
            async with self._work.alone(log):
                await begin_log_anew(
                    name, topic_id, log, home, start_offset, pool=self._pool, clock=self._clock
                )
            return
        reached_offset = _plan(log, start_offset)
        log.begin_at(reached_offset)
        home.directory.note(name, topic_id, log)

    def follow(self, hosted: Hosted, facts: PartitionFacts, home: Home) -> None:
        """For one that keeps its role. While its log is being cut this has to wait: the leader says the same."""
        if facts.start_offset <= hosted.log.start_offset or self._work.is_wanted(hosted.log):
            return
        hosted.begin_at(_plan(hosted.log, Offset(facts.start_offset)))
        home.directory.note(hosted.name, hosted.topic_id, hosted.log)


def _plan(log: Log, start_offset: Offset) -> Offset:
    """Have the checkpoint say so, too; answers how far that can be."""
    reached_offset = min(start_offset, log.end_offset)
    log.trimming.plan_start(reached_offset, limit_offset=reached_offset, is_decided=True)
    return reached_offset
