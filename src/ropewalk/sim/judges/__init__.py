"""Judges of what clients saw: a history in, violations out, in words. They know nothing of how a node works.

    history, checker, keys        records, offsets and topics; what compaction may leave out
    group_history, group_checker  members of groups and what they committed
    eos                           transactions, and what exactly once forbids

Judges that look at a cluster from above, with its metadata and its disks, belong to the runs in which they sit.
"""
