"""A process that hosts members of groups on one client library, as a test sees it: orders in, events out.

Members live in processes of their own so that one can be killed as a crash would kill it, and so that Java's are
like all the others. A test says what it waits for as a condition over its members; every event wakes it.
"""

import itertools
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Final

from tests.compat.java_tools import class_path_of, java_command, java_is_here

KINDS: Final = ("confluent-kafka", "aiokafka", "kafka-python", "java")

STRATEGIES: Final = {
    "confluent-kafka": ("range", "roundrobin", "cooperative-sticky"),
    "aiokafka": ("range", "roundrobin", "sticky"),
    "kafka-python": ("range", "roundrobin", "sticky"),
    "java": ("range", "roundrobin", "sticky", "cooperative-sticky"),
}
"""What each library can be relied on for. kafka-python 3.0 has a cooperative strategy too, with which it reads records
twice, on Apache Kafka as well."""


def kinds_here() -> tuple[str, ...]:
    """Those that can run on this machine, for tests that try all of them at once."""
    return KINDS if java_is_here() else tuple(kind for kind in KINDS if kind != "java")


PATIENCE_S: Final = 90
"""How long a group may take to agree; the longest honest wait is a session's end, six seconds. Twenty Java clients on a busy machine take more."""

LOOK_AGAIN_S: Final = 0.2

Partition = tuple[str, int]
Position = tuple[str, int, int]

_changed = threading.Condition()
_failures: list[str] = []
"""Of crews that ended when nobody had asked them to."""
_names = itertools.count()


def wait_until(
    condition: Callable[[], bool], what: str | Callable[[], str], *, within_s: float = PATIENCE_S
) -> None:
    """Returns when `condition` holds; it is looked at again whenever any member of any crew says something, and
    every `LOOK_AGAIN_S`: what a broker shows changes without a word from anybody.

    `what` was waited for in vain: words, or how to find them when the time is over.
    """
    deadline_s = time.monotonic() + within_s
    with _changed:
        while not condition():
            assert not _failures, _failures
            _changed.wait(min(LOOK_AGAIN_S, max(0.0, deadline_s - time.monotonic())))
            if time.monotonic() > deadline_s and not condition():
                said = what if isinstance(what, str) else what()
                raise AssertionError(f"not within {within_s} s: {said}")


def tell_of_change() -> None:
    """Whoever waits looks at its condition again."""
    with _changed:
        _changed.notify_all()


class Member:
    """What one member has said so far."""

    def __init__(self, crew: "Crew", name: str) -> None:
        self._crew = crew
        self.name = name
        self.assignment: frozenset[Partition] = frozenset()
        self.received: Counter[Position] = Counter()
        self.revoked: Counter[Partition] = Counter()
        """Every partition it was asked to give back, and how often."""
        self.lost: Counter[Partition] = Counter()
        """Those of them that were others' by then: it could not commit any more what it had read."""
        self.assignment_count = 0
        """How often it was told of an assignment, be it empty."""
        self.commit_count = 0
        self.refusals: list[str] = []
        """Errors where the client could not go on or commit."""
        self.has_left = False
        self._is_asked_to_leave = False

    def __repr__(self) -> str:
        shown = ", ".join(f"{topic}:{partition}" for topic, partition in sorted(self.assignment))
        left = " has left" if self.has_left else ""
        return f"<{self.name} of {self._crew.kind} with [{shown}]{left} {self.refusals or ''}>"

    def leave(self) -> None:
        """Ask it to leave the group and to end; `has_left` says when it has. Asking again changes nothing."""
        if not self._is_asked_to_leave:
            self._crew.order("leave", self.name)
        self._is_asked_to_leave = True

    def commit(self) -> None:
        """Ask it to commit its positions; it answers in `commit_count` or in `refusals`."""
        self._crew.order("commit", self.name)

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self._crew.order("seek", self.name, f"{topic}:{partition}:{offset}")

    def on_event(self, event: str, words: Sequence[str]) -> None:
        match event:
            case "assigned":
                self.assignment |= set(map(_partition, words))
                self.assignment_count += 1
            case "revoked" | "lost":
                self.assignment -= set(map(_partition, words))
                self.revoked.update(map(_partition, words))
                if event == "lost":
                    self.lost.update(map(_partition, words))
            case "read":
                self.received.update(map(_position, words))
            case "committed":
                self.commit_count += 1
            case "refused":
                self.refusals.append(" ".join(words))
            case "left":
                self.assignment = frozenset()
                self.has_left = True
            case _:
                raise AssertionError(f"{self.name} said {event}")


