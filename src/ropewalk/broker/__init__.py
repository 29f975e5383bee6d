"""The node's services, free of any protocol: append, read, wait, create, delete, keep house.

`Partition` is one partition led here; `Followers` are those who keep copies of it, `Acknowledgements` those who wait for
what they wrote. `Partitions` holds all that the node has and is the way from a door to one.
`GroupCommit` makes many partitions' writes durable at once. `Topics` turns commands into committed
metadata and into partitions on disk. `housekeeping` does what time demands: retention, rolls,
checkpoints, scrubbing.

Invariants
    Nothing is acknowledged, and nothing is shown to a consumer, before it is as durable as the topic's
    `flush` setting promises.
    `Partition.append` runs to its end without suspending, so appends never interleave.
"""
