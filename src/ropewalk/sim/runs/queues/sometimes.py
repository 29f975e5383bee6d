"""Things that must happen in some run of queues, or the runs prove less than they seem to."""

from typing import Final

EXPECTED: Final = (
    # Clients.
    "a send was acknowledged",
    "a send's outcome stayed unknown",
    "a duplicate was answered with the first one",
    "an id was used again after five minutes",
    "a receive was given something",
    "a message was given out again",
    "a receive was repeated under its id",
    "a delete was answered",
    "a delete was refused",
    "a visibility was changed",
    "what was given out was released",
    "what came for a client that had gone was released",
    "a receiver fell silent",
    "a queue was purged",
    "a queue was rewound",
    "a rewind brought back what was gone",
    # Dead letters.
    "dead letters were moved",
    "a move was refused",
    "a move's outcome stayed unknown",
    "a move was repeated, and had been done",
    # Move tasks.
    "a move task moved messages",
    "a move task was completed",
    "a move task was cancelled",
    "a leader went on with a move task",
    "others received what a task was to move",
    # Leaders.
    "a leader crashed",
    "a leader was deposed and went on",
    "a leader handed over",
    "a tail was lost",
    "a part of a tail was lost",
    "a deposed leader gave something out",
    "a leader's clock was minutes behind its predecessor's",
    "a leader's clock was minutes ahead of its predecessor's",
    "a snapshot was written",
    "a snapshot had several pieces",
)
