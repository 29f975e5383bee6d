"""Making, growing, changing and deleting topics, as any door may ask for it.

    topics.py   commands about topics, brought to the node that decides and seen through to this node's image

Invariants
    A command is answered when the image of this node has what was decided.
"""
