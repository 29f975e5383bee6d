"""The options of the commands that run a node, `up` and `serve`, and of `config show`, which explains them."""

from typing import Annotated

import typer

KafkaOption = Annotated[
    str | None,
    typer.Option(
        "--kafka",
        metavar="HOST:PORT",
        help="Where Kafka clients connect; port 0 is any free one. [127.0.0.1:9092]",
    ),
]
HttpOption = Annotated[
    str | None,
    typer.Option(
        "--http",
        metavar="HOST:PORT",
        help="Where metrics and health are served; port 0 is any free one, none is none. [127.0.0.1:9644]",
    ),
]
SqsOption = Annotated[
    str | None,
    typer.Option(
        "--sqs",
        metavar="HOST:PORT",
        help="Where SQS clients connect; port 0 is any free one, none is none. [127.0.0.1:9324]",
    ),
]
InsecureOption = Annotated[
    bool,
    typer.Option(
        "--insecure", help="Serve SQS clients without credentials on an address that others can reach."
    ),
]
PeerOption = Annotated[
    str | None,
    typer.Option(
        "--peer", metavar="HOST:PORT", help="Where the other nodes of a cluster connect. [127.0.0.1:9192]"
    ),
]
SeedOption = Annotated[
    list[str] | None,
    typer.Option("--seed", metavar="HOST:PORT", help="The peer address of a node to ask for the cluster."),
]
RoleOption = Annotated[
    list[str] | None,
    typer.Option("--role", metavar="ROLE", help="broker, controller or frontend; all three unless given."),
]
NodeIdOption = Annotated[
    int | None, typer.Option("--node-id", min=0, help="The number of this node in its cluster. [0]")
]
RackOption = Annotated[
    str | None,
    typer.Option("--rack", help="Where this node stands; replicas are spread over racks."),
]
DataOption = Annotated[
    str | None, typer.Option("--data", metavar="DIR", help="Where the node keeps its data. [./ropewalk-data]")
]
MemoryOption = Annotated[bool, typer.Option("--memory", help="Keep nothing on disk; all is gone at the end.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Any setting, Kafka's by their names: --set num.partitions=4."
    ),
]
ConfigOption = Annotated[
    str | None, typer.Option("--config", metavar="FILE", help="A TOML file of settings.")
]
ReadyFileOption = Annotated[
    str | None,
    typer.Option(
        "--ready-file", metavar="FILE", help="Write addresses and process ids here, as JSON, when ready."
    ),
]
LogLevelOption = Annotated[
    str | None, typer.Option("--log-level", metavar="LEVEL", help="debug, info, warning or error.")
]
