"""Under which name a job writes to topics: its own, or one that no other machine can have.

A name decides whose transactions fence whose, and whose markers are whose. A job that was given one has it wherever it runs, so that it goes on
from another machine. One that is only called by its kind would share it with every other such job on the cluster: it has a name of its own in
each state directory, which is kept there and beside the checkpoint.

What a reader could get wrong
    Where such a job has run before names were kept so, it goes on under its kind's: its markers are there.
"""

import os
from pathlib import Path
from secrets import token_hex

from ropewalk.spark.refusals import WrongUse


def sink_name(directory: str, name: str, *, is_named: bool) -> str:
    """Called by who holds the job's name in that directory, before anything is written there of this run."""
    if is_named:
        return name
    path = Path(directory, f"{name}.sink")
    try:
        return path.read_text()
    except FileNotFoundError:
        pass
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(f"{path} cannot be read: {error}") from None
    has_run = Path(directory, f"{name}.json").exists()
    made = name if has_run else f"{name}-{token_hex(8)}"
    beside = path.with_suffix(".sink.writing")
    beside.write_text(made)
    os.replace(beside, path)
    return made
