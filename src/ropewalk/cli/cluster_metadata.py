"""`ropewalk cluster metadata`: where the facts about a cluster are at home."""

import os
from typing import Annotated

import typer

from ropewalk.cli.commands import new_app
from ropewalk.cli.failure import guarded
from ropewalk.cli.node_options import ConfigOption, DataOption, NodeIdOption, SetOption
from ropewalk.cli.options import Output, OutputOption, chosen_output
from ropewalk.cli.output import print_json

app = new_app("The home of what the cluster knows about itself: a node's directory, or etcd.")


@app.command(
    "move", epilog="Example: ropewalk cluster metadata move --config node.toml --to etcd://10.0.0.5:2379"
)
@guarded
def move(
    ctx: typer.Context,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="HOME",
            help="local, or etcd://HOST:PORT[,HOST:PORT…][/PREFIX/]; etcds:// for TLS.",
        ),
    ],
    back: Annotated[
        bool, typer.Option("--back", help="Take them back from their way there, if they have not arrived.")
    ] = False,
    config: ConfigOption = None,
    node_id: NodeIdOption = None,
    data: DataOption = None,
    settings: SetOption = None,
    output: OutputOption = None,
) -> None:
    """Move the metadata to another home. Stop the node whose directory is one of the two first; all others may run.

    The configuration says where they are. If it is interrupted, the same command goes on.
    """
    from ropewalk.node.config import load
    from ropewalk.node.moving import move_metadata
    from ropewalk.node.options import NodeOptions
    from ropewalk.runtime.loop import run
    from ropewalk.runtime.ports import on_disk

    options = NodeOptions(config=config, node_id=node_id, data=data, settings=tuple(settings or ()))
    loaded = load(options, os.environ)
    moved = run(move_metadata(loaded, on_disk(loaded.data_path), to, back=back))
    if chosen_output(ctx, output) is Output.JSON:
        print_json({"home": moved.home, "settings": dict(moved.settings)})
        return
    print(f"The metadata are at home in {moved.home}. The configuration of every controller has to say:")
    for name, value in moved.settings.items():
        print(f"  {name} = {value}")
    print("Then start this node, and start the others again one by one.")
