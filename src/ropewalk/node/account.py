"""What a node says of itself to the controller: its registration, its load, and what is wrong with it."""

from msgspec import Struct

from ropewalk.base.ids import parse_id
from ropewalk.base.ports import Clock
from ropewalk.broker.upkeep.load_meter import LoadMeter
from ropewalk.broker.upkeep.wholeness import Wholeness
from ropewalk.broker.watching.health import Health
from ropewalk.controller.brokers import Registration
from ropewalk.controller.health import Complaint
from ropewalk.controller.load import NodeLoad
from ropewalk.node.config import Config
from ropewalk.node.doors import Doors
from ropewalk.node.place import Place


class Account(Struct, frozen=True, kw_only=True):
    config: Config
    clock: Clock
    place: Place
    doors: Doors
    wholeness: Wholeness
    meter: LoadMeter
    health: Health
    process: bytes
    """What tells this process of the node from those before it."""

    def registration(self, *, is_first: bool) -> Registration:
        """`is_first` of this process: then every copy that is damaged is told of, later only those that are given up."""
        directory = self.place.directory
        return Registration(
            node_id=self.config.node_id,
            directory=parse_id(directory.identity.directory_id),
            endpoints=tuple(self.doors.endpoints),
            rack=self.config.get("broker.rack"),
            roles=self.config.roles,
            cluster_id=directory.identity.cluster_id,
            clock_ms=self.clock.now_ms(),
            is_clean=directory.was_clean,
            damaged=self.wholeness.damaged() if is_first else self.wholeness.given_up(),
            unsynced=directory.unsynced_before,
            life=directory.life,
            process=self.process,
            software=self.place.facts.software,
        )

    def load(self) -> NodeLoad | None:
        """None where nothing is new."""
        return self.meter.take()

    def complaints(self) -> tuple[Complaint, ...]:
        return self.health.complaints
