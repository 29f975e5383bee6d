"""`ropewalk doctor`: look at this machine and at every node of the cluster, and explain what is wrong or could surprise."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from ropewalk.cli.commands import new_app
from ropewalk.cli.failure import EXIT_FAILED, describe, guarded
from ropewalk.cli.node_options import ConfigOption, DataOption, SetOption
from ropewalk.cli.options import BootstrapOption, Output, OutputOption, chosen_bootstrap, chosen_output
from ropewalk.cli.output import print_json, print_table, visible

if TYPE_CHECKING:
    from ropewalk.views.diagnosis.facts import Facts
    from ropewalk.views.diagnosis.rule import Finding

app = new_app()


@app.command()
@guarded
def doctor(
    ctx: typer.Context,
    offline: Annotated[bool, typer.Option("--offline", help="Look at this machine only.")] = False,
    config: ConfigOption = None,
    data: DataOption = None,
    settings: SetOption = None,
    bootstrap: BootstrapOption = None,
    output: OutputOption = None,
) -> None:
    """Ask this machine and every node, and explain what is wrong: what, why it matters, what to do. Exits with 1 if something is."""
    from msgspec import structs

    from ropewalk.cli.checks import good_news, look_at_machine
    from ropewalk.node.options import NodeOptions
    from ropewalk.views.diagnosis.facts import Facts
    from ropewalk.views.diagnosis.rule import Verdict, findings
    from ropewalk.views.diagnosis.table import RULES

    options = NodeOptions(config=config, data=data, settings=tuple(settings or ()))
    facts = Facts() if offline else _collect(ctx, bootstrap)
    facts = structs.replace(facts, machine=look_at_machine(options, os.environ))
    found = findings(RULES, facts)
    if chosen_output(ctx, output) is Output.JSON:
        print_json([*good_news(facts), *found])
    else:
        rows = [(each.verdict.value, each.check, each.detail) for each in (*good_news(facts), *found)]
        print_table(("VERDICT", "CHECK", "DETAIL"), rows)
        _explain(found)
    if any(each.verdict is Verdict.WRONG for each in found):
        raise typer.Exit(EXIT_FAILED)


def _collect(ctx: typer.Context, bootstrap: str | None) -> "Facts":
    from random import SystemRandom

    from ropewalk.cli.checks import examine
    from ropewalk.cli.connect import addresses_from, client_settings
    from ropewalk.runtime.clock import SystemClock
    from ropewalk.runtime.loop import run
    from ropewalk.runtime.network import TcpNetwork
    from ropewalk.views.diagnosis.collecting import Collector

    addresses = addresses_from(chosen_bootstrap(ctx, bootstrap))
    collector = Collector(
        TcpNetwork(),
        SystemClock(),
        SystemRandom(),
        client_settings(ctx),
        describe=describe,
        examine=examine,
    )
    return run(collector.collect(addresses))


def _explain(found: "list[Finding]") -> None:
    """Each rule once, whatever it was seen at."""
    rules = {each.rule: each for each in found}
    for each in rules.values():
        where = ", ".join(dict.fromkeys(other.check for other in found if other.rule == each.rule))
        print(f"\n{visible(where)} ({each.rule})")
        print(f"  why:  {each.why}")
        print(f"  try:  {each.command}")
        print(f"  read: ropewalk docs {(each.page or '').replace('.md', '')}")
