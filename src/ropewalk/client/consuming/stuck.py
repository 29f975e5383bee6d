"""Partitions that cannot be read on until the application seeks, and what it is told of them.

What a reader could get wrong
    One of them costs the others nothing: its error is raised once, at the call after the one that met it, and after that only where a
    call would return nothing. Whoever goes on polling reads the others.
"""

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import TopicPartition
from ropewalk.client.consuming.assignment import Assignment


class Stuck:
    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._errors: dict[TopicPartition, RopewalkError] = {}
        self._told: set[TopicPartition] = set()

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._errors

    def add(self, partition: TopicPartition, error: RopewalkError) -> None:
        self._errors[partition] = error

    def remove(self, partition: TopicPartition) -> None:
        self._errors.pop(partition, None)
        self._told.discard(partition)

    def tell(self) -> None:
        """Raise what the application has not heard yet, if there is something; of a paused partition nothing is said."""
        for partition, error in self._errors.items():
            held = self._assignment.get(partition)
            if partition not in self._told and held is not None and not held.is_paused:
                self._told.add(partition)
                raise error.with_traceback(None)  # one error, raised often: it would remember every time

    def tell_again(self) -> None:
        """Raise the next of them, whether or not it was heard."""
        if all(partition in self._told for partition in self._errors):
            self._told.clear()
        self.tell()
