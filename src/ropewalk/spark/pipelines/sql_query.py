"""A query over topics: the views that its text names, and what Spark makes of it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from pyspark.sql import functions

from ropewalk.spark.pipelines.query_shape import Shape, shape_of
from ropewalk.spark.pipelines.row_reading import RowReading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Watermark(Struct, frozen=True):
    column: str
    delay: str


class SqlQuery(Struct, frozen=True):
    text: str
    views: dict[str, str | None]
    """Names, and the topic that each stands for; None for everything that is read."""
    reading: RowReading = RowReading()
    watermark: Watermark | None = None

    def view(self, records: "DataFrame") -> "DataFrame":
        """Rows of the source as the query sees them."""
        seen = self.reading.view(records)
        if self.watermark is not None and records.isStreaming:
            seen = seen.withWatermark(self.watermark.column, self.watermark.delay)
        return seen

    def over_each(self, spark: "SparkSession", records: Mapping[str, "DataFrame"]) -> "DataFrame":
        """The query's rows from those of every view."""
        self._name_views(records)
        return spark.sql(self.text)

    def over(self, records: "DataFrame") -> "DataFrame":
        """The query's rows from those of all topics together."""
        split = {
            name: records if topic is None else records.where(functions.col("topic") == topic)
            for name, topic in self.views.items()
        }
        return self.over_each(records.sparkSession, split)

    def shape(self, spark: "SparkSession", streams: Mapping[str, "DataFrame"]) -> Shape:
        self._name_views(streams)
        (explained,) = spark.sql(f"EXPLAIN EXTENDED {self.text}").collect()
        return shape_of(explained[0])

    def _name_views(self, records: Mapping[str, "DataFrame"]) -> None:
        for name, rows in records.items():
            self.view(rows).createOrReplaceTempView(f"`{name}`")
