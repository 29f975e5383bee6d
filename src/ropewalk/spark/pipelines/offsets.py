"""`pipeline offsets`: how far a job's output has come by what it keeps itself, and how that is moved where it no longer fits.

What a reader could get wrong
    A table is one commit further when its offsets were moved: rows that come next are of there. The checkpoint knows nothing of it and would be
    ahead or behind, so it is put aside; a job that takes every row for itself goes on without it.
    Moving offsets back by hand where the rows were not put back brings rows twice. `--from-table` never does: it goes by the rows.
    Of an output that is a topic the markers are shown. They are never moved: what was written to a topic is not taken back.
"""

import os
from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.base.ids import TopicPartition
from ropewalk.client.blocking.producer import Producer
from ropewalk.spark.brokers import Brokers, Subscribed
from ropewalk.spark.checkpoints import local_path
from ropewalk.spark.lake.kinds import open_table
from ropewalk.spark.lake.put_back import PutBack
from ropewalk.spark.lake.table import Commit, LakeTable
from ropewalk.spark.options import LATEST, AtOffsets, parse_source
from ropewalk.spark.pipelines.definition import Job
from ropewalk.spark.pipelines.pipeline import OffsetTable, Pipeline
from ropewalk.spark.pipelines.sink_names import sink_name
from ropewalk.spark.pipelines.status import held
from ropewalk.spark.ranges import Offsets, TopicIds, made_anew
from ropewalk.spark.refusals import NoTable, WrongUse
from ropewalk.spark.security import security_options
from ropewalk.spark.sink.marker_store import MarkerStore
from ropewalk.spark.sink.options import parse_sink


class Standing(Struct, frozen=True):
    """Of one partition."""

    partition: str
    topic_id: str | None
    """Of the topic that the offset belongs to, where that is known."""
    kept: int | None
    """The next offset by what the output keeps; None if it has heard nothing of the partition."""
    put_back_to: int | None = None
    """Where the rows end by what the state says that the table was put back to; None if it was not, or nothing tells."""
    moved_to: int | None = None


class Report(Struct, frozen=True):
    standings: list[Standing]
    notices: list[str]
    """What else there is to know, a sentence each."""


def parse_moves(texts: Sequence[str]) -> Offsets:
    moves: Offsets = {}
    for text in texts:
        place, equals, offset = text.rpartition("=")
        topic, colon, index = place.rpartition(":")
        if not (equals and colon and topic and index.isdecimal() and offset.isdecimal()):
            raise WrongUse(f"--set {text!r} is not TOPIC:PARTITION=OFFSET, like orders:0=4200")
        moves[TopicPartition(topic, int(index))] = int(offset)
    return moves


def show(job: Job, pipeline: type[Pipeline], state_directory: str) -> Report:
    tables = _tables(job, pipeline)
    if not tables:
        return _marked(job, state_directory)
    found = _subscribed(job)
    table = _opened(tables[0])
    put_back = table.put_back(found.partitions)
    standings = _standings(table, found.partitions, put_back)
    return Report(standings, [] if put_back is None else [f"the table was put back ({put_back.how})"])


def move(job: Job, pipeline: type[Pipeline], state_directory: str, moves: Offsets | None) -> Report:
    """To these offsets, or with None to where the rows of the table end. Nobody may run the job meanwhile."""
    tables = _tables(job, pipeline)
    if not tables:
        raise WrongUse(
            f"{job.name} writes to a topic, whose records are not taken back: give a job that is to begin elsewhere another name"
        )
    with held(state_directory, job.name):
        found = _subscribed(job)
        table = _opened(tables[0])
        known = table.topic_ids(found.ids)
        put_back = table.put_back(found.partitions)
        kept = table.next_offsets(found.partitions)
        wanted = _by_rows(table, kept, known, put_back) if moves is None else moves
        _refuse_beyond(job, wanted, found, known)
        changed = {each: offset for each, offset in wanted.items() if kept.get(each) != offset}
        before = _standings(table, found.partitions, put_back)
        if not changed and put_back is None:
            return Report(before, ["nothing is to be moved"])
        others = [(spec, each) for spec in tables[1:] if (each := _if_there(spec)) is not None]
        for spec, each in others:
            _refuse_doubles(each, spec, wanted, known)
        for each in (table, *(other for _, other in others)):
            each.commit(Commit((), wanted, {"offsets": "moved by hand"}, known))
        standings = [
            Standing(each.partition, each.topic_id, each.kept, each.put_back_to, moved)
            for each, moved in zip(before, map(wanted.get, found.partitions), strict=True)
        ]
        return Report(standings, _put_aside(job.checkpoint))


