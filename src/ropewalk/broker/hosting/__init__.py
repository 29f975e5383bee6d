"""The host of replicated state: shards that live beside the partition that holds their events.

    host.py             all of one kind: who looks after a key, ask, ask all, and the topic, made on first use
    shards.py           all shards of one kind that this node hosts: one for every partition it leads of their topic
    shard.py            one of them: its life, and commands in
    turn_log.py         what a turn decided goes into the log as one append; replies leave when it is committed
    state_machine.py    what the host asks of the state it hosts
    keyed.py            the form of a log in which a later record of a key replaces the earlier
    event_batches.py    a turn's events as a record batch
    replay.py, latest_records.py   the log of a shard, read as what compaction would leave of it
    steady_time.py      time that counts from 1970 and never jumps

Invariants
    An answer is released when the high watermark has passed the last event that it depends on.
    A shard whose append fails throws its state away and reads its log again.
"""
