"""How a partition of a queue stands, in numbers that cost nothing to ask for."""

from msgspec import Struct


class QueueFigures(Struct, frozen=True):
    in_flight_count: int
    delayed_count: int
    resting_count: int
    """Received in vain, and hidden for a while."""
    dying_count: int
    """Dead letters that wait for their move."""
    moving_count: int
    """Messages on their way to another queue."""
    hole_count: int
    """Settled messages above the floor."""
    waiting_count: int
    """Receives that wait."""
    deduplication_count: int
    unread_count: int
    """Offsets that were never looked at."""
    hidden_group_count: int
    """FIFO: groups that are known and of which nothing can be given out."""
    is_window_full: bool
    """No more of the log is read until something is settled: too many delayed, or groups that are locked."""
