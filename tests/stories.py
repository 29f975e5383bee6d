"""Scenario files: steps with a blank line between them, each a comment, commands, `----`, and what came of them."""

import re
from collections.abc import Callable, Iterable


def retell(text: str, run: Callable[[list[str]], Iterable[str]]) -> str:
    """The text with what comes of its commands today; `run` is given the words of one."""
    steps = []
    for step in re.split(r"\n\n+", text.strip()):
        lines = step.split("\n----", 1)[0].split("\n")
        commands = [line for line in lines if not line.startswith("#")]
        told = list(lines)
        if commands:
            told.append("----")
            for command in commands:
                told += run(command.split())
        steps.append("\n".join(told))
    return "\n\n".join(steps) + "\n"


def options(words: Iterable[str]) -> dict[str, str]:
    """`name=value`, each."""
    return dict(word.split("=", 1) for word in words if "=" in word)


def numbers(text: str) -> tuple[int, ...]:
    """`1,2,3`; nothing for `-`."""
    return () if text == "-" else tuple(map(int, text.split(",")))
