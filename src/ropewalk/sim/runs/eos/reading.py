"""Reading as consumers do, everything or only what is committed.

What a reader could get wrong
    Brokers hand out whole batches, those of aborted transactions among them. Whoever wants only what is committed leaves these
    out, by the list that comes with the answer: from its first offset on a listed producer's batches are aborted,
    until a marker of that producer.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from typing_extensions import Buffer

from ropewalk.base.ids import TopicPartition
from ropewalk.records.batch import iterate
from ropewalk.sim.clients.asking import fetch_answers, fetch_topics
from ropewalk.sim.clients.content import decode_batches
from ropewalk.sim.clients.link import Link
from ropewalk.sim.runs.cluster.guide import ELSEWHERE
from ropewalk.sim.runs.eos.guide import EosGuide
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch

_EPOCH_SINCE: Final = 9
COMMITTED_ONLY: Final = 1


class Answer(Struct, frozen=True):
    """Of one partition. `next_offset` is beyond the one asked for if there were batches, whether or not they had records to read."""

    records: tuple[tuple[int, int], ...]
    next_offset: int
    stable_offset: int
    high_watermark: int
    code: ErrorCode


async def fetch_once(
    guide: EosGuide, link: Link, wanted: Mapping[TopicPartition, int], *, is_committed_only: bool
) -> dict[TopicPartition, Answer]:
    """One Fetch. Nothing is written down."""
    workload, rng = guide.workload, guide.rng
    version = max(_EPOCH_SINCE, guide.draw_version(link, fetch.API))
    topics = fetch_topics(
        workload,
        version,
        wanted,
        lambda partition: fetch.FetchPartition(
            index=partition.partition,
            current_leader_epoch=(guide.leader_of(partition) or (-1, -1))[0],
            fetch_offset=wanted[partition],
            partition_max_bytes=rng.choice([1, 5000, 50_000]),
        ),
    )
    request = fetch.FetchRequest(
        max_wait_ms=rng.choice([0, 50, 300]),
        min_bytes=rng.choice([0, 1]),
        isolation_level=COMMITTED_ONLY if is_committed_only else 0,
        topics=topics,
    )
    workload.operation_count += 1
    response = await link.send(fetch.API, version, request)
    answers: dict[TopicPartition, Answer] = {}
    for partition, told in fetch_answers(workload, response).items():
        answers[partition] = _open(told, wanted[partition], is_committed_only=is_committed_only)
        if answers[partition].code in ELSEWHERE:
            guide.doubt()
    return answers


def _open(told: fetch.PartitionData, offset: int, *, is_committed_only: bool) -> Answer:
    code = ErrorCode(told.error_code)
    if code != ErrorCode.NONE:
        return Answer((), offset, -1, -1, code)
    aborted = told.aborted_transactions or () if is_committed_only else ()
    records, next_offset = readable(
        told.records or b"", [(each.first_offset, each.producer_id) for each in aborted]
    )
    return Answer(
        tuple(record for record in records if record[0] >= offset),
        max(offset, next_offset),
        told.last_stable_offset,
        told.high_watermark,
        code,
    )


def readable(content: Buffer, aborted: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], int]:
    """The (offset, value) of what is to be read, and the offset behind it all; `aborted` is (first offset, producer id)."""
    view = memoryview(content)
    waiting = sorted(aborted)
    aborting: set[int] = set()
    found: list[tuple[int, int]] = []
    next_offset = -1
    for position, header in iterate(view):
        next_offset = header.end_offset
        while waiting and waiting[0][0] < header.end_offset:
            aborting.add(waiting.pop(0)[1])
        if header.is_control:
            aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            found += decode_batches(view[position : position + header.size_bytes]).records
    return found, next_offset
