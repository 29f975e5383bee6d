"""This node as a member of its cluster: it registers, says that it lives, knows whether it is fenced, and leaves in order.

What a reader could get wrong
    To be fenced, or not to hear of the controller, does not stop a leader: what it may acknowledge is bounded by the replicas
    in sync, which nobody else can change either. It is told to people, and to whoever routes to this node.
    A node registers again in the same life only where the controller no longer knows its epoch.
    Whatever a controller refuses a running node for may pass: a full home of the metadata, a queue that is too long, a bug. The node says so and
    goes on; only what keeps it from following the metadata ever again takes it out of service.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog
from msgspec import structs

from ropewalk.base.errors import (
    CannotFollow,
    ControllerUnavailable,
    DirectoryPutBack,
    DuplicateBroker,
    InvalidRequest,
    MetadataUnavailable,
    NotController,
    OtherCluster,
    RopewalkError,
    StaleBrokerEpoch,
    TimedOut,
    UnknownBroker,
    VersionRefused,
)
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import (
    CONNECTION_GRACE_MS,
    CONTROLLER_SILENCE_MS_MAX,
    JOIN_RETRY_MS,
    MEMBERSHIP_CALL_MS,
)
from ropewalk.base.ports import Clock
from ropewalk.broker.cluster.facts import Facts
from ropewalk.broker.cluster.to_controller import ToController
from ropewalk.client.errors import ConnectionLost
from ropewalk.controller.brokers import Registration
from ropewalk.controller.health import Complaint
from ropewalk.controller.load import NodeLoad
from ropewalk.controller.membership import Heartbeat
from ropewalk.runtime.bell import Bell

_log = structlog.get_logger()

_UNHEARD = (ControllerUnavailable, ConnectionLost, MetadataUnavailable, NotController, TimedOut)
"""After these nobody has heard a controller. Whatever else it refuses with, it has answered."""

_FOR_GOOD = (CannotFollow, InvalidRequest, OtherCluster, VersionRefused)
"""Somebody has to put these right before the node can be let in."""


class Account(Protocol):
    """What the controller is told of this node."""

    def registration(self, *, is_first: bool) -> Registration:
        """`is_first` of this process."""

    def load(self) -> NodeLoad | None:
        """None where nothing is new."""

    def complaints(self) -> tuple[Complaint, ...]:
        """What is wrong with the node."""


class Membership:
    def __init__(
        self,
        node_id: NodeId,
        controller: ToController,
        facts: Facts,
        clock: Clock,
        *,
        interval_ms: int,
        session_timeout_ms: int,
        leave_directory: Callable[[], Awaitable[None]],
        on_controller_lost: Callable[[NodeId], None],
        on_controller_back: Callable[[], None],
    ) -> None:
        """`leave_directory` makes the data directory another one, with what is in it.
        `on_controller_lost` hears of a controller that was reached before and cannot be reached any more, `on_controller_back` of one that answers."""
        self.node_id = node_id
        self._controller = controller
        self._facts = facts
        self._clock = clock
        self._interval_ms = interval_ms
        self._session_timeout_ms = session_timeout_ms
        self._leave_directory = leave_directory
        self._joined_with: Account | None = None
        self._on_controller_lost = on_controller_lost
        self._on_controller_back = on_controller_back
        self._heard_of: NodeId | None = None
        """The controller that answered last."""
        self._lost_since_ms: float | None = None
        """Since when the controller's node refuses, or closes, connections. One that hangs is lost later."""
        self._silent_since_ms: float | None = None
        """Since when nothing was answered, for whatever reason."""
        self._wake = Bell()
        self._in_service = asyncio.Event()
        self._is_connected = asyncio.Event()
        """Set while heartbeats are answered by another node."""
        self._wants_to_stop = False
        self._has_registered = False
        self._is_to_register = False
        self._may_stop = False
        self.broker_epoch = -1
        """-1 before the first registration."""
        self.is_fenced = True
        self.trouble: str | None = None
        """Why the controller is not heard at present. Leaders go on; what cannot be done meanwhile is to change the cluster."""
        self.hindrance: str | None = None
        """Why the controller, which answers, does not do what this node needs."""
        self.controller_heard_at_ms: float | None = None
        """When a controller last answered, by the monotonic clock; None before the first answer."""
        self.controller_offset = 0
        """Where the metadata ended then, at the controller."""
        self.clock_difference_ms = 0
        """By how much the controller's clock was ahead of this node's then; below 0: behind."""

    @property
    def metadata_offset(self) -> int:
        """How far the metadata is applied here."""
        return self._facts.image.end_offset

    @property
    def parted(self) -> str | None:
        """Why this node can never follow the metadata again; None while it can."""
        return self._facts.parted

    @property
    def is_in_image(self) -> bool:
        """Whether the image has come to this process's registration: what it says of the node is about this process."""
        return 0 <= self.broker_epoch < self._facts.image.settled_offset

    @property
    def standing(self) -> str | None:
        """What keeps clients from being sent here, for a person; None where the node is in service, as far as it knows."""
        if self.parted is not None:
            return f"it has left service until it is started again: {self.parted}"
        if self.broker_epoch < 0:
            return self.trouble or self.hindrance or "it has not registered yet"
        if not self.is_fenced:
            return None
        text = "it is fenced: others lead its partitions"
        return (
            text if self.hindrance is None else f"{text}; the controller cannot change that: {self.hindrance}"
        )

    @property
    def _account(self) -> Account:
        assert self._joined_with is not None, "a node says nothing of itself before it joins"
        return self._joined_with

    async def join(self, account: Account) -> None:
        """Register, however long it takes to find a controller. Raises what the controller refuses for good. `account`: what it is told, here
        and for as long as the node lives."""
        self._joined_with = account
        began_ms = self._clock.monotonic_ms()
        while True:
            try:
                await self._register()
                return
            except DuplicateBroker:
                # Perhaps it is this node's own former life, with a disk that was replaced: its session ends soon.
                if self._clock.monotonic_ms() - began_ms > 2 * self._session_timeout_ms:
                    raise
            except DirectoryPutBack as error:
                # What it lacks nobody can tell, so it counts as one that has lost everything, and is copied again.
                _log.warning(
                    "this data directory was put back; others are asked for what it held", reason=str(error)
                )
                await self._leave_directory()
            except _FOR_GOOD:
                raise
            except RopewalkError as error:
                self._on_error(error)
            await asyncio.sleep(JOIN_RETRY_MS / 1000)

    async def run(self) -> None:
        """Heartbeats, until cancelled. A node that has left service is silent, and the controller will miss it."""
        await self._facts.reached(self.broker_epoch + 1)
        while True:
            if self.parted is not None:
                self._controller.hang_up()
                await asyncio.get_running_loop().create_future()
            if self._is_to_register:
                self._is_to_register = False
                await self._register_again()
            await self._beat()
            await self._rest()

    def register_again(self) -> None:
        """There is something to say that is said at a registration. `run` does it; whoever asks looks whether it was heard."""
        self._is_to_register = True
        self._hurry()

    async def run_watch(self) -> None:
        """Beside `run`: when the connection to the controller is lost, try it again at once."""
        while True:
            await self._is_connected.wait()
            await self._controller.wait_lost()
            self._is_connected.clear()
            self._lost_since_ms = self._clock.monotonic_ms()
            self._hurry()

    async def in_service(self) -> None:
        """Return when the controller has taken the node into service, as far as it ever did."""
        await self._in_service.wait()

    async def leave(self, *, timeout_ms: float) -> None:
        """Give up leadership where others can lead; return when it is given up, or time is up. `run` must be running."""
        self._wants_to_stop = True
        self._hurry()
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while not self._may_stop and self._clock.monotonic_ms() < deadline_ms and self._is_listened_to:
            await asyncio.sleep(JOIN_RETRY_MS / 1000)
            self._hurry()

    @property
    def _is_listened_to(self) -> bool:
        """Whether a controller answers and does what it is asked for."""
        return self.trouble is None and self.hindrance is None and self.parted is None

    async def _register(self) -> None:
        registration = self._account.registration(is_first=not self._has_registered)
        if self._has_registered:  # in the same life: nothing that this process has written is in doubt
            registration = structs.replace(registration, is_clean=True, unsynced=frozenset())
        registered = await self._controller.register(registration, timeout_ms=MEMBERSHIP_CALL_MS)
        self._has_registered = True
        self.broker_epoch = registered.broker_epoch
        self.is_fenced = True
        self._on_well()

    async def _beat(self) -> None:
        heartbeat = Heartbeat(
            node_id=self.node_id,
            broker_epoch=self.broker_epoch,
            metadata_offset=self._facts.followed_offset,
            wants_to_stop=self._wants_to_stop,
            complaints=self._account.complaints(),
            position=self._facts.image.position,
        )
        try:
            pulse = await self._controller.heartbeat(
                heartbeat, self._account.load(), timeout_ms=self._patience_ms()
            )
        except (StaleBrokerEpoch, UnknownBroker) as error:
            _log.warning("the controller does not know this node; it registers again", reason=str(error))
            await self._register_again()
        except CannotFollow as error:
            self._facts.part(str(error))
        except RopewalkError as error:
            self._on_error(error)
        else:
            self._heard_of = pulse.controller_id
            self.controller_offset = pulse.metadata_end_offset
            if pulse.clock_ms >= 0:
                self.clock_difference_ms = pulse.clock_ms - self._clock.now_ms()
            if pulse.controller_id != self.node_id:
                self._is_connected.set()
            if pulse.is_fenced != self.is_fenced:
                self.is_fenced = pulse.is_fenced
                _log.info("this node is fenced" if pulse.is_fenced else "this node is in service")
            if not pulse.is_fenced:
                self._in_service.set()
            self._may_stop = pulse.may_stop
            self._on_well(pulse.hindrance)

    async def _register_again(self) -> None:
        try:
            await self._register()
        except RopewalkError as error:
            self._on_error(error)

    async def _rest(self) -> None:
        """Until the next heartbeat is due: at once where the node has just followed what it is waited for."""
        rest_ms = self._interval_ms if self._lost_since_ms is None else min(self._interval_ms, JOIN_RETRY_MS)
        await self._wake.wait(rest_ms)

    def _patience_ms(self) -> float:
        """For one heartbeat. One whose controller is lost is given up in time to do something about it."""
        if self._lost_since_ms is None:
            return MEMBERSHIP_CALL_MS
        left_ms = self._lost_since_ms + CONNECTION_GRACE_MS - self._clock.monotonic_ms()
        return left_ms if JOIN_RETRY_MS < left_ms < MEMBERSHIP_CALL_MS else MEMBERSHIP_CALL_MS

    @property
    def is_out_of_touch(self) -> bool:
        """Whether no controller has answered for so long that it will have taken this node out of service."""
        since_ms = self._silent_since_ms
        return since_ms is not None and self._clock.monotonic_ms() - since_ms >= self._session_timeout_ms

    def _hurry(self) -> None:
        self._wake.ring()

    def _on_error(self, error: RopewalkError) -> None:
        if isinstance(error, _UNHEARD):
            self._on_trouble(error)
        else:
            self._on_well(str(error))

    def _on_trouble(self, error: RopewalkError) -> None:
        now_ms = self._clock.monotonic_ms()
        if self._silent_since_ms is None:
            self._silent_since_ms = now_ms
        if self._lost_since_ms is None and not isinstance(error, TimedOut):
            self._lost_since_ms = now_ms
        if self.trouble is None:
            _log.warning(
                "the controller cannot be reached; leaders go on, nothing about the cluster can change",
                reason=str(error),
            )
        self.trouble = str(error)
        is_gone = self._lost_since_ms is not None and now_ms - self._lost_since_ms >= CONNECTION_GRACE_MS
        if self._heard_of is not None and (
            is_gone or now_ms - self._silent_since_ms >= CONTROLLER_SILENCE_MS_MAX
        ):
            self._on_controller_lost(self._heard_of)

    def _on_well(self, hindrance: str | None = None) -> None:
        """The controller has answered; `hindrance` is why it did not do what was asked of it."""
        if self.trouble is not None:
            _log.info("the controller is reached again")
        if hindrance is not None and self.hindrance is None:
            _log.warning("the controller cannot do what this node needs", reason=hindrance)
        elif hindrance is None and self.hindrance is not None:
            _log.info("the controller can do what this node needs again")
        self.hindrance = hindrance
        self.trouble = self._lost_since_ms = self._silent_since_ms = None
        self.controller_heard_at_ms = self._clock.monotonic_ms()
        self._on_controller_back()
