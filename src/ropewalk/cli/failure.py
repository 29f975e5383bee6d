"""How a command ends when it cannot do what was asked: one line, a next step, an exit code."""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Final, NoReturn, ParamSpec

import typer

from ropewalk.base.errors import RopewalkError

EXIT_FAILED: Final = 1
EXIT_INTERRUPTED: Final = 130

P = ParamSpec("P")


class Failed(RopewalkError):
    """A failure that this command has put into words itself, next step included."""


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Wrap a command so that what goes wrong in a healthy system ends in one line and not in a traceback."""

    @wraps(command)
    def run(*arguments: P.args, **options: P.kwargs) -> None:
        try:
            command(*arguments, **options)
            sys.stdout.flush()
        except RopewalkError as error:
            fail(describe(error))
        except BrokenPipeError:
            # The reader has seen enough. Python would complain once more when it closes stdout at exit.
            _silence_stdout()
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            raise typer.Exit(EXIT_INTERRUPTED) from None

    return run


def fail(text: str) -> NoReturn:
    print(f"ropewalk: {text}", file=sys.stderr)
    raise typer.Exit(EXIT_FAILED)


def describe(error: RopewalkError) -> str:
    """The error on one line, with the next step where one is known."""
    step = _next_step(error)
    text = " ".join(str(error).split())
    return f"{text}; {step}" if step else text


def _next_step(error: RopewalkError) -> str | None:
    # Only the commands that talk to a broker can meet these, and they have imported the client already.
    if "ropewalk.client.errors" not in sys.modules:
        return None
    from ropewalk.client.errors import ApiNotOffered, ConnectionLost, RemoteError, Unreachable

    match error:
        case Unreachable():
            return "start a node with `ropewalk up` or pass --bootstrap"
        case ConnectionLost():
            return "see the node's log, then try again"
        case ApiNotOffered():
            return "this command needs a broker that does"
        case RemoteError():
            return _STEPS.get(error.name)
        case _:
            return None


_STEPS: Final = {
    "UNKNOWN_TOPIC_OR_PARTITION": "`ropewalk topic ls` shows what is there",
    "TOPIC_ALREADY_EXISTS": "--if-not-exists makes that no failure",
    "OFFSET_OUT_OF_RANGE": "`ropewalk topic describe` shows the offsets there are",
    "INVALID_CONFIG": "`ropewalk config describe` lists settings and their values",
    "INVALID_REPLICATION_FACTOR": "pass a smaller --replicas",
    "INVALID_PARTITIONS": "partitions can only be added",
    "MESSAGE_TOO_LARGE": "raise max.message.bytes of the topic, or send smaller records",
    "NOT_ENOUGH_REPLICAS": "`ropewalk topic describe` shows which replicas are in sync",
    "KAFKA_STORAGE_ERROR": "see the node's log and `ropewalk doctor`: the disk may be full or failing",
}


def _silence_stdout() -> None:
    try:
        descriptor = sys.stdout.fileno()
    except OSError:  # not a file: a test's buffer
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
