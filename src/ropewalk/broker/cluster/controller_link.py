"""The way from any node to the one that decides for the cluster.

Who that is comes from the image, and where that is wrong, or nothing is known yet, from asking every node that is known and every seed.
The answer with the highest controller epoch counts.

What a reader could get wrong
    A call is repeated, elsewhere or later, only while it is certain that nothing was done: the node could not be reached, or said that it
    does not decide. `ConnectionLost` and `TimedOut` are given to the caller.
    Any other refusal is raised as the error that it was there: what `call` returns has succeeded.
    A node that is itself the active controller does not need this, and is never called by it.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct

from ropewalk.base.errors import ControllerUnavailable, NotController, ProtocolError, RopewalkError, TimedOut
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import (
    CONTROLLER_ASK_MS_MAX,
    CONTROLLER_NODES_ASKED_MAX,
    CONTROLLER_RETRY_MS_MAX,
    CONTROLLER_RETRY_MS_MIN,
)
from ropewalk.broker.peers.calls.controller_call import ControllerCall
from ropewalk.broker.peers.calls.find_controller import find_controller
from ropewalk.broker.peers.peers import Lane, PeerLink, PeerLinks
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.backoff import Backoff
from ropewalk.client.errors import ApiNotOffered, ConnectionLost, Unreachable
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import PEER_LISTENER

T = TypeVar("T")


class Controller(Struct, frozen=True):
    """Who is believed to decide, and where it is."""

    node_id: NodeId
    epoch: int
    address: Address


class _Asked(Struct):
    """What a round of asking has come to so far."""

    count: int = 0
    best: Controller | None = None
    failures: list[Unreachable] = []


class ControllerLink:
    def __init__(
        self,
        links: PeerLinks,
        image: Image,
        seeds: Callable[[], Sequence[Address]],
        *,
        decides: Callable[[], bool] = lambda: False,
    ) -> None:
        """`decides` says whether this node itself does, in which case nobody else is looked for."""
        self._links = links
        self._image = image
        self._seeds = seeds
        self._decides = decides
        self._heard: Controller | None = None
        """From other nodes; the image may be behind, or not there yet."""
        self._doubted: Controller | None = None
        """Did not answer, or not as the controller. It is tried again only when others insist on it."""
        self._told: dict[NodeId, Address] = {}
        """Nodes that others have named."""

    async def call(self, call: ControllerCall[T], *, deadline_ms: float) -> T:
        """Raises what the controller refuses with; `ControllerUnavailable` when none was found in time, and nothing was done then."""
        clock = self._links.clock
        backoff = Backoff(
            clock,
            self._links.rng,
            delay_ms=CONTROLLER_RETRY_MS_MIN,
            delay_ms_max=CONTROLLER_RETRY_MS_MAX,
            deadline_ms=deadline_ms,
        )
        while True:
            if self._decides():
                raise ControllerUnavailable("this node itself decides by now")
            try:
                controller = self._believed() or await self._ask_around(deadline_ms)
                return await self._call_at(controller, call, deadline_ms)
            except (Unreachable, ApiNotOffered, NotController) as error:
                await backoff.wait(ControllerUnavailable(f"no controller can be reached: {error}"))

    async def link(self, lane: Lane, *, deadline_ms: float) -> PeerLink:
        """To the node that is believed to decide: for whoever wants to know when it is lost."""
        return self._link_to(self._believed() or await self._ask_around(deadline_ms), lane)

    def hang_up(self, lane: Lane) -> None:
        """Close the connection to the node that is believed to decide, for good: it misses this node soon."""
        controller = self._believed()
        if controller is not None:
            self._link_to(controller, lane).close()

    async def _call_at(self, controller: Controller, call: ControllerCall[T], deadline_ms: float) -> T:
        try:
            answer = await call.send(self._link_to(controller, call.lane), deadline_ms)
        except (Unreachable, ApiNotOffered, ConnectionLost, TimedOut):
            self._doubted = controller
            raise
        self._doubted = controller if isinstance(answer, NotController) else None
        if isinstance(answer, RopewalkError):
            raise answer
        return answer

    def _link_to(self, controller: Controller, lane: Lane) -> PeerLink:
        """By node id where the image knows the way, since it hears of a new address first."""
        broker = self._image.brokers.get(controller.node_id)
        endpoint = broker.endpoint(PEER_LISTENER) if broker is not None else None
        if endpoint is not None and Address(endpoint.host, endpoint.port) == controller.address:
            return self._links.to_node(controller.node_id, lane)
        return self._links.to_address(controller.address, lane)

    def _believed(self) -> Controller | None:
        """The newest that is known of, unless it is doubted or this node itself."""
        known = [controller for controller in (self._heard, self._in_image()) if controller is not None]
        newest = max(known, key=lambda controller: controller.epoch, default=None)
        if newest is None or newest.node_id == self._links.node_id:
            return None
        return newest if self._is_news(newest) else None

    def _in_image(self) -> Controller | None:
        node_id = self._image.controller_id
        if node_id is None:
            return None
        try:
            address = self._links.locate(node_id)
        except Unreachable:
            return None
        return Controller(node_id, self._image.controller_epoch, address)

    async def _ask_around(self, deadline_ms: float) -> Controller:
        """Ask everyone at once, and believe the first who knows of a newer controller than the one in doubt, or is the controller.

        Somebody may hang: that must not take all the time there is for the call itself.
        """
        now_ms = self._links.clock.monotonic_ms()
        until_ms = now_ms + min((deadline_ms - now_ms) / 2, CONTROLLER_ASK_MS_MAX)
        everyone = self._everyone()
        found: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asked = _Asked()

        async def ask(link: PeerLink) -> None:
            is_sure = False
            try:
                named, named_by = await self._ask(link, until_ms)
            except Unreachable as error:
                asked.failures.append(error)
            else:
                if named is not None and (asked.best is None or named.epoch > asked.best.epoch):
                    asked.best = named
                is_sure = named is not None and named is asked.best and named.node_id == named_by
            asked.count += 1
            is_over = is_sure or self._is_news(asked.best) or asked.count == len(everyone)
            if is_over and not found.done():
                found.set_result(None)

        if everyone:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(ask(link)) for link in everyone]
                await found
                for task in tasks:
                    task.cancel()
        if asked.best is None:
            raise _nobody(asked.failures, len(everyone))
        self._heard = asked.best
        return asked.best

    def _is_news(self, named: Controller | None) -> bool:
        return named is not None and (self._doubted is None or named.epoch > self._doubted.epoch)

    async def _ask(self, link: PeerLink, deadline_ms: float) -> tuple[Controller | None, NodeId]:
        """Who decides, as far as one node has heard, and who that node is. None: it knows of nobody, or of this node, which
        knows better."""
        try:
            peer = await link.peer(deadline_ms=deadline_ms)
            named = await find_controller().send(link, deadline_ms)
        except (ApiNotOffered, ConnectionLost, ProtocolError, TimedOut) as error:
            raise Unreachable(link.name, f"it does not say who decides: {error}") from None
        self._told.update(named.nodes)
        # Where it answers is known before the controller has told where it wants to be reached.
        self._told.setdefault(NodeId(peer.node_id), peer.connection.address)
        address = self._told.get(named.node_id)
        if address is None or named.node_id == self._links.node_id:
            return None, NodeId(peer.node_id)
        return Controller(named.node_id, named.epoch, address), NodeId(peer.node_id)

    def _everyone(self) -> list[PeerLink]:
        """Those that the image knows, those that others named, then the seeds; each once."""
        addresses: dict[Address, None] = {}
        for broker in self._image.brokers.values():
            endpoint = broker.endpoint(PEER_LISTENER)
            if endpoint is not None and broker.node_id != self._links.node_id:
                addresses[Address(endpoint.host, endpoint.port)] = None
        for node_id, address in self._told.items():
            if node_id != self._links.node_id:
                addresses[address] = None
        others = list(addresses)
        seeds = [seed for seed in self._seeds() if seed not in addresses]
        # Seeds first when the list is cut: they were chosen by somebody.
        chosen = [*seeds, *others][:CONTROLLER_NODES_ASKED_MAX]
        return [self._links.to_address(address, Lane.CALLS) for address in chosen]


def _nobody(failures: Sequence[Unreachable], asked_count: int) -> Unreachable:
    if not asked_count:
        return Unreachable("a controller", "neither seeds nor other nodes are known")
    if len(failures) < asked_count:
        return Unreachable("a controller", "no node that answers knows who decides")
    texts = dict.fromkeys(str(failure) for failure in failures)
    return Unreachable("a controller", "; ".join(texts))
