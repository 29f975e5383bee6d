"""`ropewalk user key`: access keys for the SQS API in a file of `sqs.credentials`, whose secrets follow from a credential key and are kept nowhere.

What a reader could get wrong
    These work on files, and ask no node. Nodes look at the files every few seconds, each at its own: they have to be brought to all of them.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ropewalk.cli.asking_first import YesOption, ask_for_name
from ropewalk.cli.commands import new_app
from ropewalk.cli.failure import Failed, guarded
from ropewalk.cli.options import Output, OutputOption, chosen_output
from ropewalk.cli.output import print_json, print_table

app = new_app("Access keys for the SQS API, in a file of sqs.credentials.")

CredentialsOption = Annotated[
    str,
    typer.Option("--credentials", metavar="FILE", help="The file that sqs.credentials names."),
]


@app.command(
    "add",
    epilog="Example: ropewalk user key add worker --credentials keys.toml --credential-key credential.key",
)
@guarded
def add_key(
    ctx: typer.Context,
    user: Annotated[str, typer.Argument(metavar="USER", help="Whose key it is.")],
    credentials: CredentialsOption,
    credential_key: Annotated[
        str,
        typer.Option(
            "--credential-key",
            metavar="FILE",
            help="The file that sqs.credential.key.file names; it is made where there is none.",
        ),
    ],
    output: OutputOption = None,
) -> None:
    """Make an access key. Its secret is shown once, and follows from the first key of the credential key file."""
    from secrets import token_bytes

    from ropewalk.security.derived_keys import (
        ACCESS_KEY_RANDOM_BYTES,
        new_access_key,
        parse_credential_keys,
        secret_of,
    )
    from ropewalk.security.names import refusal_of

    reason = refusal_of(user)
    if reason is not None:
        raise Failed(reason)
    keys = parse_credential_keys(_credential_keys(Path(credential_key)), credential_key)
    access_key = new_access_key(token_bytes(ACCESS_KEY_RANDOM_BYTES))
    path = Path(credentials)
    before = _read(path) if path.exists() else ""
    _entries(before, credentials)
    name = user.replace("\\", "\\\\").replace('"', '\\"')
    entry = f'[{access_key}]\nuser = "{name}"\nderived_from = "{keys[0].name}"\n'
    _replace(path, f"{before.rstrip()}\n\n{entry}".lstrip())
    secret = secret_of(keys[0], access_key)
    if chosen_output(ctx, output) is Output.JSON:
        print_json({"user": user, "access_key": access_key, "secret": secret})
    else:
        print(f"export AWS_ACCESS_KEY_ID={access_key}\nexport AWS_SECRET_ACCESS_KEY={secret}")


@app.command("ls")
@guarded
def list_keys(ctx: typer.Context, credentials: CredentialsOption, output: OutputOption = None) -> None:
    """List access keys: whose they are, and from which credential key they are derived."""
    found = [
        {
            "access_key": access_key,
            "user": str(entry.get("user", "")) or access_key,
            "derived_from": str(entry.get("derived_from", "")),
        }
        for access_key, entry in _entries(_read(Path(credentials)), credentials).items()
    ]
    if chosen_output(ctx, output) is Output.JSON:
        print_json(found)
    else:
        rows = [(each["access_key"], each["user"], each["derived_from"] or "-") for each in found]
        print_table(("ACCESS KEY", "USER", "DERIVED FROM"), rows)


@app.command("rm")
@guarded
def remove_key(
    ctx: typer.Context,
    access_key: Annotated[
        str, typer.Argument(metavar="ACCESS_KEY", help="Its id, as `user key ls` shows it.")
    ],
    credentials: CredentialsOption,
    yes: YesOption = False,
    output: OutputOption = None,
) -> None:
    """Remove an access key. What is signed with it counts no more once nodes have read the file."""
    path = Path(credentials)
    before = _read(path)
    if access_key not in _entries(before, credentials):
        raise Failed(f"{credentials} has no access key {access_key!r:.80}")
    ask_for_name("What is signed with the key counts no more", [access_key], yes=yes, noun="access key")
    left = re.sub(
        rf"^\[{re.escape(access_key)}\][ \t]*(#.*)?\n(?:(?!\[).*\n?)*",
        "",
        before,
        count=1,
        flags=re.MULTILINE,
    )
    if access_key in _entries(left, credentials):
        raise Failed(
            f"{access_key} is not written as a table of its own in {credentials}; take it out by hand"
        )
    _replace(path, left)
    if chosen_output(ctx, output) is Output.JSON:
        print_json({"access_key": access_key})


def _entries(text: str, path: str) -> Mapping[str, Mapping[str, Any]]:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Failed(f"{path} is no TOML: {error}") from None
    return {name: entry if isinstance(entry, dict) else {} for name, entry in table.items()}


def _credential_keys(path: Path) -> str:
    """What the file holds, which is made where it is not there."""
    from base64 import b64encode
    from secrets import token_bytes

    from ropewalk.security.derived_keys import KEY_BYTES_MIN

    if not path.exists():
        _replace(path, b64encode(token_bytes(KEY_BYTES_MIN)).decode() + "\n")
        typer.echo(f"{path} was made: nodes need it as sqs.credential.key.file", err=True)
    return _read(path)


def _read(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o077:
            raise Failed(f"others than its owner may use {path}; run chmod 600 {path}")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Failed(f"{path} is no text") from None


def _replace(path: Path, text: str) -> None:
    """As a whole, and nobody else's to read at any moment."""
    beside = path.with_name(f"{path.name}.new")
    try:
        beside.unlink(missing_ok=True)
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise Failed(f"{path} cannot be written: {error.strerror}") from None
