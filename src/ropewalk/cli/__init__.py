"""The command line: `ropewalk COMMAND …`, in the manner of rpk and kcat.

Each command is a module with a Typer app of its own, named in `commands.COMMANDS` and imported when it is
called. What is slow to import (the client, the codecs, rich) is imported where it is used, because a command
line that is typed a hundred times a day has to be there at once.

Manners
    Results go to stdout, everything else to stderr. `-o json` prints what a script can read.
    Exit codes: 0 done, 1 failed, 2 called wrongly, 130 interrupted.
    A failure is one line that says what to try next; a reader that goes away (`| head`) is no failure.
"""
