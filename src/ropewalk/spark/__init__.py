"""Topics in Spark: a data source and sink on raw record batches and Arrow columns, and pipelines built on them.

    columns.py    what a row has; which of it is wanted
    decoding/     record batches as brokers send them → Arrow columns
    compiled.py   how loops are compiled and kept; patience.py  when they are worth loading; numbers.py  Arrow's numbers as numpy's
    options.py    what a reader may ask for; ranges.py  which offsets that comes to, and how they are split; weights.py  how large they are
    brokers.py    questions to brokers, from threads without an event loop
    reading.py    one task: fetch, decode, hand on
    readers.py    which tasks a read comes to, and how far a stream has come
    source.py     what Spark calls first
    encoding/     Arrow columns → record batches
    sink/         rows → topics, at least once or exactly once
    checkpoints.py  which offsets a batch of a query has, from what Spark wrote down
    storage.py    where an object store is and by which keys; objects.py  what it creates once; store_words.py  what it said
    figures.py    what batches came to; job_names.py  what Spark's pages call them
    values/       what is in a value: JSON, Avro, Protobuf → Arrow columns, and why not
    lake/         tables: files by tasks, one commit by the driver, the next offset in it
    pipelines/    jobs over topics: defined, started, watched

`from ropewalk.spark import archive, transform` starts jobs in a session. Needs the extra `spark`. Importing the package itself loads
nothing, since every worker of Spark does; nothing else in the package imports this one, and `pyspark_ropewalk` is how Spark finds it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ropewalk.spark.pipelines.starting import archive, transform

__all__ = ["archive", "transform"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"ropewalk.spark has no {name}")
    from ropewalk.spark.pipelines import starting

    return getattr(starting, name)
