"""Whether the copies of a partition are the same, byte by byte, from the first record to the end of the shortest.

Looked up on the platters, where nodes cannot help. For topics whose records are neither expired nor compacted.
"""

from collections.abc import Iterator, Sequence

from ropewalk.sim.checker import Violation
from ropewalk.sim.whole.verdict import Place
from ropewalk.sim.world import Machine


def compare_copies(machines: Sequence[Machine], places: Sequence[Place]) -> Iterator[Violation]:
    for topic, index in places:
        copies = {
            machine.name: content
            for machine in machines
            if (content := _content(machine, topic, index)) is not None
        }
        size_bytes = min((len(content) for content in copies.values()), default=0)
        contents = {content[:size_bytes] for content in copies.values()}
        if len(contents) > 1:
            yield Violation(
                "copies differ", f"{topic}-{index} within {size_bytes} bytes on {', '.join(sorted(copies))}"
            )


def _content(machine: Machine, topic: str, index: int) -> bytes | None:
    """All segments one after the other; None where the machine holds no copy."""
    under = f"/data/{topic}-{index}/"
    segments = [
        bytes(file.data)
        for path, file in machine.platters.files()
        if path.startswith(under) and path.endswith(".log")
    ]
    return b"".join(segments) if segments else None
