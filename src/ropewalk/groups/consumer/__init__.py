"""Groups whose assignments are made here (KIP-848): members only say that they live, and hear what to read.

    events.py          what is durable; event_codec.py  the same as Kafka's own records
    group.py           what the events of one group add up to: all there is of it but its timers
    revision.py        a group as it will be when what is being decided has been applied
    subscriptions.py   which topics members mean; patterns.py  regular expressions from clients
    targets.py         when the assignments are made anew; reconciliation.py  how a member comes to its own, safely
    heartbeats.py      joining, staying and leaving; fencing.py  being taken out
    classic_members.py members that speak the classic protocol in such a group
    migration.py       a classic group becomes one of these, and back
    offsets.py         who may commit; overview.py  groups as administrators see them

Three numbers move a group on. The group's epoch rises when what it should read, or who is in it, changes. The target epoch
follows when the assignments for it are made. A member's epoch follows when the member has given up what is no
longer its own; its heartbeats and commits must name that epoch.

Invariants
    A partition has one owner. It is given to a member only after a heartbeat of its former owner has shown that it is
    released, or after the former owner has been taken out.
    A commit is taken in a member's current epoch only, or in the one before for what it has still.
    All of a group but its timers is durable. Another coordinator goes on where this one stopped.
"""
