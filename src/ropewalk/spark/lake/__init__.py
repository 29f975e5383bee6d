"""Tables that topics are archived in: files written by tasks, one commit by the driver, and the next offset kept in the commit itself.

    table.py      what a kind of table offers, and what a commit holds
    advance.py    core: which offsets of a batch are new, and where the table stands after it
    evolution.py  core: how the columns of a table grow; conforming.py  rows with fewer columns in the table's; column_names.py  what none may be called
    judging.py    rows whose values can be read, and those that cannot; dead_letters.py  how these get to a table of their own, exactly once
    choosing.py   which columns and rows, and what is hidden of them: conditions.py  what they must be; masks.py  how
    shaping.py    rows of a topic → rows of the table
    writing.py    one task: rows → Parquet files, in bounded memory
    places.py     directories and addresses of object stores
    landing.py    one batch of a query: looked up, read and written by tasks, committed by the driver
    terms.py      on which terms a job may write to a table that exists; unseen.py  files of tasks that the driver does not find
    upkeep.py     core: what keeps a table healthy, and when it is due; joining.py  small files → larger ones, by tasks; keeping.py  upkeep beside batches
    object_catalog.py  the catalog of a table of Iceberg in an object store, which is the table itself
    kinds.py      delta.py, tables in Delta's format; delta_history.py  what others did to them; delta_forgotten.py  files that only forgotten versions have; parquet.py, plain directories of Parquet files
    iceberg.py    tables in Iceberg's format; iceberg_files.py  files as its manifests describe them; iceberg_upkeep.py  snapshots, manifests, what is left

Invariants
    A table's next offset of a partition and the rows below it become visible in the same commit, or neither does.
    A file that no commit names is of an attempt that failed. Nobody reads it, and upkeep deletes it when it is old enough.
"""
