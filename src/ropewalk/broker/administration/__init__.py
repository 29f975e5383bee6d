"""What operators ask of a cluster, and what the node that decides does for it unasked.

    rounds.py, balancing.py      load evened out, partitions grown, topics raised: in rounds, or when somebody asks
    leadership.py                elections and reassignments
    scale_webhook.py             telling whoever starts nodes that another is wanted
    quotas.py, quota_changes.py  what clients use of their quotas, and setting these
    log_directories.py           how full the directories of this node are, and of what

Invariants
    Only the node that decides changes anything; the others bring it there.
"""
