"""`ropewalk quota`: list, set and take away the quotas of clients."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from ropewalk.cli.commands import new_app
from ropewalk.cli.failure import Failed, guarded
from ropewalk.cli.options import (
    BootstrapOption,
    Output,
    OutputOption,
    PropertyOption,
    assignments,
    chosen_output,
)
from ropewalk.cli.output import print_json, print_table

if TYPE_CHECKING:
    from ropewalk.client.administration.quotas import Entity, EntityQuotas
    from ropewalk.client.calls.client import Client

app = new_app("Quotas: how fast clients may produce, consume, ask, change the cluster and connect.")

UserOption = Annotated[str | None, typer.Option("--user", metavar="NAME", help="A user.")]
ClientIdOption = Annotated[str | None, typer.Option("--client-id", metavar="ID", help="A client id.")]
IpOption = Annotated[str | None, typer.Option("--ip", metavar="ADDRESS", help="An address.")]
DefaultUserOption = Annotated[
    bool, typer.Option("--default-user", help="Every user who has no quota of their own.")
]
DefaultClientIdOption = Annotated[
    bool, typer.Option("--default-client-id", help="Every client id that has no quota of its own.")
]
DefaultIpOption = Annotated[
    bool, typer.Option("--default-ip", help="Every address that has no quota of its own.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would happen and change nothing.")]

MEANINGS: Final = {
    "producer_byte_rate": "bytes produced per second",
    "consumer_byte_rate": "bytes consumed per second",
    "request_percentage": "percent of the node's time",
    "controller_mutation_rate": "partitions created and deleted per second",
    "connection_creation_rate": "new connections per second",
}


@app.command("ls")
@app.command("list", hidden=True)
@guarded
def list_quotas(
    ctx: typer.Context,
    user: UserOption = None,
    client_id: ClientIdOption = None,
    ip: IpOption = None,
    default_user: DefaultUserOption = False,
    default_client_id: DefaultClientIdOption = False,
    default_ip: DefaultIpOption = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """List quotas: all, or those of entities that have the parts given."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.quotas import Quotas

    parts = _entity((user, client_id, ip), (default_user, default_client_id, default_ip))

    async def work(client: "Client") -> "list[EntityQuotas]":
        return await Quotas(client).find(parts)

    _show(with_client(ctx, work, bootstrap=bootstrap, properties=properties), chosen_output(ctx, output))


@app.command("describe")
@guarded
def describe_quotas(
    ctx: typer.Context,
    user: UserOption = None,
    client_id: ClientIdOption = None,
    ip: IpOption = None,
    default_user: DefaultUserOption = False,
    default_client_id: DefaultClientIdOption = False,
    default_ip: DefaultIpOption = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Show the quotas of just one entity, and what they mean."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.quotas import Quotas

    entity = _named(_entity((user, client_id, ip), (default_user, default_client_id, default_ip)))

    async def work(client: "Client") -> "list[EntityQuotas]":
        return await Quotas(client).find(entity, strict=True)

    found = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    if not found:
        raise Failed(f"there is no quota for {_said(entity)}; `ropewalk quota ls` shows what is there")
    if chosen_output(ctx, output) is Output.JSON:
        print_json([_document(each) for each in found])
    else:
        rows = [
            (name, _number(value), MEANINGS.get(name))
            for each in found
            for name, value in each.quotas.items()
        ]
        print_table(("QUOTA", "VALUE", "MEANING"), rows)


@app.command("set")
@guarded
def set_quotas(
    ctx: typer.Context,
    quotas: Annotated[list[str], typer.Argument(metavar="QUOTA=VALUE…", help=f"Of {', '.join(MEANINGS)}.")],
    user: UserOption = None,
    client_id: ClientIdOption = None,
    ip: IpOption = None,
    default_user: DefaultUserOption = False,
    default_client_id: DefaultClientIdOption = False,
    default_ip: DefaultIpOption = False,
    dry_run: DryRun = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Set quotas of one entity; others that it has stay."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.quotas import EntityQuotas, Quotas

    entity = _named(_entity((user, client_id, ip), (default_user, default_client_id, default_ip)))
    changes = {name: _value(name, text) for name, text in assignments(quotas, "QUOTA=VALUE").items()}

    async def work(client: "Client") -> "list[EntityQuotas]":
        await Quotas(client).alter(entity, dict(changes), validate_only=dry_run)
        return [EntityQuotas(entity, changes)] if dry_run else await Quotas(client).find(entity, strict=True)

    _show(with_client(ctx, work, bootstrap=bootstrap, properties=properties), chosen_output(ctx, output))


@app.command("unset")
@guarded
def unset_quotas(
    ctx: typer.Context,
    quotas: Annotated[
        list[str] | None, typer.Argument(metavar="QUOTA…", help="Without any: all that the entity has.")
    ] = None,
    user: UserOption = None,
    client_id: ClientIdOption = None,
    ip: IpOption = None,
    default_user: DefaultUserOption = False,
    default_client_id: DefaultClientIdOption = False,
    default_ip: DefaultIpOption = False,
    dry_run: DryRun = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Take quotas of one entity away, and show which it had."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.quotas import EntityQuotas, Quotas

    entity = _named(_entity((user, client_id, ip), (default_user, default_client_id, default_ip)))
    unknown = [name for name in quotas or () if name not in MEANINGS]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(MEANINGS)}", param_hint="QUOTA")

    async def work(client: "Client") -> "list[EntityQuotas]":
        had = [
            EntityQuotas(
                each.entity,
                {name: value for name, value in each.quotas.items() if not quotas or name in quotas},
            )
            for each in await Quotas(client).find(entity, strict=True)
        ]
        for each in had:
            await Quotas(client).alter(entity, dict.fromkeys(each.quotas), validate_only=dry_run)
        return [each for each in had if each.quotas]

    _show(with_client(ctx, work, bootstrap=bootstrap, properties=properties), chosen_output(ctx, output))


def _entity(names: tuple[str | None, ...], defaults: tuple[bool, ...]) -> "Entity":
    parts: list[tuple[str, str | None]] = []
    for kind, name, is_default in zip(("user", "client-id", "ip"), names, defaults, strict=True):
        if name is not None and is_default:
            raise typer.BadParameter("give one of them", param_hint=f"--{kind} and --default-{kind}")
        if name is not None or is_default:
            parts.append((kind, name))
    return tuple(parts)


def _named(entity: "Entity") -> "Entity":
    if not entity:
        raise typer.BadParameter("say whose quota it is", param_hint="--user, --client-id, --ip or a default")
    return entity


def _value(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{name} is {text!r}, must be a number", param_hint="QUOTA=VALUE") from None


def _show(found: "list[EntityQuotas]", output: Output) -> None:
    if output is Output.JSON:
        print_json([_document(each) for each in found])
        return
    rows = [
        (_said(each.entity), name, _number(value)) for each in found for name, value in each.quotas.items()
    ]
    print_table(("ENTITY", "QUOTA", "VALUE"), rows)


def _document(each: "EntityQuotas") -> dict[str, object]:
    return {"entity": dict(each.entity), "quotas": each.quotas}


def _said(entity: "Entity") -> str:
    return " ".join(f"default-{kind}" if name is None else f"{kind}={name}" for kind, name in entity)


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)
