"""The links from this node to others, and the addresses at which it begins to look for them.

    peers.py            one link to each node's internal listener
    gathered_calls.py   one call at a time to each node; what comes up meanwhile goes with the next
    calls/              what nodes say to each other, one file for each conversation
    seeds.py            the addresses that a node knows before it knows anybody

Invariants
    A link speaks only to whoever proved the cluster's secret.
    Calls on one link are sent in the order in which they were made.
"""
