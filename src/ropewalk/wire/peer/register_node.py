"""RegisterNode (key 10003): a node has started and asks to be let in. It is fenced until it has caught up and heartbeats.

v1  unsynced
v2  life, process
v3  version, level_min, level_max
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.peer.controller_answer import ControllerAnswer
from ropewalk.wire.types import Int32, Int64, Message, Uuid, since


class ListenerEndpoint(Message, frozen=True):
    listener: str
    host: str
    port: Int32


class ReplicaOfPartition(Message, frozen=True):
    topic_id: Uuid
    index: Int32


class RegisterNodeRequest(Message, frozen=True):
    node_id: Int32
    cluster_id: str | None
    directory_id: Uuid
    endpoints: tuple[ListenerEndpoint, ...]
    rack: str | None
    roles: tuple[str, ...]
    now_ms: Int64
    """Its wall clock: one that is far off would expire records of others."""
    is_clean: bool
    """It stopped in order; otherwise what was only in the page cache may be gone."""
    damaged: tuple[ReplicaOfPartition, ...]
    """Replicas that lack durable records after recovery, whatever the rest is like."""
    unsynced: Annotated[tuple[ReplicaOfPartition, ...] | None, since(1)] = None
    """Replicas of which the process before acknowledged records that may not have been on disk; null where it left no word of it."""
    life: Annotated[Int64, since(2)] = 0
    """How many processes have used its data directory, this one included; 0 where nobody counted."""
    process: Annotated[bytes, since(2)] = b""
    """Drawn by each process at its start: one that asks again is told from the next."""
    version: Annotated[str, since(3)] = ""
    """Of its software."""
    level_min: Annotated[Int32, since(3)] = 1
    level_max: Annotated[Int32, since(3)] = 1
    """The levels that it can work at."""


class RegisterNodeResponse(ControllerAnswer, frozen=True):
    broker_epoch: Int64 = -1
    cluster_id: str = ""


API: Final = Api(
    key=10003,
    name="RegisterNode",
    versions=range(0, 3 + 1),
    flexible_since=0,
    request=RegisterNodeRequest,
    response=RegisterNodeResponse,
)