class Crew:
    """One running program with its members. Close it, or crash it."""

    def __init__(self, kind: str, bootstrap: str, log: Path) -> None:
        self.kind = kind
        self._bootstrap = bootstrap
        self._log = log
        self._members: dict[str, Member] = {}
        self._is_ending = False
        if kind == "java":
            command = java_command(class_path_of("GroupMembers"), "GroupMembers")
        else:
            command = [sys.executable, "-m", "tests.compat.group_members", kind]
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders: IO[str] = self._process.stdin
        self._listener = threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True)
        self._listener.start()

    def join(
        self,
        group: str,
        *topics: str,
        pattern: str = "",
        strategy: str = "range",
        instance: str = "",
        protocol: str = "",
        session: str = "",
        commit: str = "revoked",
        bootstrap: str = "",
    ) -> Member:
        """A further member, which subscribes at once; what it is assigned comes later."""
        name = f"member-{next(_names)}"
        options = {
            "bootstrap": bootstrap or self._bootstrap,
            "group": group,
            "topics": ",".join(topics),
            "pattern": pattern,
            "strategy": strategy,
            "instance": instance,
            "protocol": protocol,
            "session": session,
            "commit": commit,
        }
        self._members[name] = Member(self, name)
        self.order("join", name, *(f"{key}={value}" for key, value in options.items() if value))
        return self._members[name]

    def order(self, *words: str) -> None:
        self._orders.write(" ".join(words) + "\n")
        self._orders.flush()

    def crash(self) -> None:
        """What the operating system does to a process that used too much memory."""
        self._is_ending = True
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._listener.join()

    def close(self) -> None:
        """Everyone who has not left leaves; the program must end of itself and without a failure."""
        self._is_ending = True
        self._orders.close()
        try:
            code = self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            places = self._places()
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"{self.kind} does not end:\n{places}") from None
        self._listener.join()
        assert code in (0, -signal.SIGKILL), self._log.read_text()

    def _places(self) -> str:
        """Where its threads are, on Python: what they say comes at once, or not at all."""
        if self.kind != "java":
            self._process.send_signal(signal.SIGUSR1)
        deadline_s = time.monotonic() + 5
        while not (said := self._log.read_text()) and time.monotonic() < deadline_s:
            time.sleep(0.05)
        return said

    def _listen(self, events: Iterable[str]) -> None:
        for line in events:
            name, event, *words = line.split()
            with _changed:
                self._members[name].on_event(event, words)
                _changed.notify_all()
        with _changed:
            if not self._is_ending:
                _failures.append(f"{self.kind}: {self._log.read_text()[-2000:]}")
                _changed.notify_all()


def are_shared(members: Sequence[Member], partitions: Iterable[Partition]) -> bool:
    """Every partition has exactly one owner, and nobody has more than one partition more than another."""
    owned = [partition for member in members for partition in member.assignment]
    counts = [len(member.assignment) for member in members]
    return sorted(owned) == sorted(partitions) and max(counts) - min(counts) <= 1


def wait_until_shared(members: Sequence[Member], partitions: Iterable[Partition]) -> None:
    wanted = sorted(partitions)
    wait_until(lambda: are_shared(members, wanted), lambda: f"{list(members)} share {len(wanted)} partitions")


def wait_until_read(members: Iterable[Member], positions: Iterable[Position]) -> None:
    """Everything has been read by somebody."""
    present = list(members)
    missing = set(positions)

    def is_read() -> bool:
        for member in present:
            missing.difference_update(member.received)
        return not missing

    wait_until(is_read, lambda: f"{len(missing)} records unread by {present}")


def wait_until_left(members: Iterable[Member]) -> None:
    """Asks those who have not been asked yet, and waits for all."""
    present = list(members)
    for member in present:
        member.leave()
    wait_until(lambda: all(member.has_left for member in present), lambda: f"{present} have left")


def received(members: Iterable[Member]) -> Counter[Position]:
    """What all of them have read, and how often."""
    total: Counter[Position] = Counter()
    for member in members:
        total.update(member.received)
    return total


def _partition(word: str) -> Partition:
    topic, partition = word.split(":")
    return topic, int(partition)


def _position(word: str) -> Position:
    topic, partition, offset = word.split(":")
    return topic, int(partition), int(offset)
