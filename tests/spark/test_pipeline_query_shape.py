"""Which queries take every row for itself, told from Spark's analysis. The texts are what `EXPLAIN EXTENDED` prints, shortened."""

import pytest

pytest.importorskip("pyspark")

from ropewalk.spark.pipelines.query_shape import Shape, shape_of
from ropewalk.spark.refusals import WrongUse

TOPIC = "StreamingRelationV2 PythonDataSourceV2@28ffc320, ropewalk, [subscribe=orders], [key#0, value#1]"


def explained(*plan: str) -> str:
    lines = "\n".join(plan)
    return f"== Parsed Logical Plan ==\n'Distinct\n+- 'UnresolvedRelation [orders]\n\n== Analyzed Logical Plan ==\n{lines}\n\n== Optimized Logical Plan ==\nAggregate\n"


@pytest.mark.parametrize(
    "plan",
    [
        ("value: binary", "~Project [value#1]", "+- ~Filter (key#0 = cast(a as binary))", f"   +- ~{TOPIC}"),
        (
            "at: int",
            "~Project [at#1]",
            "+- ~EventTimeWatermark 6e2b, at#1: timestamp, 10 seconds",
            f"   +- ~{TOPIC}",
        ),
        ("v: string", "~Project [v#34]", "+- ~Generate explode(value#1), false, [v#34]", f"   +- ~{TOPIC}"),
        (
            "a: int",
            "~Union false, false",
            ":- ~Project [a#1]",
            f":  +- ~{TOPIC}",
            "+- ~Project [a#1]",
            f"   +- ~{TOPIC}",
        ),
        (
            "a: int",
            "~WithCTE",
            ":- ~CTERelationDef 1, false",
            ":  +- ~SubqueryAlias o",
            ":     +- View (`orders`, [key#0])",
            f":        +- ~{TOPIC}",
            "+- ~CTERelationRef 1, true, [a#20], true, false",
        ),
    ],
    ids=["columns and conditions", "a watermark that nobody asks for", "explode", "union", "with"],
)
def test_each_row_for_itself(plan: tuple[str, ...]) -> None:
    assert shape_of(explained(*plan)) is Shape.ROW_BY_ROW


@pytest.mark.parametrize(
    "plan",
    [
        ("n: bigint", "~Aggregate [key#0], [count(1) AS n#40L]", f"+- ~{TOPIC}"),
        ("key: binary", "~Distinct", "+- ~Project [key#0]", f"   +- ~{TOPIC}"),
        ("key: binary", "~Join Inner, (key#0 = key#7)", f":- ~{TOPIC}", f"+- ~{TOPIC}"),
        ("key: binary", "~Project [key#0]", "+- ~Join Inner", f"   :- ~{TOPIC}", "   +- LocalRelation [k#1]"),
        ("key: binary", "~GlobalLimit 3", "+- ~LocalLimit 3", f"   +- ~{TOPIC}"),
        (
            "key: binary",
            "~Union false, false",
            f":- ~{TOPIC}",
            "+- Project [1 AS a#1]",
            "   +- OneRowRelation",
        ),
        ("m: int", "~Project [scalar-subquery#114 [] AS m#1]", f"+- ~{TOPIC}"),
        ("value: binary", "~Filter (timestamp#5 > now())", f"+- ~{TOPIC}"),
        ("value: binary", "~SomethingThatNobodyHasSeenYet", f"+- ~{TOPIC}"),
    ],
    ids=[
        "counts",
        "distinct",
        "join",
        "join with a table",
        "limit",
        "union with a table",
        "subquery",
        "now",
        "unknown",
    ],
)
def test_rows_taken_together(plan: tuple[str, ...]) -> None:
    assert shape_of(explained(*plan)) is Shape.WITH_STATE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            explained(
                "key: string", "~Project [reflect(java.util.UUID, randomUUID, true) AS key#1]", f"+- ~{TOPIC}"
            ),
            r"uses reflect\(\)",
        ),
        (explained("key: string", "~Project [uuid(Some(-37)) AS key#1]", f"+- ~{TOPIC}"), r"uses uuid\(\)"),
        (explained("", "DropTempViewCommand orders, false"), "reads none of the job's topics"),
        ("Error occurred during query planning: \nno such column", "no such column"),
    ],
)
def test_what_cannot_be_is_refused(text: str, message: str) -> None:
    with pytest.raises(WrongUse, match=message):
        shape_of(text)
