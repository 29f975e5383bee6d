"""Clients as small as can be, which note what they asked and were told, for a judge.

    link, asking        a connection: frames out, frames in, in order; and how all who read ask
    workload, content, topic_kinds
                        what all clients share, records that can be recognised, and the topics they are kept in
    producers, consumers, group_calls, group_members
                        who writes, who reads, and who takes part in groups
    remaker             who makes and deletes one topic, over and over

Clients that know of several nodes are in `runs/cluster`, those with transactions in `runs/eos`.
"""
