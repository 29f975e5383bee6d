"""What a log may lack without showing it: deletions, and ends of transactions, that compaction has removed after their time.

Whoever copies such a log from the middle is never told of them, and keeps what was deleted. From `end_offset` on nothing is
missing: whoever has everything below it may go on there.

What a reader could get wrong
    Nothing of this is on disk. A log that is opened may lack anything it holds by then, since nobody remembers what earlier
    processes removed. A cut changes nothing: what is appended afterwards is told of anew.
"""


class Erasures:
    __slots__ = ("count", "end_offset")

    def __init__(self, end_offset: int) -> None:
        self.end_offset = end_offset
        self.count = 0
        """How often something was removed since the log was opened."""

    def on_removed(self, end_offset: int) -> None:
        """Compaction has removed deletions, all of them below `end_offset`."""
        self.count += 1
        self.reach(end_offset)

    def reach(self, end_offset: int) -> None:
        """Anything below may be missing: it was copied from a log that may lack it."""
        self.end_offset = max(self.end_offset, end_offset)
