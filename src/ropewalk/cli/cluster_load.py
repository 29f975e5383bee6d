"""`ropewalk cluster balance|add|remove|hot`: who carries how much, and how nodes take their share or give it up."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ropewalk.cli.failure import Failed, guarded
from ropewalk.cli.options import BootstrapOption, Output, OutputOption, PropertyOption, chosen_output
from ropewalk.cli.output import counted, note, print_json, print_table, warn

if TYPE_CHECKING:
    from ropewalk.cli.hot_keys import SampledKey
    from ropewalk.client.administration.balancing import Plan, Removal
    from ropewalk.client.calls.client import Client

_ASK_EVERY_S: Final = 1.0

NodeArgument = Annotated[int, typer.Argument(metavar="NODE", min=0, help="The number of the node.")]
WaitOption = Annotated[
    bool,
    typer.Option("--wait", help="Return when it is done, however long that takes, not when it has begun."),
]


@guarded
def balance(
    ctx: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be moved.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before something is moved.")] = False,
    wait: WaitOption = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Even out what the nodes carry: show the plan, ask, then move leaders and replicas."""
    from ropewalk.cli.connect import with_client
    from ropewalk.client.administration.balancing import Balancing

    plan = with_client(
        ctx,
        lambda client: Balancing(client).balance(validate_only=True),
        bootstrap=bootstrap,
        properties=properties,
    )
    chosen = chosen_output(ctx, output)
    goes_on = not dry_run and bool(plan.changes)
    if chosen is Output.TABLE:
        _show_plan(plan)
    if goes_on and not yes:
        if not sys.stdin.isatty():
            raise Failed(
                "nothing was moved; --yes moves without being asked, --dry-run says that this was meant"
            )
        typer.confirm("Go on?", abort=True, err=True)
    if goes_on:
        plan = with_client(
            ctx, lambda client: _balance(client, wait=wait), bootstrap=bootstrap, properties=properties
        )
    if chosen is Output.JSON:
        print_json({"carried_out": goes_on, "changes": plan.changes, "shares": plan.shares})
    elif goes_on:
        note("done" if wait else "begun; `ropewalk cluster reassign` shows what is under way")


