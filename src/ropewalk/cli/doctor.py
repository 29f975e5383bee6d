"""`ropewalk doctor`: look at this machine and the cluster, and say what could surprise."""

import os
from typing import Annotated

import typer

from ropewalk.cli.commands import new_app
from ropewalk.cli.failure import EXIT_FAILED, guarded
from ropewalk.cli.node_options import ConfigOption, DataOption, SetOption
from ropewalk.cli.options import BootstrapOption, Output, OutputOption, chosen_bootstrap, chosen_output
from ropewalk.cli.output import print_json, print_table

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
    """Check connection, versions, limits, disk, clock and settings. Exits with 1 if something is wrong."""
    from ropewalk.cli.checks import Verdict, check_machine
    from ropewalk.node.options import NodeOptions

    options = NodeOptions(config=config, data=data, settings=tuple(settings or ()))
    findings = check_machine(options, os.environ)
    if not offline:
        from ropewalk.cli.cluster_checks import check_cluster
        from ropewalk.cli.connect import addresses_from, client_settings

        addresses = addresses_from(chosen_bootstrap(ctx, bootstrap))
        findings += check_cluster(addresses, client_settings(ctx))
    if chosen_output(ctx, output) is Output.JSON:
        print_json(findings)
    else:
        rows = [(finding.verdict.value, finding.check, finding.detail) for finding in findings]
        print_table(("VERDICT", "CHECK", "DETAIL"), rows)
    if any(finding.verdict is Verdict.WRONG for finding in findings):
        raise typer.Exit(EXIT_FAILED)
