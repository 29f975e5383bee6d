"""`ropewalk cluster upgrade|maintenance|restart-check`: taking a cluster from one version to the next, node by node."""

from typing import TYPE_CHECKING

import typer

from ropewalk.cli.cluster_load import NodeArgument
from ropewalk.cli.commands import new_app
from ropewalk.cli.failure import EXIT_FAILED, Failed, guarded
from ropewalk.cli.options import BootstrapOption, Output, OutputOption, PropertyOption, chosen_output
from ropewalk.cli.output import counted, print_json, print_table

if TYPE_CHECKING:
    from ropewalk.client.calls.client import Client
    from ropewalk.views.upgrade_state import UpgradeState

upgrade_app = new_app("From one version to the next: how far the nodes are, and which level is in force.")
maintenance_app = new_app("Keep a node from leading while somebody works on it.")


@upgrade_app.command("status")
@guarded
def status(
    ctx: typer.Context,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Show the version of every node, the level in force, and what holds the next one back."""
    state = _ask(ctx, bootstrap, properties)
    if chosen_output(ctx, output) is Output.JSON:
        print_json(state)
        return
    print_table(
        ("NODE", "STATE", "VERSION", "LEVELS"),
        [(each.node, each.state, each.version, each.levels) for each in state.nodes],
    )
    print(_said(state))


@upgrade_app.command("finalize")
@guarded
def finalize(
    ctx: typer.Context,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Put the newest level into force that all nodes know; from then on no node can go back to the version before."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.levels import Levels

    before = _ask(ctx, bootstrap, properties)
    if before.held_back:
        raise Failed(f"level {before.newest} cannot come into force yet: {before.held_back[0]}")

    async def work(client: "Client") -> None:
        await Levels(client).finalize()

    with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    after = _ask(ctx, bootstrap, properties)
    if chosen_output(ctx, output) is Output.JSON:
        print_json(after)
    else:
        print(
            f"level {after.level} is in force" + ("" if after.level > before.level else ", as it was before")
        )


@maintenance_app.command("on")
@guarded
def on(
    ctx: typer.Context,
    node: NodeArgument,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Let others lead what the node leads, until maintenance is over; it keeps its copies and stays in sync."""
    _maintain(ctx, node, bootstrap, output, properties, is_on=True)


@maintenance_app.command("off")
@guarded
def off(
    ctx: typer.Context,
    node: NodeArgument,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Let the node lead again what it is the preferred leader of."""
    _maintain(ctx, node, bootstrap, output, properties, is_on=False)


@guarded
def restart_check(
    ctx: typer.Context,
    node: NodeArgument,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Say whether stopping the node now would leave a partition with too few in sync; exit with 1 if it would."""
    from ropewalk.base.ids import NodeId
    from ropewalk.cli.connect import with_client
    from ropewalk.views.cluster_state import collect
    from ropewalk.views.upgrade_state import would_be_below

    state = with_client(ctx, collect, bootstrap=bootstrap, properties=properties)
    if all(known.node_id != node for known in state.membership.nodes):
        raise Failed(f"there is no node {node}")
    below = would_be_below(state, NodeId(node))
    if chosen_output(ctx, output) is Output.JSON:
        print_json(
            {"node": node, "safe": not below and state.is_fresh, "fresh": state.is_fresh, "below": below}
        )
    elif below:
        print(f"stopping node {node} now would leave {counted(len(below), 'partition')} below the minimum")
        for line in below:
            print(f"  {line}")
    elif state.is_fresh:
        print(f"node {node} can be stopped")
    if not state.is_fresh:
        raise Failed("what is known of the cluster is old; `ropewalk cluster health` says more")
    if below:
        raise typer.Exit(EXIT_FAILED)


def _ask(ctx: typer.Context, bootstrap: str | None, properties: list[str] | None) -> "UpgradeState":
    from ropewalk.cli.connect import with_client
    from ropewalk.views.cluster_state import collect
    from ropewalk.views.upgrade_state import upgrade_state

    return upgrade_state(with_client(ctx, collect, bootstrap=bootstrap, properties=properties))


def _said(state: "UpgradeState") -> str:
    return "\n".join((_said_of_level(state), *state.waiting))


def _said_of_level(state: "UpgradeState") -> str:
    in_force = f"level {state.level} is in force"
    if state.newest <= state.level:
        return f"{in_force}, the newest that the nodes know"
    if state.held_back:
        lines = [
            f"{in_force}; level {state.newest} is held back:",
            *(f"  {each}" for each in state.held_back),
        ]
        return "\n".join(lines)
    if state.finalize == "manual":
        return (
            f"{in_force}; all nodes know level {state.newest}, and every node can still go back: "
            "`ropewalk cluster upgrade finalize` ends that"
        )
    return f"{in_force}; all nodes know level {state.newest}, which comes into force in a moment"


def _maintain(
    ctx: typer.Context,
    node: int,
    bootstrap: str | None,
    output: Output | None,
    properties: list[str] | None,
    *,
    is_on: bool,
) -> None:
    from ropewalk.base.ids import NodeId
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.balancing import Balancing

    with_client(
        ctx,
        lambda client: Balancing(client).set_maintenance(NodeId(node), is_on=is_on),
        bootstrap=bootstrap,
        properties=properties,
    )
    if chosen_output(ctx, output) is Output.JSON:
        print_json({"node": node, "maintenance": is_on})
    else:
        print(
            f"node {node} is in maintenance: others lead where they can"
            if is_on
            else f"node {node} leads again"
        )
