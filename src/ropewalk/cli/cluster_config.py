"""`ropewalk cluster config`: settings of a running cluster, for all of its nodes or for one."""

from typing import TYPE_CHECKING, Annotated

import typer

from ropewalk.cli.commands import new_app
from ropewalk.cli.failure import guarded
from ropewalk.cli.options import (
    BootstrapOption,
    Output,
    OutputOption,
    PropertyOption,
    assignments,
    chosen_output,
)
from ropewalk.cli.outcomes import report
from ropewalk.cli.output import print_json, print_table

if TYPE_CHECKING:
    from ropewalk.client.administration.admin import Setting
    from ropewalk.client.calls.client import Client

app = new_app("Settings of the running cluster, for all nodes or for one.")

NodeOption = Annotated[
    int | None, typer.Option("--node", min=0, help="Of this node alone. [default: of the whole cluster]")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Have it checked, and change nothing.")]


@app.command("show")
@guarded
def show(
    ctx: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="[KEY…]", show_default=False)] = None,
    node: NodeOption = None,
    show_all: Annotated[
        bool, typer.Option("--all", "-a", help="Every setting, not only those that differ from the default.")
    ] = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Show the settings in force, and where each comes from: all brokers, one broker, its file, or the default."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.admin import Admin, ResourceKind, SettingSource

    async def work(client: "Client") -> "list[Setting]":
        chosen = node if node is not None else (await client.metadata()).brokers[0].node_id
        return await Admin(client).describe_settings(ResourceKind.BROKER, str(chosen))

    found = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    if node is None:  # what a node has for itself is not the cluster's
        own = (SettingSource.BROKER, SettingSource.FILE)
        found = [setting for setting in found if names or show_all or setting.source not in own]
    rows = [
        setting
        for setting in found
        if (setting.name in names if names else show_all or not setting.is_default)
    ]
    if chosen_output(ctx, output) is Output.JSON:
        print_json(
            [{"name": row.name, "value": row.value, "source": row.source.name.lower()} for row in rows]
        )
    elif rows:
        print_table(
            ("SETTING", "VALUE", "SOURCE"), [(row.name, row.value, row.source.name.lower()) for row in rows]
        )
    else:
        print("nothing is set; --all shows every setting")


@app.command("set")
@guarded
def set_(
    ctx: typer.Context,
    settings: Annotated[list[str], typer.Argument(metavar="KEY=VALUE…")],
    node: NodeOption = None,
    dry_run: DryRun = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Give settings a value, all of them or none, at once and for good."""
    changes: dict[str, str | None] = {**assignments(settings, "KEY=VALUE")}
    _alter(ctx, changes, "set", node, dry_run, bootstrap, output, properties)


@app.command("unset")
@guarded
def unset(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="KEY…")],
    node: NodeOption = None,
    dry_run: DryRun = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Take settings back to what a node's file or the default says."""
    _alter(ctx, dict.fromkeys(names), "unset", node, dry_run, bootstrap, output, properties)


def _alter(
    ctx: typer.Context,
    changes: dict[str, str | None],
    done: str,
    node: int | None,
    dry_run: bool,
    bootstrap: str | None,
    output: Output | None,
    properties: list[str] | None,
) -> None:
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.admin import Admin, ResourceKind

    async def work(client: "Client") -> None:
        resource = "" if node is None else str(node)
        await Admin(client).alter_settings(ResourceKind.BROKER, resource, changes, validate_only=dry_run)

    with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    status = f"would be {done}" if dry_run else done
    report("setting", dict.fromkeys(changes), dict.fromkeys(changes, status), chosen_output(ctx, output))
