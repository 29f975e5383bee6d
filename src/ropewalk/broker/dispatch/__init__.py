"""From here to whichever node is the one to ask: by a call in this process, or over a link.

    dispatch.py            to one node or another, and who leads a partition
    to_leaders.py          one conversation with the leaders of partitions (`to_leader`)
    to_shards.py           commands for shards of one kind, wherever these are hosted (`to_shard`)
    gathered_calls.py      one call at a time to each node; what comes up meanwhile goes with the next
    transaction_entry.py   permission for a transaction to write to partitions, from its coordinator
    to_queues.py           from a door to the leaders of a queue's partitions
    queue_receives.py      receives that go on where a leader dies or changes
    far_queues.py, queue_polls.py, far_sends.py   partitions of queues that other nodes lead; receives that are left there; messages that go there together
    in_flight.py           a bound for what a queue has in flight over all of its partitions
    ends.py                where the partitions of a topic end
    furthest.py            which replica of a partition holds most

The way to the controller is the same idea and lies further down (`broker/cluster/to_controller.py`), since membership needs it.

Invariants
    An answer that does not come is an unknown outcome, never a refusal.
    Nobody else finds out where a leader or a coordinator is in order to call it.
"""
