"""What keeps a local cluster from running."""

from ropewalk.base.errors import RopewalkError


class ImpossiblePlan(RopewalkError):
    """What was asked for does not fit a cluster of several nodes."""


class DidNotStart(RopewalkError):
    """One of the processes ended before all were ready; what it said last says why."""
