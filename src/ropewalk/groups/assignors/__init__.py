"""Who gets which partitions of a group whose assignments are made here (KIP-848), as plain functions.

    model.py     what an assignor is told and what it answers
    uniform.py   as even as the subscriptions allow, and with that moving as little as possible
    range.py     neighbouring partitions of every topic, the same ones of topics that are alike
    sticky.py    moves a partition only when somebody would have far too little otherwise
    kept.py      what members may keep; levelling.py  handing out, and moving from those with many to those with few
    catalogue.py the assignors by the names that clients use

Invariants
    Every partition of a topic that anybody subscribes to has one owner, who subscribes to it.
    The answer depends on what is told alone, not on the order in which it is told.
"""
