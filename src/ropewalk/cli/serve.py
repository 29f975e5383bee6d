"""`ropewalk serve`: run one node from a configuration file, as a service manager does."""

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


@app.command(epilog="Example: ropewalk serve --config /etc/ropewalk/node.toml")
@guarded
def serve(
    ctx: typer.Context,
    config: ConfigOption = None,
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
    settings: SetOption = None,
    ready_file: ReadyFileOption = None,
    log_level: LogLevelOption = None,
    output: OutputOption = None,
) -> None:
    """Run one node until SIGTERM. Settings: default < file < environment < command line."""
    with lean_import():
        from ropewalk.node.main import run_serve
        from ropewalk.node.options import NodeOptions

    run_serve(
        NodeOptions(
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
            ready_file=ready_file,
            ready_as_json=chosen_output(ctx, output) is Output.JSON,
            config=config,
            settings=tuple(settings or ()),
            log_level=log_level,
        )
    )
