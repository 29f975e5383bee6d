"""Standing by, taking over, deciding, stepping down: a controller's life on one node.

    standby   what others decide is heard and applied; the holder of the seat is watched
    active    this node holds the seat, and proposals are decided here

A standby takes over where nobody holds the seat, where the holder is a former life of this node, where it has not been
heard of for long, or where this node has lost its connection to it and most others have, too.

What a reader could get wrong
    None of these is a proof that the holder is gone, and none is needed: the metadata log takes records from the newest
    epoch only. Two nodes may believe to be active for a moment; one of them can change nothing.
    A node that is cut off loses its connection as well. If it took over without asking the others, nobody would hear it decide.
    The seat may be taken in a home that then takes no more records. Nobody decides meanwhile, the node tries again, and others
    that see no holder do as well: room in the home is all that is needed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from ropewalk.base.errors import (
    CannotFollow,
    CorruptMetadata,
    InvalidRequest,
    MetadataLeft,
    NotController,
    RopewalkError,
    TimedOut,
)
from ropewalk.base.ids import NodeId
from ropewalk.base.limits import CONTROLLER_HOLD_MS, CONTROLLER_TAKE_OVER_RETRY_MS, CONTROLLER_WATCH_MS
from ropewalk.broker.cluster.decisions import Decisions
from ropewalk.broker.cluster.facts import Facts
from ropewalk.metadata.image import Image
from ropewalk.metadata.log import Holder, MetadataLog
from ropewalk.metadata.records import ControllerChanged, MetadataRecord

_log = structlog.get_logger()

_NO_CLUSTER = (CorruptMetadata, InvalidRequest, MetadataLeft)
"""The metadata is not that of the node's data, or is not all there, or is there no more."""


