"""The cluster as an administrator sees and changes it.

admin               topics, settings and records
groups, transactions, open_transactions, quotas
                    groups, transactions at their coordinators and in partitions, and the quotas of clients
membership, leadership, copies, balancing
                    nodes, who leads, how far replicas are, and how load is evened out
for_applications    what `ropewalk.aio` offers of this
"""
