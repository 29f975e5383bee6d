"""From here to whichever node is the one to ask: by a call in this process, or over a link.

    transaction_entry.py   permission for a transaction to write to partitions, from its coordinator
    furthest.py            which replica of a partition holds most

Invariants
    An answer that does not come is an unknown outcome, never a refusal.
"""
