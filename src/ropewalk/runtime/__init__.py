"""The ports on a real operating system: clock, randomness, disk, thread pool, TCP, event loop, supervision.

This is the only room in which threads, sockets, `time` and `os` file calls appear. Nothing here knows
what a record, a topic or a protocol is.
"""
