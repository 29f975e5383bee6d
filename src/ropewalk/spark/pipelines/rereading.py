"""The records of a batch once more, by its offsets: to finish what was left half written, and to look at what a query left out."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ropewalk.spark.ranges import TopicIds, to_json
from ropewalk.spark.sink.marker import Ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BOUNDS: Final = ("offsets", "timestamp", "offsetsbytimestamp")
SUBSCRIPTIONS: Final = ("subscribe", "subscribepattern", "assign")
"""Options of the source, without their case; the former behind `starting` or `ending`."""


def once_more(
    spark: "SparkSession",
    bootstrap: str,
    source: Mapping[str, str],
    ranges: Ranges,
    topic_ids: TopicIds,
) -> "DataFrame":
    """Exactly these records, of these topics and of no others that have their names by now."""
    dropped = (*SUBSCRIPTIONS, *(f"{side}{bound}" for side in ("starting", "ending") for bound in BOUNDS))
    read = {each: bounds for each, bounds in ranges.items() if bounds[1] > max(bounds[0], 0)}
    assigned: dict[str, list[int]] = {}
    for each in sorted(read):
        assigned.setdefault(each.topic, []).append(each.partition)
    options = {
        **without(source, dropped),
        "assign": json.dumps(assigned),
        "startingOffsets": json.dumps(to_json({each: start for each, (start, _) in read.items()}, topic_ids)),
        "endingOffsets": json.dumps(to_json({each: end for each, (_, end) in read.items()})),
    }
    return spark.read.format("ropewalk").option("bootstrap", bootstrap).options(**options).load()


def without(options: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name: value for name, value in options.items() if name.lower() not in names}
