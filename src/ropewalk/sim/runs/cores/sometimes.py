"""Things that must happen in some run of the cores, or the runs prove less than they seem to."""

from typing import Final

EXPECTED: Final = (
    # Replication.
    "a follower fell out of sync",
    "a follower came back in sync",
    "a replica was truncated",
    "a replica was truncated in more than one step",
    "two replicas led in turns",
    "a replica lost its unsynced tail",
    "a zombie leader was refused",
    "a change of the ISR was refused",
    "a change of the ISR stayed unanswered",
    "a write was refused for want of replicas",
    "a write's outcome stayed unknown",
    "an idempotent write sent again had been written already",
    "a follower served a consumer",
    # Elections.
    "a leader was elected from the ISR",
    "a leader was elected from the eligible",
    "the last leader was elected, and a loss recorded",
    "a partition was without a leader",
    "an election was forced",
    "a preferred leader was elected",
    # Membership.
    "a broker was fenced",
    "a broker was unfenced",
    "a broker stopped in order",
    "a broker started again uncleanly",
    "a broker came back with an empty disk",
    "an empty disk was filled again",
    "a replica was damaged",
    "a broker was refused for its clock",
    # Settings.
    "a controller's file differed from the cluster's",
    "a topic's settings were changed",
    "the settings of all brokers were changed",
    "a log was synced under group, and its mark went",
    "a replica was doubted whose topic is set to group by now",
    # Controllers and metadata.
    "a change was cut into several appends",
    "a change was given up half way",
    "another controller took over",
    "a zombie controller was refused",
    "a metadata append's outcome was unknown",
    "a metadata append took effect after its outcome was unknown",
    "a metadata append lost a race",
    "a watch was lost",
    "an image was loaded from a snapshot",
    "the metadata home was down",
    # What administrators do.
    "a topic was created",
    "a topic was created with an observer",
    "a topic was deleted",
    "a topic grew",
    "a move was begun",
    "a move was completed",
    # Machines.
    "the power failed",
    "the power failed everywhere",
    "a process was killed",
    "a process was paused",
    "a disk was slow",
    "a direction was cut",
    "a node was cut off",
    "a clock jumped",
)
