"""What is left behind for those who ask how a job is: one file for each name, and a lock held while it runs.

What a reader could get wrong
    The lock says whether the process lives: it falls with it, however it dies. What the file says counts only together with that.
    The lock is also why of two jobs of one name on a machine the second is refused: they would share a checkpoint, or fence each other off.
"""

import contextlib
import errno
import fcntl
import os
import struct
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from ropewalk.spark.pipelines.progress import Snapshot
from ropewalk.spark.refusals import WrongUse

_FLOCK: Final = "hhqqi4x"
"""Linux's `struct flock`: type, whence, start, length, process."""


class State(Enum):
    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"
    """By a signal, after the batch in hand."""
    ENDED = "ended"
    """A bounded run that has read everything."""
    FAILED = "failed"
    DIED = "died"
    """Without a word: killed, or the machine went down. Never written, only found out."""


class Status(Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    state: State
    pid: int
    started_at: str
    updated_at: str
    once: bool
    bootstrap: str
    checkpoint: str
    log: str | None = None
    """Where Spark's own log is, unless it went to the terminal."""
    error: str | None = None
    progress: Snapshot = Snapshot()
    host: str = ""
    """Where it runs; nothing in what was written before hosts were."""
    heard_at: str = ""
    """When it was last heard by the cluster; nothing in the file of the machine that it runs on, whose lock says whether it lives."""
    pages: str | None = None
    """The address of Spark's own pages, while they are served."""
    last_error: str | None = None
    """What it failed with last, whatever has become of it since."""
    last_error_at: str | None = None


def default_directory(environment: Mapping[str, str]) -> str:
    state = environment.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(state, "ropewalk", "pipelines")


@contextlib.contextmanager
def held(directory: str, name: str) -> Iterator[None]:
    """Makes the directory, and holds the name while this lasts."""
    try:
        os.makedirs(directory, exist_ok=True)
        lock = open(os.path.join(directory, f"{name}.lock"), "w")  # noqa: SIM115  # closed below, with the lock
    except OSError as error:
        raise WrongUse(
            f"{directory} cannot hold the job's status ({error.strerror}); choose another with --state"
        ) from None
    with lock:
        try:
            fcntl.fcntl(lock, fcntl.F_OFD_SETLK, _exclusive())
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            raise WrongUse(
                f"{name} runs on this machine already (`ropewalk pipeline status {name}`);"
                " stop it first, or give this one a name of its own with --name"
            ) from None
        yield


def write_status(directory: str, status: Status) -> None:
    path = os.path.join(directory, f"{status.name}.json")
    beside = f"{path}.writing"
    with open(beside, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(status), indent=2))
    os.replace(beside, path)


def read_statuses(directory: str, name: str | None = None) -> list[Status]:
    """Of all jobs that have run here, or of one."""
    paths = sorted(Path(directory).glob("*.json")) if name is None else [Path(directory, f"{name}.json")]
    found = []
    for path in paths:
        try:
            status = msgspec.json.decode(path.read_bytes(), type=Status)
        except FileNotFoundError:
            continue
        except msgspec.DecodeError as error:
            raise WrongUse(f"{path} is no status of a pipeline ({error}); remove it") from None
        found.append(as_found(status, is_held=_is_held(directory, status.name)))
    return found


def as_found(status: Status, *, is_held: bool) -> Status:
    """With what the lock says: a process that is gone runs no longer, whatever it wrote last."""
    if is_held or status.state not in (State.STARTING, State.RUNNING):
        return status
    return msgspec.structs.replace(status, state=State.DIED)


def _is_held(directory: str, name: str) -> bool:
    """Asked without taking it: whoever looks at a job does not keep it from starting."""
    try:
        with open(os.path.join(directory, f"{name}.lock")) as lock:
            answer = fcntl.fcntl(lock, fcntl.F_OFD_GETLK, _exclusive())
    except FileNotFoundError:
        return False
    return int(struct.unpack(_FLOCK, answer)[0]) != fcntl.F_UNLCK


def _exclusive() -> bytes:
    return struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
