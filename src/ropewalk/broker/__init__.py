"""The node's services, free of any protocol: append, read, wait, create, delete, keep house.

Rooms, from the top; each imports only from those below it, and rooms on one line do not know each other.

    watching                                 figures, samples and health
    coordinators    administration           groups and transactions  ·  what operators ask, and rounds over the cluster
    topics          dispatch                 changes of topics  ·  the node to ask, here or over a link
    reading   copying   hosting   upkeep     fetches  ·  following leaders  ·  replicated state  ·  what time demands
    partitions      cluster                  what this node holds  ·  the facts it follows, and being a member
    peers                                    links to other nodes
    access   bearers   passwords             what callers may do  ·  whose tokens count  ·  whose passwords

Invariants
    Nothing is acknowledged, and nothing is shown to a consumer, before it is as durable as the topic's
    `flush` setting promises.
    `Partition.append` runs to its end without suspending, so appends never interleave.
"""