@guarded
def add(
    ctx: typer.Context,
    node: NodeArgument,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Wait for a node to join, then give it its share of what the others carry."""
    from ropewalk.cli.connect import with_client

    plan = with_client(ctx, lambda client: _add(client, node), bootstrap=bootstrap, properties=properties)
    if chosen_output(ctx, output) is Output.JSON:
        print_json({"node": node, "status": "added", "shares": plan.shares})
    else:
        _show_shares(plan)


@guarded
def remove(
    ctx: typer.Context,
    node: NodeArgument,
    wait: WaitOption = False,
    begin: Annotated[
        bool, typer.Option("--begin", help="Return at once; the cluster goes on by itself.")
    ] = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Let the node stay. What has been moved stays where it is.")
    ] = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Move everything off a node, and once it has stopped, forget it."""
    from ropewalk.cli.connect import with_client

    if wait + begin + cancel > 1:
        raise typer.BadParameter("give one of them", param_hint="--wait, --begin or --cancel")
    if cancel:
        with_client(ctx, lambda client: _keep(client, node), bootstrap=bootstrap, properties=properties)
        if chosen_output(ctx, output) is Output.JSON:
            print_json({"node": node, "status": "kept"})
        else:
            print(f"node {node} stays")
        return
    removal = with_client(
        ctx,
        lambda client: _remove(client, node, wait=wait, begin=begin),
        bootstrap=bootstrap,
        properties=properties,
    )
    if chosen_output(ctx, output) is Output.JSON:
        print_json({"node": node, "status": removal.stage, "partitions": removal.held_count})
    elif removal.stage == "drained":
        print(f"node {node} holds nothing any more; stop its process, and it will be forgotten")
    elif removal.stage == "draining":
        print(f"node {node} still holds {counted(removal.held_count, 'partition')}; they are being moved")
    else:
        print(f"node {node} {removal.stage}")


@guarded
def hot(
    ctx: typer.Context,
    keys: Annotated[
        int, typer.Option("--keys", min=0, help="How many keys of each busy partition to show.")
    ] = 3,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Show the partitions that carry most, the keys that are written most often, and whether another node is wanted."""
    from ropewalk.cli.connect import with_client
    from ropewalk.cli.hot_keys import sample
    from ropewalk.client.administration.balancing import Balancing

    async def work(client: "Client") -> "tuple[Plan, dict[tuple[str, int], list[SampledKey]]]":
        plan = await Balancing(client).balance(validate_only=True)
        busy = [(each.topic, each.partition) for each in plan.busiest if each.leader is not None]
        return plan, await sample(client, busy, keys) if keys else {}

    plan, sampled = with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    if chosen_output(ctx, output) is Output.JSON:
        print_json(
            {
                "partitions": [
                    {
                        "topic": each.topic,
                        "partition": each.partition,
                        "leader": each.leader,
                        "bytes_in": each.bytes_in,
                        "bytes_out": each.bytes_out,
                        "share": each.share,
                        "keys": sampled.get((each.topic, each.partition), []),
                    }
                    for each in plan.busiest
                ],
                "nodes_wanted": plan.nodes_wanted,
            }
        )
        return
    rows = [
        (
            each.topic,
            each.partition,
            each.leader,
            each.bytes_in,
            each.bytes_out,
            f"{each.share:.1%}",
            ", ".join(f"{key.key} {key.share:.0%}" for key in sampled.get((each.topic, each.partition), [])),
        )
        for each in plan.busiest
    ]
    if rows:
        print_table(("TOPIC", "PARTITION", "LEADER", "IN B/S", "OUT B/S", "SHARE", "KEYS"), rows)
    else:
        print("nothing is hot: no partition was written or read in the last minute")
    for reason in plan.nodes_wanted:
        warn(f"another node is wanted: {reason}")


async def _balance(client: "Client", *, wait: bool) -> "Plan":
    """One step, or as many as there are; the last plan that changed something."""
    from ropewalk.client.administration.balancing import Balancing
    from ropewalk.client.administration.leadership import Leadership

    plan = await Balancing(client).balance(validate_only=False)
    while wait:
        if await Leadership(client).moves():
            await asyncio.sleep(_ASK_EVERY_S)
            continue
        following = await Balancing(client).balance(validate_only=False)
        if not following.changes:
            return plan
        plan = following
    return plan


async def _add(client: "Client", node: int) -> "Plan":
    from ropewalk.client.administration.membership import ClusterViewer

    while True:
        membership = await ClusterViewer(client).describe()
        if any(each.node_id == node and each.state == "active" for each in membership.nodes):
            return await _balance(client, wait=True)
        note(f"waiting for node {node}")
        await asyncio.sleep(_ASK_EVERY_S)


async def _keep(client: "Client", node: int) -> None:
    from ropewalk.base.ids import NodeId
    from ropewalk.client.administration.balancing import Balancing

    await Balancing(client).keep(NodeId(node))


async def _remove(client: "Client", node: int, *, wait: bool, begin: bool) -> "Removal":
    """Until it holds nothing; with `wait` until it is forgotten, which it is when its process has stopped."""
    from ropewalk.base.ids import NodeId
    from ropewalk.client.administration.balancing import Balancing

    while True:
        removal = await Balancing(client).remove(NodeId(node))
        if begin or removal.stage == "removed" or (removal.stage == "drained" and not wait):
            return removal
        note(
            f"node {node} holds {removal.held_count} partitions"
            if removal.stage == "draining"
            else f"node {node} holds nothing; waiting for its process to stop"
        )
        await asyncio.sleep(_ASK_EVERY_S)


def _show_plan(plan: "Plan") -> None:
    if not plan.changes:
        print("nothing to move: the load is as even as it gets")
    else:
        print_table(
            ("TOPIC", "PARTITION", "BEFORE", "AFTER", "COPIES"),
            [
                (each.topic, each.partition, each.before, each.after, "yes" if each.copies else "no")
                for each in plan.changes
            ],
        )
        print()
    _show_shares(plan)


def _show_shares(plan: "Plan") -> None:
    rows = [(each.node, f"{each.before:.1%}", f"{each.after:.1%}") for each in plan.shares]
    print_table(("NODE", "CARRIES", "AFTER"), rows)
