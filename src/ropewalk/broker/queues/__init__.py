"""Queues, hosted beside the partitions that hold their messages and their state.

    queues.py          all that are hosted here, in step with the image and the partitions; settings.py  what their cores are told
    hosted_queue.py    one partition: its life (`lives.py`), commands in, one turn after the other; time.py  by which
    loading.py         its state, as the log tells it; snapshots.py  when it is written whole
    sendings.py, turn.py, releases.py   what a turn appends, and who is told when that is committed
    supply.py, read_ahead.py, reading.py, opened.py   committed messages: at hand, or read again; what their records say
    asked_partition.py, near_partition.py   what may be asked of a partition, wherever it is led; of one that is led here
    long_poll.py       a receive that waits at several partitions, for a client that may go
    credits.py         receives that front ends on other nodes have left here
    moves.py, arrivals.py, dead_letters.py   from a queue to another one, at both ends; tasks.py  which messages of a dead-letter queue go back
    expiring.py        what is older than a queue keeps messages goes, though nobody asks for it
    erasing.py         logs of queues become shorter
    figures.py, looking.py      for whoever looks at a queue
    headers.py, message_ids.py   what is beside the body in a record; receive_counts.py  what receivers were given

Invariants
    An answer is released when the high watermark has passed what it depends on; only what a standard queue gives out is told at once.
    A queue whose append fails throws its core away and reads its state again.
    No log of a queue starts beyond its last whole snapshot that is committed.
"""
