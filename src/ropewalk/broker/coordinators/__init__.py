"""The coordinators of groups and of transactions on this node.

    groups.py, group_topics.py     groups: their shards, and the topics that they look at
    transactions.py                transactional ids: their shards, and who finishes what was decided
    markers.py, marker_writing.py  the markers that end a transaction: having them written, and writing them

Invariants
    A group and a transactional id are looked after by the leader of their shard's partition and by nobody else.
"""
