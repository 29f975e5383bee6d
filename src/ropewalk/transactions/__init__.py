"""The coordinator of transactions, as decisions: which producer holds a transactional id, and how its transaction ends.

`TransactionsCore` holds all transactional ids of one shard. It is told a command or the time and answers with a `Step`:
events for the log, and replies that may be sent once those events (and all before them) are committed. It owns no
socket, file, task or clock. It writes no marker either: it says what is to be finished, and is told what was.

    core.py        the public face: decide, tick, apply
    commands.py    what producers, partitions, the finisher and administrators ask; answers.py, errors.py  what they hear
    events.py      what is durable; event_codec.py  the same as Kafka's own `__transaction_state` records
    identity.py    who a producer is: ids, epochs, and when an epoch has run out
    initialising.py, joining.py, ending.py   the rules: a producer begins, a partition takes part, a transaction ends
    finishing.py   prepared transactions whose markers are not all written
    waiting.py     who waits for a transaction to be finished
    overview.py    transactional ids as administrators see them
    settings.py    what an administrator may decide; step.py  what the core answers with

Invariants
    A transaction has one outcome: what is prepared to be committed is never aborted, and the other way about.
    Whatever is prepared stays prepared until every partition has its marker.
    An epoch is given to one producer. A producer whose epoch is neither the current one nor the one before a change
    that it may not have heard of is fenced, and changes nothing.
    The last epoch of a producer id is never given to a producer: it is left for the marker that ends its last
    transaction.
    Replaying the events of a shard rebuilds its state exactly. Who waits, and which markers of a prepared transaction
    are written already, is not durable: markers are written again, which does no harm.
"""
