"""All that runs in the background of a node, in the order in which it begins.

What a reader could get wrong
    Each door brings work of its own, for as long as it is open (`doors.py`).
    Work that fails ends the node (`life.py`).
"""

from collections.abc import Callable, Coroutine, Iterator
from enum import Enum, auto
from typing import Final, TypeAlias

from ropewalk.node.build import Parts
from ropewalk.node.doors import HTTP

COPYING: Final = "copies of partitions"
"""Stopped before all the rest: a log that is being cut is cut to the end, which takes the checkpoints to be written."""

Work: TypeAlias = Callable[[], Coroutine[object, object, None]]


class Moment(Enum):
    """When work of a node begins."""

    OPENING = auto()
    """Before any partition is opened."""
    FOLLOWING = auto()
    """The partitions of the directory are open."""
    JOINING = auto()
    """The doors are open, and the controller is about to hear of the node."""
    REGISTERED = auto()
    SETTLED = auto()
    """The image has come to the registration."""
    AMONG_OTHERS = auto()
    """Only where the node is not alone: what it holds is what the image gives it."""
    COPYING = auto()
    """It knows what it follows."""
    IN_SERVICE = auto()
    WATCHED = auto()


def begin(parts: Parts, moment: Moment) -> None:
    for when, name, work in _background(parts):
        if when is moment:
            parts.supervisor.start(name, work())


def _background(parts: Parts) -> Iterator[tuple[Moment, str, Work]]:
    yield Moment.OPENING, "errands", parts.errands.run
    if parts.audit is not None:
        yield Moment.OPENING, "audit file", parts.audit.run
    for name, work in parts.disk.works():
        yield Moment.OPENING, name, work
    for name, work in parts.memory.works():
        yield Moment.OPENING, f"{name} in memory", work
    yield Moment.FOLLOWING, "following the metadata", parts.facts.run_following
    for name, work in parts.authorities.works():
        yield Moment.FOLLOWING, name, work  # before a door opens
    may_decide, is_alone = parts.place.seat is not None, parts.config.is_alone
    if may_decide and not is_alone:
        yield Moment.JOINING, "sessions of nodes", parts.registry.run
    yield Moment.REGISTERED, "marks of partitions", parts.partitions.marks.run
    yield Moment.SETTLED, "load", parts.meter.run
    if may_decide:
        yield Moment.SETTLED, "upkeep of the cluster", parts.upkeep.run
        yield Moment.SETTLED, "wish for another node", parts.webhook.run
    membership = parts.membership
    yield Moment.AMONG_OTHERS, "heartbeats", membership.run
    yield Moment.AMONG_OTHERS, "watch on the controller", membership.run_watch
    yield Moment.AMONG_OTHERS, "damaged copies", lambda: parts.wholeness.run(membership.register_again)
    yield Moment.AMONG_OTHERS, "replicas in sync", lambda: parts.partitions.in_sync.run(parts.controller)
    if parts.fetchers is not None:
        yield Moment.COPYING, COPYING, parts.fetchers.run
    yield Moment.IN_SERVICE, "groups", parts.groups.run
    yield Moment.IN_SERVICE, "transactions", parts.transactions.run
    yield Moment.IN_SERVICE, "queues", parts.queues.run
    yield Moment.IN_SERVICE, "logs of queues", parts.erasing.run
    yield Moment.IN_SERVICE, "messages that expire", parts.expiring.run
    yield Moment.IN_SERVICE, "messages in flight", parts.in_flight.run
    yield Moment.IN_SERVICE, "ends of transactions", parts.finisher.run
    if parts.certificates.are_any:
        yield Moment.IN_SERVICE, "certificates", parts.certificates.run
    if parts.place.links is not None:
        yield Moment.IN_SERVICE, "connections to other nodes", parts.place.links.run
    if parts.between is not None and parts.between.watches_files:
        yield Moment.IN_SERVICE, "secrets", parts.between.run
    yield Moment.IN_SERVICE, "housekeeping", parts.housekeeping.run
    for name, work in parts.instruments.works(is_asked=parts.doors.address(HTTP) is not None):
        yield Moment.WATCHED, name, work
    yield Moment.WATCHED, "watch on the cluster", parts.knowledge.run
