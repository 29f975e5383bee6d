"""FindCoordinator: which broker looks after a group or a transactional id.

Behaviour worth knowing
    The topic that holds the groups, or the transactions, is made when somebody first looks for a coordinator, and the answer
    waits for it.
    Share groups are not served: whoever looks for their coordinator is refused for good, not told to try again.
"""

from enum import IntEnum
from typing import Final, Protocol

from ropewalk.base.errors import InvalidRequest, RopewalkError, ShardUnavailable
from ropewalk.base.ids import NodeId
from ropewalk.groups.errors import InvalidGroupId
from ropewalk.kafka.brokers import Reach
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.metadata.image import Broker, Image
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_MANY_SINCE: Final = 4
_NOBODY: Final = -1


class _KeyType(IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class Coordinators(Protocol):
    async def coordinator(self, key: str, /) -> NodeId: ...


async def handle(
    request: FindCoordinatorRequest,
    caller: Caller,
    *,
    groups: Coordinators,
    transactions: Coordinators,
    image: Image,
    reach: Reach = Broker.endpoint,
) -> FindCoordinatorResponse:
    coordinators = transactions if request.key_type == _KeyType.TRANSACTION else groups
    if caller.version >= _MANY_SINCE:
        found: list[Coordinator] = []
        for key in dict.fromkeys(request.coordinator_keys):
            await caller.next_item()
            found.append(await _find(key, request.key_type, caller, coordinators, image, reach))
        return FindCoordinatorResponse(coordinators=tuple(found))
    one = await _find(request.key, request.key_type, caller, coordinators, image, reach)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


async def _find(
    key: str, key_type: int, caller: Caller, coordinators: Coordinators, image: Image, reach: Reach
) -> Coordinator:
    try:
        _check(key, key_type)
        with caller.hold():
            node_id = await coordinators.coordinator(key)
        broker = image.brokers.get(node_id)
        endpoint = None if broker is None else reach(broker, caller.listener)
        if endpoint is None:
            raise ShardUnavailable(f"node {node_id}, which looks after {key!r}, is not there")
        return Coordinator(key, node_id, endpoint.host, endpoint.port)
    except (InvalidRequest, InvalidGroupId) as error:
        return Coordinator(key, _NOBODY, "", _NOBODY, code_for(error), str(error))
    except RopewalkError as error:  # whatever keeps the topic from being made may pass
        return Coordinator(key, _NOBODY, "", _NOBODY, ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error))


def _check(key: str, key_type: int) -> None:
    if key_type == _KeyType.TRANSACTION:
        return
    if key_type == _KeyType.SHARE:
        raise InvalidRequest("share groups are not served")
    if key_type != _KeyType.GROUP:
        raise InvalidRequest(f"there are no coordinators of type {key_type}")
    if not key:
        raise InvalidGroupId("a group's id is empty")