def _by_rows(table: LakeTable, kept: Offsets, known: TopicIds, put_back: PutBack | None) -> Offsets:
    reached = table.reach(known)
    earlier = None if put_back is None else put_back.offsets
    wanted: Offsets = {}
    for each, offset in kept.items():
        if each in reached:
            wanted[each] = reached[each]
        elif put_back is None:
            wanted[each] = offset  # there never was a row, as of a partition that is empty
        elif earlier is not None and each in earlier:
            wanted[each] = earlier[each]
        else:
            wanted[each] = 0
    return wanted


def _refuse_beyond(job: Job, wanted: Offsets, found: Subscribed, known: TopicIds) -> None:
    strange = sorted(set(wanted) - set(found.partitions))
    if strange:
        raise WrongUse(f"{strange[0]} is none of what {job.name} reads")
    replaced = made_anew(known, found.ids)
    source = parse_source({"bootstrap": job.bootstrap, **job.source}, streaming=True)
    with Brokers(source) as brokers:
        ends = brokers.resolve(AtOffsets(LATEST), found.partitions, is_start=False)
    for each, offset in sorted(wanted.items()):
        if offset > ends[each] and each.topic not in replaced:
            raise WrongUse(f"{each} ends at {ends[each]}, and {offset} was asked for")


def _refuse_doubles(table: LakeTable, looked: OffsetTable, wanted: Offsets, known: TopicIds) -> None:
    reached = table.reach(known)
    for each, offset in sorted(wanted.items()):
        if reached.get(each, 0) > offset:
            raise WrongUse(
                f"the table in {looked.spec.address} has rows of {each} up to {reached[each]}, and {offset} is where the job is to go on: they would"
                " be there twice. Put it back to the same state as the other one first"
            )


def _put_aside(checkpoint: str) -> list[str]:
    local = local_path(checkpoint)
    if local is None:
        return [f"remove the checkpoint {checkpoint} before the next run: it does not know of this"]
    if not local.exists():
        return []
    aside = f"{str(local).rstrip('/')}.before-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
    os.rename(local, aside)
    return [f"the checkpoint was put aside as {aside}"]


def _standings(
    table: LakeTable, partitions: Sequence[TopicPartition], put_back: PutBack | None
) -> list[Standing]:
    kept, ids = table.next_offsets(partitions), table.topic_ids(each.topic for each in partitions)
    earlier = {} if put_back is None or put_back.offsets is None else put_back.offsets
    return [
        Standing(str(each), ids.get(each.topic), kept.get(each), earlier.get(each)) for each in partitions
    ]


def _marked(job: Job, state_directory: str) -> Report:
    """Nobody is kept from writing by a look."""
    given = {
        "bootstrap": job.bootstrap,
        "topic": str(getattr(job.settings, "to_topic", "")),
        "exactlyOnce": "true",
        "name": sink_name(state_directory, job.name, is_named=job.is_named),
        "tasks": str(getattr(job.settings, "tasks", 1)),
        **security_options(job.source),
    }
    options = parse_sink(given, streaming=False)
    assert options.exactly_once is not None
    with Producer(job.bootstrap, security=options.settings.security) as producer:
        store = MarkerStore(producer, options)
        markers = [store.read(task) for task in range(options.exactly_once.tasks)]
    ends: Offsets = {}
    ids: TopicIds = {}
    for marker in markers:
        if marker is not None and marker.ranges is not None:
            ids |= marker.ids
            for each, (_, end) in marker.ranges.items():
                ends[each] = min(end, ends.get(each, end))
    standings = [Standing(str(each), ids.get(each.topic), end) for each, end in sorted(ends.items())]
    return Report(standings, [] if standings else [f"nothing was written to {given['topic']} yet"])


def _subscribed(job: Job) -> Subscribed:
    with Brokers(parse_source({"bootstrap": job.bootstrap, **job.source}, streaming=True)) as brokers:
        return brokers.look()


def _tables(job: Job, pipeline: type[Pipeline]) -> tuple[OffsetTable, ...]:
    return tuple(
        OffsetTable(each.kind, replace(each.spec, storage=job.storage))
        for each in pipeline.tables(job.name, job.settings)
    )


def _opened(looked: OffsetTable) -> LakeTable:
    return open_table(looked.kind, looked.spec)


def _if_there(looked: OffsetTable) -> LakeTable | None:
    try:
        return _opened(looked)
    except NoTable:
        return None
