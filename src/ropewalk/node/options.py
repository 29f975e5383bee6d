"""What the command line hands to a node, before it is merged with file and environment."""

from msgspec import Struct


class NodeOptions(Struct, frozen=True, kw_only=True):
    """None means: not said on the command line."""

    kafka: str | None = None
    """HOST:PORT of the Kafka listener; port 0 takes any free one."""

    http: str | None = None
    """HOST:PORT of the HTTP door; port 0 takes any free one, `none` leaves it out."""

    sqs: str | None = None
    """HOST:PORT of the SQS door; port 0 takes any free one, `none` leaves it out."""

    insecure: bool = False
    """Serve SQS clients without credentials, whatever address that is on."""

    peer: str | None = None
    """HOST:PORT where the other nodes of the cluster connect."""

    seeds: tuple[str, ...] = ()
    """HOST:PORT of nodes to ask for the cluster."""

    roles: tuple[str, ...] = ()
    node_id: int | None = None
    rack: str | None = None
    data: str | None = None
    memory: bool = False
    nodes: int = 1
    ready_file: str | None = None
    ready_as_json: bool = False
    """Print the ready file's content instead of the ready line."""

    config: str | None = None
    """Path of a TOML file."""

    settings: tuple[str, ...] = ()
    """KEY=VALUE, each overriding file and environment."""

    log_level: str | None = None
    demo: bool = False
    """Produce to and consume from topic `demo` before the user's eyes, and take a free port if the default is taken."""
