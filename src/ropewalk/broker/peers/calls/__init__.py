"""What nodes say to each other: one file for each conversation, from an engine's value into words and back to a value.

    call.py       a question to any node, ready to be sent over a link
    controller_call.py   the same to the node that decides, whoever that is
    refusals.py   which error stands behind which code: the inverse of the table at the Kafka door
    the others    one conversation each, named as the protocol names it; the other end of it is in `kafka/peer/handlers`
                  or, for what clients may say as well, in `kafka/handlers`

Invariants
    Nobody above this package sees a message of the wire.
    Silence is raised, and leaves open what the other node did.
"""
