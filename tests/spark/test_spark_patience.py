"""What is begun anew is what Spark gave up at its start, three times at most, and nothing else."""

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException

from tests.spark.patience import STARTS_MAX, patiently

GIVEN_UP = StreamingQueryException("[STREAM_FAILED] Python worker failed to connect back. SQLSTATE: XXKST")
FAILED = StreamingQueryException("[STREAM_FAILED] there is no such topic")


@pytest.mark.parametrize(
    ("outcomes", "starts"),
    [
        ([None], 1),
        ([GIVEN_UP, None], 2),
        ([FAILED], 1),
        ([GIVEN_UP, FAILED], 2),
        ([GIVEN_UP] * 9, STARTS_MAX),
    ],
)
def test_a_query_is_begun_anew_where_spark_gave_it_up(outcomes: list[Exception | None], starts: int) -> None:
    begun: list[Exception | None] = []

    def run() -> str:
        begun.append(outcomes[len(begun)])
        if begun[-1] is not None:
            raise begun[-1]
        return "done"

    if outcomes[starts - 1] is None:
        assert patiently(run) == "done"
    else:
        with pytest.raises(StreamingQueryException):
            patiently(run)
    assert len(begun) == starts
