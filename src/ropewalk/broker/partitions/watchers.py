"""Who wants to hear that a partition has more to read, and how they are told."""

from typing import Protocol


class Watcher(Protocol):
    """Somebody who wants to hear when there is more to read, or when what is there has changed.

    None of these may watch or unwatch: the partition is going through its watchers while it calls.
    """

    def on_growth(self, grown_bytes: int) -> None:
        """So many bytes more can be read. It may be fewer, never more."""

    def on_change(self) -> None:
        """The log's start or the leader epoch is another."""

    def on_end(self) -> None:
        """The partition is gone from here; look again."""


class Watchers:
    __slots__ = ("_watchers",)

    def __init__(self) -> None:
        self._watchers: dict[Watcher, None] = {}

    def __len__(self) -> int:
        return len(self._watchers)

    def add(self, watcher: Watcher) -> None:
        self._watchers[watcher] = None

    def remove(self, watcher: Watcher) -> None:
        self._watchers.pop(watcher, None)

    def tell_of_growth(self, grown_bytes: int) -> None:
        for watcher in self._watchers:
            watcher.on_growth(grown_bytes)

    def tell_of_change(self) -> None:
        for watcher in self._watchers:
            watcher.on_change()

    def end(self) -> None:
        """The last thing that any of them hears."""
        for watcher in self._watchers:
            watcher.on_end()
        self._watchers.clear()
