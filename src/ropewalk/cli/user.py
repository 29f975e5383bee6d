"""`ropewalk user`: who can log in, and by which password."""

import os
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from ropewalk.cli import access_keys
from ropewalk.cli.asking_first import YesOption, ask_for_name
from ropewalk.cli.commands import new_app
from ropewalk.cli.failure import Failed, guarded
from ropewalk.cli.node_options import ConfigOption, DataOption, NodeIdOption, SetOption
from ropewalk.cli.options import BootstrapOption, Output, OutputOption, PropertyOption, chosen_output
from ropewalk.cli.output import print_json, print_table, visible
from ropewalk.cli.passwords import PASSWORD_VARIABLE, new_password

if TYPE_CHECKING:
    from ropewalk.client.administration.users import User, Users
    from ropewalk.client.calls.client import Client

app = new_app("Users: who can log in, by which mechanisms, and with which password.")
app.add_typer(access_keys.app, name="key")


class MechanismName(Enum):
    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The user.")]
PasswordFileOption = Annotated[
    str | None,
    typer.Option(
        "--password-file",
        metavar="FILE",
        help=f"The password is the first line of this file, which nobody else may read. Else ${PASSWORD_VARIABLE}, else it is asked for.",
    ),
]


@app.command("ls")
@app.command("list", hidden=True)
@guarded
def list_users(
    ctx: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="Without any: all.")] = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """List users, with the mechanisms by which they can log in."""
    from ropewalk.cli.connect import with_client

    async def work(client: "Client") -> "list[User]":
        return await _users(client).find(names or ())

    found = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    _show(found, chosen_output(ctx, output))


