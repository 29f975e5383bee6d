"""What Spark calls first: `format("ropewalk")` of `spark.read` and `spark.readStream`, of `write` and `writeStream`.

What a reader could get wrong
    Spark makes a process for each step of planning a query, and throws it away. The first only asks for the name and the columns, so
    everything else is imported where it is needed: what is imported here is paid for with every query.
"""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from ropewalk.spark.columns import all_columns, schema_of


class RopewalkSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ropewalk"

    def schema(self) -> StructType:
        with_headers = self.options.get("includeHeaders", "false").lower() == "true"
        return schema_of(all_columns(with_headers=with_headers))

    def reader(self, schema: StructType) -> DataSourceReader:
        from ropewalk.spark.readers import batch_reader

        return batch_reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name for it
        from ropewalk.spark.readers import stream_reader

        return stream_reader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from ropewalk.spark.sink.writer import batch_writer

        return batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from ropewalk.spark.sink.writer import stream_writer

        return stream_writer(self.options, schema, overwrite=overwrite)
