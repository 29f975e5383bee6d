"""The sentence in which somebody said what is wrong, out of everything that Spark wraps around it.

What a reader could get wrong
    What a task or a function of a batch raised arrives as text: a Python traceback inside a Java exception inside a Python exception, the
    innermost last. Words of our own are made to be read and win over everything else.
    Where nobody has said anything that can be made out, the text is handed on as it came, its first line first.
"""

import re
from typing import Final

from ropewalk.spark.store_words import said_by_store

_RAISED: Final = re.compile(r"^((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*): (.+)$", re.MULTILINE)
"""The last line of a Python traceback. Its other lines are indented; what follows in the same message may be, too."""
_JAVA: Final = re.compile(r"^(?:: |Caused by: )((?:[\w$]+\.)+[\w$]+): (.+)$", re.MULTILINE)
_OURS: Final = "ropewalk."
_WRAPPER: Final = re.compile(r"^(?:\[STREAM_FAILED\].*?terminated with exception: )?(?:\[[A-Z_.]+\] )?")
_SQLSTATE: Final = re.compile(r"\s*(?:\.)?\s*SQLSTATE: \w+.*$", re.DOTALL)
_SLOW_WORKER: Final = "Python worker failed to connect back"
_MASK: Final = (
    "UnboundLocalError",
    "cannot access local variable 'reader' where it is not associated with a value",
)
"""What Spark's own source runner raises over whatever kept it from making a reader; that stands before it."""
_OBVIOUS: Final = ("Error", "Exception", "RuntimeError", "ValueError")
"""Kinds that say nothing that their text does not."""


def cause_of(text: str) -> str:
    """One sentence or two, without stacks, plans and codes."""
    raised = [
        (match[1], match[2])
        for match in _RAISED.finditer(text)
        if _is_kind(match[1]) and not match[2].startswith("An exception was thrown from the Python worker")
    ]
    stored = said_by_store(text)
    if stored is not None:
        return stored
    ours = [words for kind, words in raised if kind.startswith(_OURS)]
    if ours:
        return _plain(ours[0])
    if _MASK in raised:
        raised = [each for each in raised if each != _MASK]
        if not raised:
            return "the source's reader was stopped while Spark was making it. Nothing is lost; start the job again"
    if raised and "Traceback (most recent call last)" in text:
        kind, words = raised[-1]
        return _told(kind, words)
    if _SLOW_WORKER in text:
        return (
            "a Python worker of Spark did not start within ten seconds, which Spark does not wait for longer: the machine has too much to do."
            " Nothing is lost; start the job again"
        )
    java = [(match[1], match[2]) for match in _JAVA.finditer(text)]
    if java:
        kind, words = java[-1]
        return _told(kind, words)
    return _plain(text.strip().splitlines()[0] if text.strip() else "it said nothing")


def _told(kind: str, words: str) -> str:
    name = kind.rpartition(".")[2]
    plain = _plain(words)
    return plain if name in _OBVIOUS or plain != words else f"{name}: {plain}"


def _plain(words: str) -> str:
    return _SQLSTATE.sub("", _WRAPPER.sub("", words)).strip()


def _is_kind(name: str) -> bool:
    """Whether it looks like the name of an exception and not like a word before a colon."""
    last = name.rpartition(".")[2]
    return "." in name or last.endswith(("Error", "Exception", "Interrupt", "Exit", "Warning"))
