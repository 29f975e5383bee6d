"""In-sync replication of one partition, as decisions.

`Leader` and `Follower` are told what happened and say what follows from it. They own no socket, file, task or clock, so
the same objects run inside a broker, inside the simulator and inside an exhaustive search over all orders of events.

    leader.py      the high watermark, and which set of replicas in sync to ask the controller for
    progress.py    what a leader knows of one follower, and whether that is in step
    stragglers.py  over all partitions that a node leads: which slow node not to wait for (`ack.policy=quorum`)
    follower.py    what to ask of the leader next, and what its answer means
    fetch_plan.py  what a follower asks one leader for: who is named, who rests, who is behind, who is repaired
    lineage.py     whether a follower's log continues the leader's, and where it does not

Invariants
    The high watermark never moves back within a leadership, and never passes the smallest durable end of anyone who may be
    in sync: the committed set, and every set that was proposed and may yet be committed (KIP-497).
    It stands still while the committed set is below the minimum (KIP-966): the eligible replicas must not fall behind it.
    The set of replicas in sync changes only when the cluster's facts say so. A leader may ask, and its own opinion
    of the answer changes nothing.
    A replica joins only with all that any earlier leader may have acknowledged: it has reached the high watermark and
    where the leader's log ended when its epoch began (KIP-320).
    What was said in another epoch counts for nothing, be it a fetch, an answer to one, or an order to truncate.
    A follower cuts its log where its history parts from the leader's and nowhere else; never at its high watermark
    (KIP-101, KIP-279).
"""
