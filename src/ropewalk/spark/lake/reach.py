"""Core: how far rows of topics reach, by the columns that say where each came from."""

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

from ropewalk.base.ids import TopicPartition
from ropewalk.spark.columns import Column
from ropewalk.spark.lake.shaping import TOPIC_ID
from ropewalk.spark.ranges import Offsets
from ropewalk.spark.refusals import WrongUse

NEEDED: Final = (Column.TOPIC.value, Column.PARTITION.value, Column.OFFSET.value)


def reach_columns(schema: pa.Schema) -> list[str]:
    """Those that are read. Refuses a table whose rows do not say where they come from with `WrongUse`."""
    missing = [name for name in NEEDED if name not in schema.names]
    if missing:
        raise WrongUse(
            f"the rows of this table have no column {', '.join(missing)}, so they do not tell how far they reach; say --set TOPIC:PARTITION=OFFSET"
        )
    return [*NEEDED, *(name for name in (TOPIC_ID.name,) if name in schema.names)]


def reach(batches: Iterable[pa.RecordBatch], topic_ids: Mapping[str, str]) -> Offsets:
    """The offset after the largest of each partition. Of a name that several topics had, that is of the one in `topic_ids`: rows without an id are
    of a time before ids were kept, and count where no row of that partition has one."""
    with_id: Offsets = {}
    without: Offsets = {}
    for batch in batches:
        if not batch.num_rows:
            continue
        table = pa.table(batch)
        keys = [name for name in (*NEEDED[:2], TOPIC_ID.name) if name in table.column_names]
        for row in table.group_by(keys).aggregate([(NEEDED[2], "max")]).to_pylist():
            place = TopicPartition(str(row[NEEDED[0]]), int(row[NEEDED[1]]))
            end = int(row[f"{NEEDED[2]}_max"]) + 1
            id_ = row.get(TOPIC_ID.name)
            if id_ is None:
                without[place] = max(end, without.get(place, 0))
            elif topic_ids.get(place.topic, id_) == id_:
                with_id[place] = max(end, with_id.get(place, 0))
    return {**without, **with_id}
