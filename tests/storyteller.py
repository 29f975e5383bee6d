"""Reads and tells scenario files about replicated state, whatever kind it is of: a kind brings its words, and a stage to act on.

A file is a list of steps with a blank line between them: a comment, the commands, `----`, what came of them. The first
word of a command is what is done. Some are the same for every kind:

    wait 3000                                        time passes, from one deadline to the next
    crash                                            the core is lost, and another one replays the log
    disconnect a, forget a                           nobody waits for what a asked any more
    settings initial_rebalance_delay_ms=0            from here on, with a crash in between

Every answer has the type that its command promises.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, get_args

import msgspec

from ropewalk.base.errors import RopewalkError
from ropewalk.base.state_machine import Command

C = TypeVar("C", bound=Command[Any])


class Core(Protocol):
    def deadline_ms(self) -> float | None: ...

    def forget(self, token: int) -> None: ...


class Stage(Protocol):
    """A host without a log: it keeps the records in a list."""

    settings: Any
    now_ms: int
    replies: dict[int, Any]

    @property
    def core(self) -> Core: ...

    def wait(self, duration_ms: int) -> None: ...

    def crash(self) -> None: ...


class Storyteller(ABC, Generic[C]):
    def __init__(self, stage: Stage) -> None:
        self._scene = stage
        self.callers: dict[int, str] = {}
        self.told: set[int] = set()
        """Tokens whose answers have been told, or will never come."""
        self._commands: dict[int, C] = {}

    @abstractmethod
    def act(self, verb: str, words: list[str]) -> list[str] | None:
        """Something other than a question. Answers what there is to tell of it, None where it is a question."""

    @abstractmethod
    def question(self, verb: str, words: list[str]) -> tuple[str, C]:
        """Who asks, empty for nobody in particular, and what."""

    @abstractmethod
    def ask(self, command: C) -> int:
        """The token under which it is answered."""

    @abstractmethod
    def new_events(self) -> Iterator[str]:
        """Those that were recorded since the last time."""

    @abstractmethod
    def answer(self, caller: str, answer: Any) -> str:
        """In the words of the kind."""

    def check(self) -> None:
        """After every step."""

    def shortened(self, line: str) -> str:
        return line

    def retell(self, path: Path) -> str:
        """The file with what comes of its commands today."""
        steps = []
        for step in re.split(r"\n\n+", path.read_text().strip()):
            lines = step.split("\n----", 1)[0].split("\n")
            told = list(lines)
            commands = [line for line in lines if not line.startswith("#")]
            if commands:
                told.append("----")
                for line in commands:
                    told += self._run(line.split())
                self.check()
            steps.append("\n".join(told))
        return "\n\n".join(steps) + "\n"

    def news(self) -> list[str]:
        lines = [f"  + {event}" for event in self.new_events()]
        for token, answer in self._scene.replies.items():
            if token not in self.told:
                self.told.add(token)
                caller = self.callers.get(token, "")
                if token in self._commands:
                    check_type(self._commands[token], answer)
                words = self.answer(caller, answer)
                lines.append(f"{caller} < {words}" if caller else words)
        return [self.shortened(line) for line in lines]

    def _run(self, words: list[str]) -> list[str]:
        verb, *rest = words
        match verb:
            case "settings":
                changes = {key: _value(text) for key, text in (word.split("=") for word in rest)}
                self._scene.settings = msgspec.structs.replace(self._scene.settings, **changes)
                self._scene.crash()
            case "wait":
                return self._wait(int(rest[0]))
            case "crash":
                self._scene.crash()
                self.told |= self.callers.keys()
            case "disconnect" | "forget":
                for token in [token for token in self._waiting() if self.callers[token] == rest[0]]:
                    self._scene.core.forget(token)
                    self.told.add(token)
            case _:
                acted = self.act(verb, rest)
                if acted is None:
                    return self._ask(verb, rest)
                return acted
        return self.news() or ["ok"]

    def _ask(self, verb: str, words: list[str]) -> list[str]:
        caller, command = self.question(verb, words)
        token = self.ask(command)
        self.callers[token], self._commands[token] = caller, command
        news = self.news()
        return [*news, f"{caller} waits".strip()] if token in self._waiting() else news

    def _wait(self, duration_ms: int) -> list[str]:
        """Time passes from deadline to deadline, so that the story says when things happened."""
        stage, lines, end_ms = self._scene, [], self._scene.now_ms + duration_ms
        while (due_ms := stage.core.deadline_ms()) is not None and due_ms <= end_ms:
            stage.wait(int(due_ms) - stage.now_ms)
            news = self.news()
            lines += [f"at {stage.now_ms}", *news] if news else []
        stage.wait(end_ms - stage.now_ms)
        return lines or ["ok"]

    def _waiting(self) -> list[int]:
        return [token for token in self.callers if token not in self.told | self._scene.replies.keys()]


def check_type(command: Command[Any], answer: object) -> None:
    """A command says what it is answered with (`Command[T]`); nothing else in the code looks."""
    (promised,) = get_args(type(command).__orig_bases__[0])  # type: ignore[attr-defined]  # as types do that are generic
    assert isinstance(answer, promised | RopewalkError), f"{command} was answered with {answer}"


def listed(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _value(text: str) -> int | str:
    return int(text) if text.isdigit() else text
