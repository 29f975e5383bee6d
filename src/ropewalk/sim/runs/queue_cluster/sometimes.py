"""Things that must happen in some run of queues on clusters, or the runs prove less than they seem to."""

from typing import Final

EXPECTED: Final = (
    # Clients.
    "a message was sent",
    "a batch was sent",
    "a record of a producer was acknowledged",
    "a send stayed unanswered",
    "a message was sent again under its id",
    "a duplicate was answered as the first one",
    "a short poll brought messages",
    "a long poll brought messages",
    "a receive was repeated under its id",
    "a client hung up",
    "a message was deleted",
    "a delete stayed unanswered",
    "a visibility was changed",
    "a queue was purged",
    "a waiting receive had what was sent",
    # Deliveries.
    "a message came again after its time",
    "a standard message came again early",
    "a dead letter was received",
    # Queues.
    "a queue had several partitions",
    "a topic was adopted",
    "a queue had another leader",
    # What befell them.
    "a leader of queues was struck",
    "a front end of queues was struck",
    "a front end was cut off from a leader",
    "a front end was lost with what it had passed on",
    "another replica led",
    "another controller decided",
    "the power failed",
    "the node was killed",
    "the node was stopped in order",
    "a process was paused",
    "a connection was reset",
    "a node was cut off",
    "a disk ran full",
    "the clock jumped forward",
    "clocks ran at different rates",
)

RARE: Final = ("a deposed leader gave out what was gone",)
"""Allowed on standard queues, and not looked for."""
