"""`ropewalk alerts`: what nodes think should wake somebody, and what nobody wants to hear of for a while."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from ropewalk.cli.commands import new_app
from ropewalk.cli.durations import parse_duration
from ropewalk.cli.failure import Failed, guarded
from ropewalk.cli.options import (
    BootstrapOption,
    Output,
    OutputOption,
    PropertyOption,
    assignments,
    chosen_output,
)
from ropewalk.cli.output import print_json, print_table, warn

if TYPE_CHECKING:
    from ropewalk.alerts.silences import Silence
    from ropewalk.base.errors import RopewalkError
    from ropewalk.base.ids import NodeId
    from ropewalk.client.administration.membership import Alert
    from ropewalk.client.calls.client import Client

app = new_app("Alerts: what nodes think should wake somebody, and silences.")

NameArgument = Annotated[str, typer.Argument(metavar="ALERT", help="The alert's name, as RopewalkLag.")]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where", metavar="LABEL=VALUE", help="Only where a label has this value; may be repeated."
    ),
]


@app.command("ls")
@app.command("list", hidden=True)
@guarded
def list_alerts(
    ctx: typer.Context,
    firing: Annotated[
        bool, typer.Option("--firing", help="Without those that are pending or silenced.")
    ] = False,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """List alerts, as every node sees its own and the controller the cluster's: what fires first."""
    from ropewalk.cli.connect import with_client
    from ropewalk.views.standing_alerts import state_of

    found, silent = with_client(ctx, _ask, bootstrap=bootstrap, properties=properties)
    for node_id, error in silent.items():
        warn(f"node {node_id} was not heard, so its alerts are missing: {error}")
    if firing:
        found = [each for each in found if state_of(each[1]) == "firing"]
    if chosen_output(ctx, output) is Output.JSON:
        print_json([{"node": node_id, **_document(alert)} for node_id, alert in found])
        return
    now_ms = time.time() * 1000
    print_table(
        ("ALERT", "SEVERITY", "STATE", "FOR", "NODE", "SUMMARY"),
        [
            (
                alert.name,
                alert.severity,
                state_of(alert),
                _spell(now_ms - alert.since_ms),
                node_id,
                alert.summary,
            )
            for node_id, alert in found
        ],
    )


@app.command("silence")
@guarded
def silence(
    ctx: typer.Context,
    name: NameArgument,
    how_long: Annotated[str, typer.Option("--for", metavar="TIME", help="As 2h or 30m, at most 30 days.")],
    where: WhereOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Tell nobody of an alert for a time. It is shown all the same; if it still fires then, somebody is told."""
    from ropewalk.cli.connect import with_client
    from ropewalk.views.standing_alerts import NotSilenced, add_silence, make_silence

    now_ms = int(time.time() * 1000)
    labels = assignments(where or [], "LABEL=VALUE")
    duration_ms = parse_duration(how_long, option="--for")
    try:
        wanted = make_silence(name, labels, duration_ms, now_ms=now_ms)
    except NotSilenced as error:
        raise typer.BadParameter(str(error), param_hint="ALERT --for") from None

    async def work(client: "Client") -> None:
        try:
            await add_silence(client, wanted, now_ms=now_ms)
        except NotSilenced as error:
            raise Failed(f"{error} with `ropewalk alerts unsilence`") from None

    with_client(ctx, work, bootstrap=bootstrap, properties=properties)
    _show([wanted], chosen_output(ctx, output))


@app.command("unsilence")
@guarded
def unsilence(
    ctx: typer.Context,
    name: NameArgument,
    where: WhereOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """Take silences of an alert away: all of them, or those with just these labels."""
    from ropewalk.cli.connect import with_client
    from ropewalk.views.standing_alerts import alter_silences, silences

    labels = tuple(sorted(assignments(where or [], "LABEL=VALUE").items()))

    async def work(client: "Client") -> "list[Silence]":
        there = await silences(client)
        found = [each for each in there if each.rule == name and (not where or each.where == labels)]
        if not found:
            raise Failed(f"there is no silence of {name}; `ropewalk alerts silences` shows those there are")
        await alter_silences(client, removed=found)
        return found

    _show(with_client(ctx, work, bootstrap=bootstrap, properties=properties), chosen_output(ctx, output))


@app.command("silences")
@guarded
def list_silences(
    ctx: typer.Context,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
    properties: PropertyOption = None,
) -> None:
    """List silences that are not over."""
    from ropewalk.cli.connect import with_client
    from ropewalk.views.standing_alerts import silences

    found = with_client(ctx, silences, bootstrap=bootstrap, properties=properties)
    now_ms = time.time() * 1000
    _show([each for each in found if each.until_ms > now_ms], chosen_output(ctx, output))


async def _ask(
    client: "Client",
) -> "tuple[list[tuple[NodeId, Alert]], dict[NodeId, RopewalkError]]":
    from ropewalk.client.administration.membership import Membership
    from ropewalk.views.asking import ask_everyone
    from ropewalk.views.standing_alerts import alerts_in

    answers = await ask_everyone(client)
    silent = {
        node_id: answer
        for node_id, answer in sorted(answers.by_node.items())
        if not isinstance(answer, Membership)
    }
    return alerts_in(answers.by_node), silent


def _document(alert: "Alert") -> dict[str, object]:
    from ropewalk.views.standing_alerts import state_of

    return {
        "alert": alert.name,
        "severity": alert.severity,
        "state": state_of(alert),
        "summary": alert.summary,
        "labels": alert.labels,
        "since_ms": alert.since_ms,
        "silenced_until_ms": alert.silenced_until_ms,
    }


def _show(found: "list[Silence]", output: Output) -> None:
    if output is Output.JSON:
        print_json(
            [{"alert": each.rule, "where": dict(each.where), "until_ms": each.until_ms} for each in found]
        )
        return
    now_ms = time.time() * 1000
    rows = [
        (
            each.rule,
            " ".join(f"{label}={value}" for label, value in each.where),
            _spell(each.until_ms - now_ms),
        )
        for each in found
    ]
    print_table(("ALERT", "WHERE", "FOR ANOTHER"), rows)


def _spell(duration_ms: float) -> str:
    seconds = max(0, round(duration_ms / 1000))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
