"""Topics in Spark: a data source on raw record batches, decoded into Arrow without an object per record.

    columns.py    what a row has; which of it is wanted
    bodies.py     fetched bytes → the bodies of their batches in one buffer: checked, opened, without what was aborted
    kernels.py    where each record's parts lie, found by compiled loops; lockstep.py  the same with numpy alone
    decoder.py    all of it together: bytes in, an Arrow record batch out
    options.py    what a reader may ask for; ranges.py  which offsets that comes to, and how they are split
    reading.py    one task: fetch, decode, hand on
    source.py     what Spark calls

Needs the extra `spark`. Nothing else in the package imports this one; `pyspark_ropewalk` is how Spark finds it.
"""
