"""How a query begins: from its checkpoint, at the beginning, or where its output says that it had come to. A core.

Spark's checkpoint tells where a query is. If it is lost, the output tells: markers in a topic, the stored version of a table.

What a reader could get wrong
    Where a query begins is written down beside the checkpoint before its first batch. Spark asks the source again for the beginning
    when it replays that batch, and `latest` is then another place.
    A query that takes rows together cannot go on from offsets: what it has counted so far was in the checkpoint.
    Half a batch may have been written when the checkpoint was lost. It is finished first, with the offsets that it had.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.options import EARLIEST
from ropewalk.spark.pipelines.query_shape import Shape
from ropewalk.spark.ranges import Json, Offsets, Progress, TopicIds, progress_in
from ropewalk.spark.refusals import ReplayDiffers, WrongUse
from ropewalk.spark.sink.marker import Ranges
from ropewalk.spark.sink.recovery import Resumption


class Definition(Struct, frozen=True, omit_defaults=True):
    """What may not change while a checkpoint is in use: with another one a batch that is tried again would be another batch."""

    sql: str
    output: str
    key: str
    mode: str
    tasks: int
    views: dict[str, str | None]
    fields: str
    watermark: str
    format: str = "raw"
    message: str | None = None
    unknown_fields: str = "ignore"
    key_format: str = "raw"
    key_message: str | None = None
    bad_rows: str = ""
    """Nothing where every row can be read, and in what was written down before there was a choice."""
    partition_by: tuple[str, ...] = ()

    def differences(self, other: "Definition") -> list[str]:
        """What `other` has changed. A choice that could not be made when this was written down is no change."""
        names = [name for name in self.__struct_fields__ if getattr(self, name) != getattr(other, name)]
        return [name for name in names if name != "bad_rows" or self.bad_rows]

    def fingerprint(self) -> str:
        return sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()[:32]


class Kept(Struct, frozen=True):
    """Beside the checkpoint."""

    definition: Definition
    beginning: Json
    shuffle_partitions: int | None = None
    """Into how many pieces rows are put together that belong together. Spark goes on with as many as the checkpoint began with."""
    sink: str | None = None
    """Under which name the job writes to topics; None in what was kept before that could be another than the job's."""


class Continue(Struct, frozen=True):
    """The checkpoint is there. Its query began here."""

    beginning: Progress


class Begin(Struct, frozen=True):
    """There is nothing yet: a beginning as the job says."""


class Resume(Struct, frozen=True):
    """The checkpoint is lost. First `unfinished`, exactly, where some of it was written; then on from `beginning`."""

    unfinished: Ranges | None
    beginning: Offsets
    topic_ids: TopicIds = {}
    """Of the topics that these are offsets of, as far as they are known. One that was made anew and is left out has the id of the former one."""


_MAY_BE_CHANGED: Final = ". A query that takes every row for itself may go on as changed where this one stopped: remove the checkpoint"

Beginning: TypeAlias = Continue | Begin | Resume


def decide(
    definition: Definition,
    kept: Kept | None,
    *,
    has_progress: bool,
    resumption: Resumption | None,
    shape: Shape,
) -> Beginning:
    """`has_progress`: Spark has written down at least one batch. `resumption`: what the output tells; None if nothing."""
    if has_progress:
        if kept is None:
            raise WrongUse(
                "the checkpoint belongs to a query of another program; give the job a checkpoint of its own"
            )
        changed = kept.definition.differences(definition)
        if changed:
            raise WrongUse(
                f"the checkpoint was made with another {', '.join(changed)}. Run the job as it was, or give the changed one another"
                f" name and another checkpoint{_MAY_BE_CHANGED if shape is Shape.ROW_BY_ROW else ''}"
            )
        return Continue(progress_in(kept.beginning))
    if resumption is None:
        return Begin()
    if shape is Shape.WITH_STATE:
        raise ReplayDiffers(
            "the checkpoint is lost, and with it what the query had counted or joined so far; offsets alone do not bring it back."
            " Put the checkpoint back, or start over: another name for the job, and an output that is empty"
        )
    return Resume(resumption.unfinished, resumption.ends, resumption.ids)


def with_newcomers(beginning: Offsets, partitions: Iterable[TopicPartition]) -> Offsets:
    """What came into being since is read from its start: nothing of it was seen."""
    return {partition: beginning.get(partition, EARLIEST) for partition in partitions}
