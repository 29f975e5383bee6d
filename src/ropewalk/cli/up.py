"""`ropewalk up`: start a node, or a cluster of them, here and now."""

from typing import Annotated

import typer

from ropewalk.cli.commands import new_app
from ropewalk.cli.failure import guarded
from ropewalk.cli.lean_import import lean_import
from ropewalk.cli.node_options import (
    ConfigOption,
    DataOption,
    HttpOption,
    InsecureOption,
    KafkaOption,
    LogLevelOption,
    MemoryOption,
    NodeIdOption,
    PeerOption,
    RackOption,
    ReadyFileOption,
    RoleOption,
    SeedOption,
    SetOption,
    SqsOption,
)
from ropewalk.cli.options import Output, OutputOption, chosen_output

app = new_app()


@app.command(
    epilog="Settings also come from ROPEWALK_SECTION__KEY; `ropewalk config show --origin` explains them."
)
@guarded
def up(
    ctx: typer.Context,
    kafka: KafkaOption = None,
    http: HttpOption = None,
    sqs: SqsOption = None,
    insecure: InsecureOption = False,
    peer: PeerOption = None,
    seeds: SeedOption = None,
    roles: RoleOption = None,
    node_id: NodeIdOption = None,
    rack: RackOption = None,
    data: DataOption = None,
    memory: MemoryOption = False,
    nodes: Annotated[
        int, typer.Option("--nodes", min=1, help="How many nodes, as processes of their own.")
    ] = 1,
    etcd: Annotated[
        str | None,
        typer.Option(
            "--etcd",
            metavar="URL,…",
            help="With --nodes: keep the metadata in this etcd; auto starts three members.",
        ),
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="With --nodes: start a node again that ends by itself.")
    ] = False,
    settings: SetOption = None,
    config: ConfigOption = None,
    ready_file: ReadyFileOption = None,
    log_level: LogLevelOption = None,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Show a record going in and coming out; take a free port if need be."),
    ] = False,
    output: OutputOption = None,
) -> None:
    """Start a node, or with --nodes a cluster, and serve until Ctrl-C or SIGTERM. Prints one line when it is ready."""
    with lean_import():
        from ropewalk.node.options import NodeOptions

    options = NodeOptions(
        kafka=kafka,
        http=http,
        sqs=sqs,
        insecure=insecure,
        peer=peer,
        seeds=tuple(seeds or ()),
        roles=tuple(roles or ()),
        node_id=node_id,
        rack=rack,
        data=data,
        memory=memory,
        nodes=nodes,
        ready_file=ready_file,
        ready_as_json=chosen_output(ctx, output) is Output.JSON,
        config=config,
        settings=tuple(settings or ()),
        log_level=log_level,
        demo=demo,
    )
    if nodes > 1:
        with lean_import():
            from ropewalk.local.cluster import run_cluster
        run_cluster(options, etcd=etcd, restarts=restart)
    if etcd is not None or restart:
        raise typer.BadParameter("this is for a cluster: give --nodes too", param_hint="--etcd or --restart")
    with lean_import():
        from ropewalk.node.main import run_up
    run_up(options)
