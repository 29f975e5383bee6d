"""Consumer groups, as decisions: who is a member, who reads what, and how far each group has read.

`GroupsCore` holds all groups of one shard. It is told a command or the time and answers with a `Step`: events for
the log, and replies that may be sent once those events (and all before them) are committed. It owns no socket,
file, task or clock, so the same object runs inside a broker and inside the simulator.

    core.py        the public face: one method per command
    commands.py    what members, tools and administrators ask; answers.py, errors.py  what they hear
    events.py      what is durable; event_codec.py  the same as Kafka's own `__consumer_offsets` records
    durable.py     the state that the events add up to
    group.py       one classic group with its members, as it is at the moment
    rebalances.py      how a rebalance begins, waits and ends; joining.py  who may take part
    membership.py  what members do between joins
    offsets.py     commit, fetch, delete; expiry.py  when offsets and groups are forgotten
    overview.py    groups as administrators see them
    pending.py     offsets of transactions that are open
    consumer/      groups whose assignments are made here (KIP-848); assignors/  how
    embedded.py    what consumers say to each other through the classic protocol; versioned.py  structures with a version

Invariants
    What `apply` has not seen is not durable: offsets are changed by events only, and replaying the events of a
    shard rebuilds them exactly. Who is joining a classic group, and whose session ends when, is not durable: it is lost with the
    core, and clients join again.
    An assignment is handed out only with the event that records it, so a generation has one assignment, ever.
    A commit that names a generation is taken from a member of the current generation only.
    An offset that was sent with a transaction counts if and only if the transaction is committed, and then by its
    place in the log, so that compaction changes nothing.
    A partition without a committed offset has none: it is never reported as zero.
    Whoever waits for a join or a sync is answered: by the rebalance it waits for, by the next, or by a timeout.
"""
