"""What is known of a cluster, of each of its nodes, and of the machine that asks: plain values, for rules to look at.

What a reader could get wrong
    What could not be learnt is None or empty, and says nothing: a rule must not take it for good news.
"""

from collections.abc import Mapping

from msgspec import Struct

from ropewalk.client.administration.membership import Membership, Node, TopicState
from ropewalk.views.diagnosis.figures import Figures


class Reached(Struct, frozen=True):
    """An address, and what became of connecting to it."""

    where: str
    address: str
    problem: str | None
    detail: str = ""
    """What it offers, where it answered."""


class Directory(Struct, frozen=True):
    """Where a node keeps its data, as it says, or as it was found on this machine."""

    path: str
    usable_bytes: int
    total_bytes: int
    error: str | None = None
    file_system: str | None = None
    """Known of directories on this machine only."""
    syncs_at_once: bool = True
    is_open_to_others: bool = False


class NodeFacts(Struct, frozen=True, kw_only=True):
    node: Node
    """As the node tells it that knows best."""
    reached: Reached | None = None
    """None where clients are not told of the node."""
    answer: Membership | None = None
    silence: str | None = None
    """Why there is no answer, if it was asked."""
    figures: Figures | None = None
    figures_problem: str | None = None
    directories: tuple[Directory, ...] = ()

    @property
    def where(self) -> str:
        return f"node {self.node.node_id}"


class TopicFacts(Struct, frozen=True, kw_only=True):
    state: TopicState
    settings: Mapping[str, str] | None = None
    """None where they were not asked for."""


class GroupFacts(Struct, frozen=True, kw_only=True):
    name: str
    state: str
    member_count: int | None
    lag: int | None
    """Records; None where it is not known."""


class ConfiguredSetting(Struct, frozen=True):
    name: str
    value: str
    origin: str
    why: str
    """Why it could surprise."""


class Machine(Struct, frozen=True, kw_only=True):
    """The machine that asks, and a node that would be started on it."""

    versions: str
    has_uvloop: bool
    descriptors: int | None
    """How many files may be open; None where any number may."""
    clock_ms: int
    settings_problem: str | None = None
    warnings: tuple[str, ...] = ()
    """Of the addresses that the node would listen on."""
    surprising: tuple[ConfiguredSetting, ...] = ()
    idle: tuple[ConfiguredSetting, ...] = ()
    """Settings that are set and have no effect."""
    directory: Directory | None = None
    """None where the node would keep nothing on disk."""
    is_directory_there: bool = True
    is_directory_writable: bool = True


class Facts(Struct, frozen=True, kw_only=True):
    machine: Machine | None = None
    asked: tuple[Reached, ...] = ()
    """The addresses that the command was given."""
    client_problem: str | None = None
    silence: str | None = None
    """Why the cluster did not answer, if it was asked."""
    membership: Membership | None = None
    nodes: tuple[NodeFacts, ...] = ()
    topics: tuple[TopicFacts, ...] = ()
    groups: tuple[GroupFacts, ...] = ()
    unlearnt: tuple[str, ...] = ()
    """What else could not be learnt, and why."""
