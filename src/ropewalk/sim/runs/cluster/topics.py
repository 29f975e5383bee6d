"""The topics of a run: two that every run has, and some that differ in what they promise and where they are kept."""

import random

from msgspec import Struct
from msgspec.structs import replace

from ropewalk.sim.clients.topic_kinds import Kind, draw_settings
from ropewalk.sim.judges.history import Promise

STURDY, BRISK = "sturdy", "brisk"
TRIMMED = "trimmed"
"""Records are deleted from its beginning. The others keep theirs, so that whatever they lose is found."""
KEPT = "kept"
BRIEF = "brief"
FLEETING = "fleeting"
WATCHED = "watched"

LOSSY = (BRISK, "late-os", "broad", FLEETING)
"""With `flush=os` the power may take records, if it fails on enough machines, and in memory any stop; the cluster says so then."""

_MINIMUM = {"min.insync.replicas": "2"}


class TopicSort(Struct, frozen=True):
    name: str
    settings: dict[str, str]
    partitions: int = 1
    replicas: int = 3
    promise: Promise = Promise()


def may_trim(topic: str) -> bool:
    return topic in (TRIMMED, BRIEF)


def draw_topics(rng: random.Random, node_count: int) -> list[TopicSort]:
    sturdy = {"segment.ms": "3000"}
    if rng.random() < 0.5:  # otherwise the cluster's settings hold, which promise as much
        sturdy |= {**_MINIMUM, "flush": "group"}
    if rng.random() < 0.35:
        sturdy |= {"ack.policy": "quorum", "replica.straggler.ms": str(rng.choice([100, 300, 800]))}
    topics = [
        TopicSort(STURDY, sturdy, partitions=rng.randrange(1, 3)),
        TopicSort(BRISK, {**_MINIMUM, "flush": "os", "segment.ms": "3000"}),
    ]
    if rng.random() < 0.6:
        topics.append(TopicSort(TRIMMED, {**_MINIMUM, "segment.ms": "1000"}))
    match rng.choice([KEPT, BRIEF, FLEETING, WATCHED, None]):
        case "kept":
            settings, promise = draw_settings(rng, Kind.COMPACTED)
            promise = replace(promise, has_copies=True)
            topics.append(TopicSort(KEPT, {**_MINIMUM, **settings}, promise=promise))
        case "brief":
            settings, promise = draw_settings(rng, Kind.EXPIRING)
            topics.append(TopicSort(BRIEF, {**_MINIMUM, **settings}, promise=promise))
        case "fleeting":
            topics.append(TopicSort(FLEETING, {**_MINIMUM, "storage": "memory"}))
        case "watched":
            settings = {**_MINIMUM, "ropewalk.observers": "1"}
            topics.append(TopicSort(WATCHED, settings, replicas=3 if node_count > 3 else 2))
        case _:
            pass
    return topics