class ControllerSeat:
    def __init__(
        self,
        node_id: NodeId,
        log: MetadataLog,
        facts: Facts,
        decisions: Decisions,
        *,
        create_cluster: Callable[[Image], Sequence[MetadataRecord]],
        settle_settings: Callable[[Image], dict[str, str | None]],
        settle_level: Callable[[Image], Sequence[MetadataRecord]],
        others_agree: Callable[[Holder], Awaitable[bool]],
        name_reign: Callable[[], str],
    ) -> None:
        """`create_cluster` decides the first records of all, nothing where there are some; it may refuse. `settle_settings`
        decides what nodes must agree on and have not, `settle_level` the level where there is none. `others_agree` says whether most nodes miss a holder that this one has lost.
        `name_reign` makes a name that nobody has had."""
        self._node_id = node_id
        self._log = log
        self._facts = facts
        self._decisions = decisions
        self._create_cluster = create_cluster
        self._settle_settings = settle_settings
        self._settle_level = settle_level
        self._others_agree = others_agree
        self._name_reign = name_reign
        self._lost_epoch = 0
        """Of the holder to whom the connection was lost."""
        self._settled: asyncio.Future[None] | None = None
        self._on_seated: Callable[[NodeId | None], None] = _nobody
        self._was_in_trouble = False
        self._was_refused = False
        self.taken_count = 0
        """How often this node has taken the seat."""
        decisions.refuse(NotController("this node has not heard yet who decides"))

    @property
    def is_active(self) -> bool:
        return self._decisions.refusal is None

    @property
    def holder(self) -> Holder | None:
        """Who decides, as the log says; it knows before the image does."""
        return self._log.holder

    def on_seated(self, tell: Callable[[NodeId | None], None]) -> None:
        """`tell` is called whenever this node has taken the seat, with the node that it was taken from for its silence."""
        self._on_seated = tell
        if self.is_active:
            tell(None)

    def on_connection_lost(self, node_id: NodeId) -> None:
        """The connection to the controller on that node was lost, and did not come back in time."""
        holder = self._log.holder
        if holder is not None and holder.node_id == node_id:
            self._lost_epoch = holder.epoch

    def on_connection_back(self) -> None:
        """The controller, whoever it is, is heard of again."""
        self._lost_epoch = 0

    async def settled(self) -> None:
        """Return when it is known who decides, and of which cluster; raises what `create_cluster` refuses with."""
        if self._settled is None:
            self._settled = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._settled)

    async def run(self) -> None:
        """Until cancelled. Whatever keeps the seat from being taken may pass, except that there is no cluster to decide for, or
        none any more: then `settled` says so to who starts the node, or the node leaves service."""
        try:
            while True:
                await self._stand_by()
                holder = self._log.holder
                former = None if holder is None or holder.node_id == self._node_id else holder.node_id
                try:
                    if await self._take_over():
                        await self._hold(former)
                except CannotFollow:
                    raise
                except RopewalkError as error:
                    if isinstance(error, _NO_CLUSTER) and not self._is_settled:
                        self._settle(error)
                        await _for_ever()
                    await self._wait_for_better(error)
        except CannotFollow as error:
            self._facts.part(str(error))
            self._decisions.refuse(NotController(str(error)))
            self._settle(error)
            await _for_ever()

    async def _wait_for_better(self, error: RopewalkError) -> None:
        """The home is out of reach or full. Others may take the seat meanwhile, and are heard when they do."""
        self._decisions.refuse(NotController(f"node {self._node_id} cannot decide at present: {error}"))
        if not self._was_refused:
            _log.warning("the controller's seat cannot be taken at present", reason=str(error))
        self._was_refused = True
        await asyncio.sleep(CONTROLLER_TAKE_OVER_RETRY_MS / 1000)

    async def _stand_by(self) -> None:
        """Hear and apply, until the seat is to be taken."""
        while (holder := self._log.holder) is not None and not self._is_to_be_replaced(holder):
            self._decisions.refuse(NotController(f"node {holder.node_id} decides for the cluster"))
            self._was_refused = False
            await self._hear()
            if self._facts.image.cluster_id is not None:
                self._settle(None)
            if holder.epoch == self._lost_epoch and await self._others_agree(holder):
                if self._log.holder == holder:
                    return
                continue  # another was quicker
            await self._wait(holder.epoch, CONTROLLER_WATCH_MS)

    def _is_to_be_replaced(self, holder: Holder) -> bool:
        return holder.node_id == self._node_id or not holder.is_alive

    async def _hear(self) -> None:
        if self._log.parted is not None:
            raise CannotFollow(self._log.parted)
        start_offset = self._facts.image.end_offset
        records = self._log.heard(start_offset)
        if records is not None:
            self._facts.apply(records, start_offset=start_offset)
            return
        try:
            await self._decisions.catch_up()
        except CannotFollow:
            raise
        except RopewalkError:
            return  # `trouble` says so, and the next round asks again

    async def _take_over(self) -> bool:
        if self._facts.image.left_for is not None:
            await self._decisions.catch_up()  # they may have come back
            self._check_home()
        holder = self._log.holder
        epoch = await self._log.take_over(self._node_id, expected_epoch=0 if holder is None else holder.epoch)
        if epoch is None:
            return False
        await self._decisions.catch_up()
        self._check_home()
        reign = self._name_reign()
        try:
            await self._decisions.carry_out(
                lambda image: [
                    *self._create_cluster(image),
                    ControllerChanged(self._node_id, epoch, self._settle_settings(image), reign),
                    *self._settle_level(image),
                ]
            )
        except NotController:
            return False
        except TimedOut:
            if self._facts.image.controller_epoch != epoch:
                raise
        return True

    def _check_home(self) -> None:
        """Nobody decides where the metadata are no more; what was decided here would be known to nobody else."""
        home = self._facts.image.left_for
        if home is not None:
            raise MetadataLeft(
                f"the cluster's metadata have moved to {home}: set metadata.home there and start the node again, "
                "or have them back with `ropewalk cluster metadata move --back`"
            )

    async def _hold(self, former: NodeId | None) -> None:
        """Decide until another has taken over."""
        self.taken_count += 1
        self._was_refused = False
        self._on_seated(former)
        self._decisions.accept()
        self._settle(None)
        while (holder := self._log.holder) is not None and holder.epoch <= self._log.epoch and self.is_active:
            await self._hear()  # its own records may be heard of before they are acknowledged
            await self._wait(self._log.epoch, CONTROLLER_HOLD_MS)
        self._decisions.refuse(NotController("another node has begun to decide for the cluster"))
        _log.warning("another node decides for the cluster; this one stands by", former_epoch=self._log.epoch)

    async def _wait(self, holder_epoch: int, timeout_ms: float) -> None:
        """For news. That there can be none is worth a line, and that there can be again."""
        # Not where the image ends: one's own records may be heard of before the append that wrote them returns.
        end_offset = self._log.end_offset
        await self._log.news(end_offset=end_offset, holder_epoch=holder_epoch, timeout_ms=timeout_ms)
        trouble = self._log.trouble
        if trouble is not None and not self._was_in_trouble:
            _log.warning(
                "the metadata cannot be reached; leaders go on, the cluster cannot change", reason=trouble
            )
        elif trouble is None and self._was_in_trouble:
            _log.info("the metadata is reached again")
        self._was_in_trouble = trouble is not None

    @property
    def _is_settled(self) -> bool:
        return self._settled is not None and self._settled.done()

    def _settle(self, error: RopewalkError | None) -> None:
        if self._settled is None:
            self._settled = asyncio.get_running_loop().create_future()
        if self._settled.done():
            return
        if error is None:
            self._settled.set_result(None)
        else:
            self._settled.set_exception(error)


async def _for_ever() -> None:
    """Until cancelled: whoever supervises this would take a return for a failure."""
    await asyncio.get_running_loop().create_future()


def _nobody(_former: NodeId | None) -> None:
    """Nobody has asked to be told."""
