"""What time demands of a node for its own partitions, and what it costs.

    housekeeping.py         expired waits, checkpoints, snapshots, retention, rolls, scrubbing
    compactor.py            compaction, one partition at a time and with a budget
    wholeness.py            copies that were found damaged: given up, and made whole from others
    load_meter.py, vitals.py   what the node carries, and how its process and its disk are

Invariants
    Whatever is done here can be left half done by a crash.
    Background work has a budget: clients do not notice it.
"""
