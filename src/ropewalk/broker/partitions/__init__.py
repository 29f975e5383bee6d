"""The partitions that this node holds: as their leader, or as a copy of another node's.

    partitions.py, opening.py, roles.py   all of them, in step with the image: opened, led, followed, closed
    partition.py, replica.py, hosted.py   one that is led here, one that is followed here, and what both have in common
    hosted_partitions.py, leader_epochs.py   the way to one, and whether a caller means the same leader
    followers.py, in_sync.py              those who copy from here, and the set in sync that the controller is asked for
    acknowledgements.py, waiters.py, watchers.py   who waits for a write, for an offset, or for more to read
    verification.py, topic_rules.py       what may enter a log
    home.py, group_commit.py, checkpoint_saving.py, room.py   a directory of partitions, and who makes durable what happens there
    log_work.py, cutting.py, starts.py, page_cache_marks.py   changes of a log that take more than one step
    catch_up.py, believed_clock.py        the budget of those who are behind, and the time of day by which things are kept

Invariants
    Nothing is acknowledged, and nothing is shown to a consumer, before it is as durable as the topic's
    `flush` setting promises.
    `Partition.append` runs to its end without suspending, so appends never interleave.
    One task at a time changes the files of a log.
"""
