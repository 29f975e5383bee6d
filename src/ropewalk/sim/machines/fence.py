"""No way out: while a simulated run is on, the real clock, dice, threads and sockets are errors.

A run that consults any of them cannot be repeated. The names in the standard library are replaced for the
length of the run, for the running thread only; `logging` keeps its clock, since it stamps records with it
and nothing decides by them.
"""

import gc
import os
import random
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

_FORBIDDEN: Final[tuple[tuple[object, str, str], ...]] = (
    *((time, name, "real clock") for name in ("time", "time_ns", "monotonic", "monotonic_ns")),
    *((time, name, "real clock") for name in ("perf_counter", "perf_counter_ns", "sleep")),
    *((random, name, "unseeded dice") for name in ("random", "uniform", "randrange", "randint", "choice")),
    *((random, name, "unseeded dice") for name in ("shuffle", "sample", "getrandbits", "randbytes")),
    (os, "urandom", "unseeded dice"),
    (uuid, "uuid4", "unseeded dice"),
    *((os, name, "real disk") for name in ("open", "fsync", "fdatasync")),
    (threading.Thread, "start", "thread"),
    (socket.socket, "__init__", "real socket"),
)


class RealWorldTouched(Exception):
    """Simulated code reached for something that no seed controls."""


@contextmanager
def sealed(report: Callable[[RealWorldTouched], None]) -> Iterator[None]:
    """Everything in the block is deterministic or an error; the error is raised and also given to `report`,
    because the code that reached out may swallow what is raised at it.

    The garbage collector rests meanwhile: when it runs depends on what ran before in this interpreter, and
    finalizers are code.
    """
    owner = threading.get_ident()
    former = [(holder, name, getattr(holder, name)) for holder, name, _ in _FORBIDDEN]
    collecting = gc.isenabled()
    gc.disable()
    for holder, name, what in _FORBIDDEN:
        setattr(holder, name, _refusal(getattr(holder, name), f"{what}: {name}", owner, report))
    try:
        yield
    finally:
        for holder, name, value in former:
            setattr(holder, name, value)
        if collecting:
            gc.enable()


def _refusal(
    real: Callable[..., object], what: str, owner: int, report: Callable[[RealWorldTouched], None]
) -> Callable[..., object]:
    def refuse(*arguments: object, **options: object) -> object:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if threading.get_ident() != owner or caller.startswith("logging"):
            return real(*arguments, **options)
        error = RealWorldTouched(f"{caller} used the {what} inside a simulated run")
        report(error)
        raise error

    return refuse
