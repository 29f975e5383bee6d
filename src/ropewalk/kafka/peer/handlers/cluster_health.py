"""ClusterHealth: what is wrong in the cluster, as the node that decides counts it; refused by all others."""

from collections.abc import Sequence
from typing import Protocol

from ropewalk.base.errors import RopewalkError
from ropewalk.controller.health import Trouble
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.peer.controller_codes import code_for
from ropewalk.runtime.errands import Errands
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.peer.cluster_health import ClusterHealthRequest, ClusterHealthResponse, ClusterTrouble


class Account(Protocol):
    async def account(self) -> Sequence[Trouble]:
        """Raises `NotController` where another node decides."""

    @property
    def metadata_offset(self) -> int: ...


async def handle(
    request: ClusterHealthRequest, caller: Caller, *, health: Account, errands: Errands
) -> ClusterHealthResponse:
    del request, caller
    try:
        troubles = await errands.begin(health.account())
    except RopewalkError as error:
        return ClusterHealthResponse(code_for(error), str(error))
    return ClusterHealthResponse(
        ErrorCode.NONE,
        None,
        health.metadata_offset,
        tuple(ClusterTrouble(each.what, each.where, each.why) for each in troubles),
    )
