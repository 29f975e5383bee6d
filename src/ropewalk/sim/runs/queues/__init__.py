"""Cores of queues on an event queue: the real rules of `queues`, over logs that lose their tails and leaders whose clocks are apart.

No event loop, no bytes of batches, no files: what is real is `queues`, with its deltas and snapshots as bytes. Logs, leaders and what carries dead letters
are models that do what theirs may do at worst.

    queue_log          the log of a partition: what is committed, and what each leader has besides
    facts, book        what leaders decided, as it becomes committed, and the rules that no run may break
    host               a leader: turns, commits, reads, snapshots, answers
    crowd, movers      senders, receivers and administrators; who carries dead letters
    scenario           leaders that change, one run of it all, and what must be so at rest
"""
