"""What a query does with rows, told from Spark's own analysis of it: each for itself, or together with others.

A query that takes every row for itself (columns, conditions, `explode`, `UNION ALL`) gives the same rows for the same offsets,
however they are cut into batches. Such a query can go on after its checkpoint was lost. Everything else (windows, counts, joins,
limits, what the time is) depends on state or on a moment that only the checkpoint remembers.

What a reader could get wrong
    The list is of what is known to be harmless. An operator that is not on it makes the query one with state, which Spark then
    checks by its own rules for streams, and refuses where it has to.
    What is read is the text of `EXPLAIN EXTENDED`, because that is there over Spark Connect, too. A literal with line breaks may
    look like an operator; it can only make a query more than it is.
"""

import re
from enum import Enum
from typing import Final

from ropewalk.spark.refusals import WrongUse

_ROW_BY_ROW: Final = frozenset(
    {
        "Project",
        "Filter",
        "Generate",
        "Union",
        "EventTimeWatermark",
        "SubqueryAlias",
        "View",
        "StreamingRelationV2",
        "WithCTE",
        "CTERelationDef",
        "CTERelationRef",
        "MapInArrow",  # of ours, which reads values: SQL has no word for it
    }
)

_SECTION: Final = re.compile(r"^== Analyzed Logical Plan ==\n(?P<plan>.*?)^== ", re.DOTALL | re.MULTILINE)
_OPERATOR: Final = re.compile(r"^[ :]*(?:[:+]- )?~?(?P<name>[A-Z]\w*)", re.MULTILINE)
_BY_CHANCE: Final = re.compile(
    r"\b(rand|randn|random|randstr|uniform|uuid|shuffle|monotonically_increasing_id|spark_partition_id"
    r"|input_file_name|input_file_block_start|input_file_block_length|(?:try_)?reflect|java_method)\(",
    re.IGNORECASE,
)
_OF_THE_MOMENT: Final = re.compile(
    r"\b(now|current_timestamp|current_date|current_time|localtimestamp)\(", re.IGNORECASE
)


class Shape(Enum):
    ROW_BY_ROW = "every row is taken for itself"
    WITH_STATE = "rows are taken together, or the moment counts"


def shape_of(explained: str) -> Shape:
    """From what `EXPLAIN EXTENDED` says of a query over streams. Refuses what gives other rows each time, and what is no query."""
    found = _SECTION.search(explained)
    if found is None:
        raise WrongUse("the SQL could not be analysed:\n" + explained[:2000])
    plan = found["plan"]
    if "StreamingRelation" not in plan:
        raise WrongUse(
            "the SQL reads none of the job's topics; a query begins with SELECT or WITH and names a view"
        )
    chance = _BY_CHANCE.search(plan)
    if chance is not None:
        raise WrongUse(
            f"the SQL uses {chance[1]}(), which gives another answer each time: a batch that is tried again would not be the"
            " same. Derive it from the record, for example from topic, partition and offset"
        )
    _, _, tree = plan.partition("\n")  # the first line names the columns
    operators = {match["name"] for match in _OPERATOR.finditer(tree)}
    if operators <= _ROW_BY_ROW and "subquery#" not in plan and _OF_THE_MOMENT.search(plan) is None:
        return Shape.ROW_BY_ROW
    return Shape.WITH_STATE
