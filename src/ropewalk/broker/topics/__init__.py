"""Making, growing, changing and deleting topics and queues, as any door may ask for it.

    topics.py   commands about topics, brought to the node that decides and seen through to this node's image
    queues.py   the same for queues

Invariants
    A command is answered when the image of this node has what was decided.
"""
