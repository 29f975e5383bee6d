"""Copying from the leaders of what this node follows.

    fetchers.py   a fetcher for each node that leads something followed here
    fetcher.py    one fetch after the other, all partitions of that leader in one session, as `replication/fetch_plan.py` plans them
    copying.py    one partition as its fetcher sees it

Invariants
    A follower asks for what comes after its durable end, so that what it asks for tells what it holds.
    What a leader refused is not asked again at once.
"""
