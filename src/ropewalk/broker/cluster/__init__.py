"""This node in its cluster: the facts it follows, how it is a member, and how it decides while it is the controller.

    cluster.py, facts.py             the image as the services of the node see it, and what happens when it changes
    decisions.py, controller_seat.py changes of the facts on the node that decides, and how it comes to be that node
    mandate.py                       whose wish a change is
    registry.py, quorum.py           what a controller answers to the other nodes, and how far each has followed
    membership.py, knowledge.py      registering, saying that one lives, and how old one's own knowledge is
    metadata_feed.py                 the metadata log for nodes that do not open its home
    controller_link.py, to_controller.py, forwarding.py   the way to the node that decides: for the node itself, and for clients
    whereabouts.py                   which node leads a partition, or the shard of a key
    second_opinion.py                whether the other nodes miss the controller too
    producer_ids.py                  blocks of producer ids, handed out one by one

Invariants
    Only the holder of the seat in the newest epoch appends to the metadata log.
    A node answers from its image alone, and every image is a prefix of one history.
"""