@app.command("add")
@guarded
def add_user(
    ctx: typer.Context,
    name: NameArgument,
    mechanism: Annotated[
        list[MechanismName] | None,
        typer.Option(
            "--mechanism", "-m", help="How it can log in, as often as needed. [default: SCRAM-SHA-512]"
        ),
    ] = None,
    password_file: PasswordFileOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Add a user. The password is asked for, or comes from a file or the environment. Clients that know PLAIN alone can log in as well."""
    from ropewalk.cli.connect import with_client
    from ropewalk.security.scram import BY_NAME

    wanted = [BY_NAME[each.value] for each in dict.fromkeys(mechanism or [MechanismName.SHA_512])]
    password = new_password(name, password_file)

    async def work(client: "Client") -> "list[User]":
        users = _users(client)
        if await users.find([name]):
            raise Failed(f"there is a user {name!r} already; `ropewalk user passwd` sets another password")
        for each in wanted:
            await users.set_password(name, password, each)
        return await users.find([name])

    found = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    _show(found, chosen_output(ctx, output))


@app.command("passwd")
@guarded
def change_password(
    ctx: typer.Context,
    name: NameArgument,
    password_file: PasswordFileOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Set another password, for every mechanism that the user has. Its connections end."""
    from ropewalk.cli.connect import with_client

    password = new_password(name, password_file)

    async def work(client: "Client") -> "list[User]":
        users = _users(client)
        for each in (await _the_user(client, name)).iterations:
            await users.set_password(name, password, each)
        return await users.find([name])

    found = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    _show(found, chosen_output(ctx, output))


@app.command("bootstrap", epilog="Example: ropewalk user bootstrap admin --config node.toml")
@guarded
def bootstrap_user(
    ctx: typer.Context,
    name: NameArgument,
    mechanism: Annotated[
        MechanismName, typer.Option("--mechanism", "-m", help="How it can log in.")
    ] = MechanismName.SHA_512,
    password_file: PasswordFileOption = None,
    config: ConfigOption = None,
    node_id: NodeIdOption = None,
    data: DataOption = None,
    settings: SetOption = None,
    output: OutputOption = None,
) -> None:
    """Set a user's password in the directory of a node that is stopped: the first user's, or when nobody can log in.

    The configuration says where the directory is. With metadata in etcd, stop every node first.
    """
    from ropewalk.node.config import load
    from ropewalk.node.first_user import set_password
    from ropewalk.node.options import NodeOptions
    from ropewalk.runtime.loop import run
    from ropewalk.runtime.ports import on_disk
    from ropewalk.security.scram import BY_NAME

    form = chosen_output(ctx, output)
    password = new_password(name, password_file)
    options = NodeOptions(config=config, node_id=node_id, data=data, settings=tuple(settings or ()))
    loaded = load(options, os.environ)
    run(set_password(loaded, on_disk(loaded.data_path), name, BY_NAME[mechanism.value], password))
    if form is Output.JSON:
        print_json({"user": name, "mechanism": mechanism.value})
    else:
        print(f"{visible(name)} can log in by {mechanism.value} once the node has started.")


@app.command("rm")
@guarded
def remove_user(
    ctx: typer.Context,
    name: NameArgument,
    yes: YesOption = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Remove a user. Its connections end."""
    from ropewalk.cli.connect import with_client

    ask_for_name("The user cannot log in any more, and its connections end", [name], yes=yes, noun="user")

    async def work(client: "Client") -> "list[User]":
        user = await _the_user(client, name)
        for each in user.iterations:
            await _users(client).remove(name, each)
        return [user]

    found = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    _show(found, chosen_output(ctx, output))


@app.command(
    "token",
    epilog="Examples: ropewalk user token ingest --lifetime 12h > token; eval $(ropewalk user token worker --for-sqs)",
)
@guarded
def issue_token(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="The user; without one, whoever is logged in.")
    ] = "",
    lifetime: Annotated[
        str | None,
        typer.Option("--lifetime", metavar="TIME", help="Until it ends: 30m, 12h, 7d at most. [default: 1h]"),
    ] = None,
    for_sqs: Annotated[
        bool,
        typer.Option(
            "--for-sqs",
            help="A session token with an access key, for the SQS API and nothing else, as variables that AWS's tools read.",
        ),
    ] = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Issue a token, with which the user logs in by OAUTHBEARER until the token ends or the user's password is changed or removed."""
    from ropewalk.cli.connect import with_client
    from ropewalk.cli.durations import parse_duration
    from ropewalk.client.administration.tokens import Token, Tokens

    lifetime_ms = None if lifetime is None else parse_duration(lifetime, option="--lifetime")

    async def work(client: "Client") -> "Token":
        return await Tokens(client).issue(name, lifetime_ms=lifetime_ms, is_session=for_sqs)

    issued = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    if chosen_output(ctx, output) is Output.JSON:
        told = {
            "user": issued.user,
            "token": issued.token,
            "issued_at_ms": issued.issued_at_ms,
            "ends_at_ms": issued.ends_at_ms,
        }
        print_json({**told, "access_key": issued.access_key, "secret": issued.secret} if for_sqs else told)
    elif for_sqs:
        print(f"export AWS_ACCESS_KEY_ID={issued.access_key}")
        print(f"export AWS_SECRET_ACCESS_KEY={issued.secret}")
        print(f"export AWS_SESSION_TOKEN={issued.token}")
    else:
        print(issued.token)


@app.command("replace-token-key")
@guarded
def replace_token_key(
    ctx: typer.Context,
    known_to_others: Annotated[
        bool,
        typer.Option(
            "--known-to-others",
            help="Somebody has a key who should not: no token that there is counts any more.",
        ),
    ] = False,
    yes: YesOption = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Have another key sign tokens from here on. Those that there are count until they end."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.tokens import Tokens

    if known_to_others:
        ask_for_name("No token that there is counts any more", ["tokens"], yes=yes, noun="token")

    async def work(client: "Client") -> str:
        return await Tokens(client).replace_key(is_known_to_others=known_to_others)

    key_id = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    if chosen_output(ctx, output) is Output.JSON:
        print_json({"key_id": key_id})
    else:
        print(f"Key {key_id} signs tokens from here on.")


def _users(client: "Client") -> "Users":
    from random import SystemRandom

    from ropewalk.client.administration.users import Users

    return Users(client, SystemRandom())


async def _the_user(client: "Client", name: str) -> "User":
    found = await _users(client).find([name])
    if not found:
        raise Failed(f"there is no user {name!r}; `ropewalk user ls` shows who is there")
    return found[0]


def _show(found: "list[User]", output: Output) -> None:
    if output is Output.JSON:
        print_json(
            [
                {
                    "user": user.name,
                    "mechanisms": {each.sasl_name: count for each, count in user.iterations.items()},
                }
                for user in found
            ]
        )
        return
    rows = [
        (user.name, mechanism.sasl_name, str(count))
        for user in found
        for mechanism, count in user.iterations.items()
    ]
    print_table(("USER", "MECHANISM", "ITERATIONS"), rows)
