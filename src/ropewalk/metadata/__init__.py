"""Cluster facts: the records they are written as, the image they add up to, and the log that keeps them.

Nothing outside this room holds a fact about the cluster, and nothing outside it knows where the log lives:
`log.py` is the port, `local.py` its home in a file. What may change and to what is decided in `controller/`.

Invariants
    The image is the sum of the records: replaying them from nothing, or from any snapshot, gives the same image.
    A record is applied only after the log has said `Committed`.
    Records are never edited. A field added later has a default, so that records written before it still read.
"""
