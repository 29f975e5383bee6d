"""What `transform` can be told, and which of it goes together.

What a reader could get wrong
    Paths are as the user wrote them, and mean something only where the command is called: `values` and `keys` have them in full.
    Settings that are part of what the query is are compared with those of the checkpoint (`Definition` in `beginnings.py`); `check`
    sees only what one run is told.
"""

from typing import Final, Literal

from msgspec import Struct

from ropewalk.spark.lake.kinds import Kind
from ropewalk.spark.options import Subscription
from ropewalk.spark.pipelines.definition import absolute
from ropewalk.spark.pipelines.settings import UPKEEP_BOUNDS, bound
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.values.decoding import ValueFormat

_TASKS_MAX: Final = 10_000
"""Each is a transaction, and a marker, of every batch."""


class TransformSettings(Struct, frozen=True, kw_only=True):
    sql: str = ""
    """The query. Every topic is a view by its name, with the columns of the source; `records` is what a pattern comes to."""
    sql_file: str = ""
    """A file that holds the query, in place of `sql`."""
    to_topic: str = ""
    """The topic that rows go to as records. It must exist."""
    to: str = ""
    """The table that rows go to, in place of a topic: a directory or the address of one."""
    table: Kind = "delta"
    """The kind of that table."""
    key: str = ""
    """The column that is the records' key; without it that is `key`, if the query gives one."""
    fields: str = ""
    """Columns of values that are JSON, as in `item string, amount double, at timestamp`: views have them beside the source's."""
    format: Literal["raw", "json", "avro", "protobuf"] = "raw"
    """What values are, in place of `fields`. Views have the columns of their schema beside the source's."""
    schema: str | None = None
    """A file with the schema of values: JSON Schema, a schema of Avro, or descriptors as `protoc --include_imports` writes them."""
    registry: str | None = None
    """The URL of a schema registry, user and password in it where they are needed. Values and keys with a format then have its prefix."""
    subject: str | None = None
    """Whose newest schema in the registry gives the columns, if no file does. The topic's name and `-value` unless told."""
    message: str | None = None
    """Of Protobuf: the message's full name. The first one of the file unless told."""
    prefix: bool = False
    """Values have a registry's prefix, though no registry is named; it is taken off."""
    unknown_fields: Literal["ignore", "keep", "refuse"] = "ignore"
    """Of JSON: what becomes of fields that the schema does not name. Kept ones are in `_rest`, as text."""
    key_format: Literal["raw", "json", "avro", "protobuf"] = "raw"
    """What keys are. All but raw become columns inside `key`."""
    key_schema: str | None = None
    """A file with the schema of keys."""
    key_subject: str | None = None
    """Whose newest schema in the registry gives the columns of keys. The topic's name and `-key` unless told."""
    key_message: str | None = None
    """Of Protobuf: the full name of the keys' message."""
    bad_rows: Literal["dead_letters", "stop", "null"] = "dead_letters"
    """What becomes of rows that cannot be read, or that have no event time: a table of dead letters, the end of the job, or nulls."""
    dead_letters: str | None = None
    """That table. Unless told beside the table or the checkpoint, with `_dead_letters` at the end of its name."""
    partition_by: list[str] = []
    """Columns of the query that have a directory for each of their values in the table."""
    catalog: dict[str, str] = {}
    """Of Iceberg: the catalog as pyiceberg describes one (type, uri, …), and as `table` the name in it. A file beside the table unless told."""
    keep_snapshots_hours: int = 168
    """How long earlier states of the table can be read, and files that nobody needs are kept."""
    views: dict[str, str] = {}
    """Names for topics in the query, as `orders=shop.orders.v1`."""
    watermark: str = ""
    """The column of event time in every view, and how late it may be: `at 10 minutes`."""
    mode: str = "append"
    """`append`: a row when it is final; `update`: whenever it changes, to a topic only."""
    tasks: int = 4
    """How many tasks write to the topic, each in transactions of its own. It may never change."""
    producer: dict[str, str] = {}
    """Settings of the producer under Kafka's names, as `compression.type=zstd`."""
    keep_snapshots: int = 100
    """How many earlier states of the table can be read at most. Of Iceberg these are the newest and some of every day."""
    keep_rows_days: int = 0
    """How long rows of the table are kept: so many days after the day that their directory is named for it is deleted. 0 for ever."""
    upkeep_batches: int = 100
    """So many batches at most from one upkeep of the table to the next; after a bounded run there is always one. 0 for never."""

    def values(self) -> ValueFormat:
        return ValueFormat(
            format=self.format,
            schema=None if self.schema is None else absolute(self.schema),
            registry=None if self.format == "raw" else self.registry,
            subject=self.subject,
            message=self.message,
            prefix=self.prefix,
            unknown_fields=self.unknown_fields,
        )

    def keys(self, topics: tuple[str, ...]) -> ValueFormat:
        is_read, subject = self.key_format != "raw", self.key_subject
        if is_read and subject is None and len(topics) == 1:
            subject = f"{topics[0]}-key"
        return ValueFormat(
            format=self.key_format,
            schema=None if self.key_schema is None else absolute(self.key_schema),
            registry=self.registry if is_read else None,
            subject=subject if self.registry is not None or self.key_subject is not None else None,
            message=self.key_message,
            prefix=self.prefix and is_read,
        )

    def check(self, subscription: Subscription) -> None:
        """Refuses, with `WrongUse`, what does not go together."""
        if bool(self.to_topic) == bool(self.to):
            raise WrongUse("say where rows go: to_topic or to, one of them")
        if self.mode not in ("append", "update"):
            raise WrongUse(f"mode is {self.mode!r}, must be append or update")
        if self.mode == "update" and self.to:
            raise WrongUse("a table takes rows that are final: say mode=append, or send updates to a topic")
        try:
            bound(self, {**UPKEEP_BOUNDS, "tasks": (1, _TASKS_MAX)})
        except ValueError as error:
            raise WrongUse(str(error)) from None
        if self.fields and (self.format != "raw" or self.key_format != "raw"):
            raise WrongUse(
                "fields are read by Spark, and a format by its schema: say one of them. JSON with keys that are to be read has format=json and a schema"
            )
        if self.dead_letters is not None and self.bad_rows != "dead_letters":
            raise WrongUse(
                f"bad_rows is {self.bad_rows}, which has no use for dead_letters; say bad_rows=dead_letters, or leave it out"
            )
        if self.registry is not None and self.format == self.key_format == "raw":
            raise WrongUse(
                "a registry has no use without a format; say format or key_format, or leave it out"
            )
        if self.dead_letters and self.to and absolute(self.dead_letters) == absolute(self.to):
            raise WrongUse(f"dead_letters is {self.dead_letters!r}, which is the table itself; name another")
        for name in ("partition_by", "catalog"):
            if getattr(self, name) and not self.to:
                raise WrongUse(
                    f"{name} is of tables, and rows go to a topic; say to in place of to_topic, or leave it out"
                )
        if self.catalog and self.table != "iceberg":
            raise WrongUse(f"a catalog has no use for table {self.table}; say table=iceberg, or leave it out")
        assigned = {each.topic for each in subscription.assigned}
        if self.to_topic and (subscription.takes(self.to_topic) or self.to_topic in assigned):
            raise WrongUse(
                f"the job reads {self.to_topic} and would read what it writes; choose another topic"
            )
