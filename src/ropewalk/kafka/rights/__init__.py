"""What callers of Kafka's APIs must be allowed, and what they are told where they are not.

    needs.py     what an API needs, and the handler that sees to it
    rights.py    the rights of one caller, as guards ask for them
    records.py  topics.py  groups.py  transactions.py  cluster.py    guards: they stand before a handler and behind it

What a reader could get wrong
    A guard decides before anybody looks whether what is named exists; what is refused does not get to the handler.
    What is hidden is left out of the answer, and of nothing else.
    Where nothing is checked no guard is built.
"""
