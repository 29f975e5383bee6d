"""The links from this node to others, and the addresses at which it begins to look for them.

    peers.py            one link to each node's internal listener
    calls/              what nodes say to each other, one file for each conversation
    seeds.py            the addresses that a node knows before it knows anybody

Invariants
    A link speaks only to whoever proved the cluster's secret.
    Calls on one link are sent in the order in which they were made.
"""
