"""Where a new password comes from: a file, the environment, or the person at the terminal. Never the command line, which others can read."""

import os
import stat
import sys
from pathlib import Path
from typing import Final

import typer

from ropewalk.cli.failure import Failed

PASSWORD_VARIABLE: Final = "ROPEWALK_NEW_PASSWORD"


def new_password(name: str, path: str | None) -> str:
    """Raises `Failed` where there is none."""
    if path is not None:
        return _checked(_first_line(path), path)
    given = os.environ.get(PASSWORD_VARIABLE)
    if given is not None:
        return _checked(given, f"${PASSWORD_VARIABLE}")
    if not sys.stdin.isatty():
        raise Failed(
            f"nobody is there to ask for the password of {name!r}; give it by --password-file or {PASSWORD_VARIABLE}"
        )
    asked: str = typer.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True)
    return _checked(asked, "what was typed")


def _first_line(path: str) -> str:
    try:
        with Path(path).open(encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077:
                raise Failed(
                    f"{path} can be read by others (mode {mode:04o}); make it yours with chmod 600 {path}"
                )
            return file.readline().rstrip("\r\n")
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Failed(f"{path} is not UTF-8") from None


def _checked(password: str, source: str) -> str:
    if not password:
        raise Failed(f"the password is empty: {source}")
    if not password.isascii() or not password.isprintable():
        # Clients prepare other characters in ways of their own, and then one password is two.
        raise Failed(
            f"the password has characters that clients treat differently, from {source}; use printable ASCII"
        )
    return password
