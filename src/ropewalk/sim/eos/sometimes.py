"""Things that must happen in some run of transactions, or the runs prove less than they seem to."""

from typing import Final

EXPECTED: Final = (
    # Transactions.
    "a transactional id was taken",
    "a transaction was committed",
    "a transaction was aborted",
    "a transaction was aborted by its timeout",
    "a transactional batch was sent again",
    "a transaction waited for the end of the one before",
    "the end of a transaction was asked for again",
    "the end of a transaction stayed unknown",
    "a producer was fenced",
    "a write of a fenced producer was refused",
    "a partition was stable only up to an open transaction",
    # Consuming, transforming, producing.
    "records were made from others",
    "offsets were not stable yet",
    "offsets of a stale member were refused in a transaction",
    "a member was slow within a transaction",
    "a group was rebalanced during a transaction",
    "a broker assigned partitions",
    # Coordinators.
    "a coordinator was struck",
    "a coordinator was stranded",
    "a coordinator was loading",
    "the log of a coordinator was compacted",
    "a client was sent to another coordinator",
    # Groups.
    "a rebalance was finished",
    "a member's commit was acknowledged",
    "a commit's outcome stayed unknown",
    "a commit of a stale member was refused",
    "a member left",
    "a session expired",
    # Others.
    "a write was acknowledged",
    "an idempotent batch was sent again",
    "a consumer read records",
    "a client was sent to another leader",
    # The cluster and its machines.
    "another replica led",
    "a partition was without a leader",
    "a follower fell out of sync",
    "a broker was fenced",
    "another controller decided",
    "the power failed",
    "the power failed everywhere",
    "the node was killed",
    "the node was stopped in order",
    "a process was paused",
    "a disk was replaced by an empty one",
    "a connection was reset",
    "a direction was cut",
    "a node was cut off",
    "the clock jumped forward",
    "the clock jumped back",
)
