"""How a command ends when it cannot do what was asked: one line, a next step, an exit code.

With `-o json` the line is an object: `error` is Kafka's name for it or ours, `message` says what went wrong, and
`next` what to try, or null.
"""

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, cast

import typer

from ropewalk.base.errors import RopewalkError
from ropewalk.cli.options import Output, chosen_output
from ropewalk.cli.output import visible

EXIT_FAILED: Final = 1
EXIT_INTERRUPTED: Final = 130

P = ParamSpec("P")


class Failed(RopewalkError):
    """A failure that this command has put into words itself, next step included."""


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Wrap a command so that what goes wrong in a healthy system ends in one line and not in a traceback."""

    @wraps(command)
    def run(*arguments: P.args, **options: P.kwargs) -> None:
        # Every command takes its context under this name; Typer's own kind of it is private to Typer.
        ctx = cast("typer.Context", options["ctx"])
        nearer = options.get("output")
        chosen_output(ctx, nearer if isinstance(nearer, Output) else None)
        try:
            command(*arguments, **options)
            sys.stdout.flush()
        except RopewalkError as error:
            print(_told(error, chosen_output(ctx, None)), file=sys.stderr)
            raise typer.Exit(EXIT_FAILED) from None
        except BrokenPipeError:
            # The reader has seen enough. Python would complain once more when it closes stdout at exit.
            _silence_stdout()
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            raise typer.Exit(EXIT_INTERRUPTED) from None

    return run


def describe(error: RopewalkError) -> str:
    """The error on one line, with the next step where one is known."""
    step = _next_step(error)
    text = " ".join(str(error).split())
    return f"{text}; {step}" if step else text


def _told(error: RopewalkError, output: Output) -> str:
    if output is Output.TABLE:
        return f"ropewalk: {visible(describe(error))}"
    import msgspec

    name = getattr(error, "name", type(error).__name__)  # a `RemoteError` has Kafka's name
    told = {"error": name, "message": " ".join(str(error).split()), "next": _next_step(error)}
    return msgspec.json.encode(told).decode()


def _next_step(error: RopewalkError) -> str | None:
    # Only the commands that talk to a broker can meet these, and they have imported the client already.
    if "ropewalk.client.errors" not in sys.modules:
        return None
    from ropewalk.client.errors import (
        ApiNotOffered,
        AuthenticationFailed,
        ConnectionLost,
        RemoteError,
        Unreachable,
    )

    match error:
        case Unreachable() if error.address.startswith("http"):
            return "start a node with `ropewalk up`, or pass --endpoint or --bootstrap"
        case Unreachable():
            return "start a node with `ropewalk up` or pass --bootstrap"
        case AuthenticationFailed():
            return "check sasl_username and the password, in the profile or the environment"
        case ConnectionLost():
            return "see the node's log, then try again"
        case ApiNotOffered():
            return "this command needs a broker that does"
        case RemoteError():
            return _STEPS.get(error.name)
        case _:
            return _STEPS.get(getattr(error, "code", ""))


_STEPS: Final = {
    "UNKNOWN_TOPIC_OR_PARTITION": "`ropewalk topic ls` shows what is there",
    "TOPIC_ALREADY_EXISTS": "--if-not-exists makes that no failure",
    "OFFSET_OUT_OF_RANGE": "`ropewalk topic describe` shows the offsets there are",
    "INVALID_CONFIG": "`ropewalk config describe` lists settings and their values",
    "INVALID_REPLICATION_FACTOR": "pass a smaller --replicas",
    "MESSAGE_TOO_LARGE": "raise max.message.bytes of the topic, or send smaller records",
    "NOT_ENOUGH_REPLICAS": "`ropewalk topic describe` shows which replicas are in sync",
    "GROUP_ID_NOT_FOUND": "`ropewalk group ls` shows what is there",
    "NON_EMPTY_GROUP": "stop its members first; `ropewalk group describe` shows them",
    "UNKNOWN_MEMBER_ID": "the group has members; stop them first",
    "GROUP_SUBSCRIBED_TO_TOPIC": "stop the members that read it first; `ropewalk group describe` shows them",
    "QueueDoesNotExist": "`ropewalk queue ls` shows what is there",
    "QueueNameExists": "`ropewalk queue describe` shows its attributes",
    "KAFKA_STORAGE_ERROR": "see the node's log; a full disk is emptied by `ropewalk topic trim` and `ropewalk topic delete`, or by retention",
}


def _silence_stdout() -> None:
    try:
        descriptor = sys.stdout.fileno()
    except OSError:  # not a file: a test's buffer
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
