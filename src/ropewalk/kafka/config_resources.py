"""What settings belong to, as DescribeConfigs, AlterConfigs and IncrementalAlterConfigs name it.

Kafka also keeps settings of groups, broker loggers and client metrics. Of a group there are none here yet: it is described without
any. The others do not exist, so whoever asks is told INVALID_REQUEST, which is what Kafka answers for a type it does not know.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Protocol, TypeVar

from ropewalk.base.errors import InvalidRequest, InvalidSetting, RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode

TOPIC: Final = 2
BROKER: Final = 4
GROUP: Final = 32
_NAMES: Final = {0: "unknown", 8: "broker logger", 16: "client metrics"}


class Resource(Protocol):
    @property
    def resource_type(self) -> int: ...

    @property
    def resource_name(self) -> str: ...


R = TypeVar("R", bound=Resource)
Outcome = tuple[ErrorCode, str | None]


def unknown_type(resource: Resource) -> InvalidRequest:
    name = _NAMES.get(resource.resource_type, str(resource.resource_type))
    return InvalidRequest(f"resources of type {name} have no settings here")


def check_group(resource: Resource, names: Iterable[str] = ()) -> None:
    """Raise unless the resource names a group, and nothing that would be a setting of one."""
    if not resource.resource_name:
        raise InvalidRequest("Group name must not be empty")
    for name in names:
        raise InvalidSetting(f"Unknown group config name: {name}")


def node_id_of(resource: Resource) -> NodeId | None:
    """The broker a resource names; None where it stands for all of them."""
    name = resource.resource_name
    if not name:
        return None
    if not name.isdecimal():
        raise InvalidRequest(f"{name!r} is not the id of a broker")
    return NodeId(int(name))


async def alter_each(resources: Sequence[R], alter: Callable[[R], Awaitable[None]]) -> list[Outcome]:
    """Each by itself, in order; one that is named twice is not changed at all."""
    counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    outcomes: list[Outcome] = []
    for resource in resources:
        try:
            if counts[resource.resource_type, resource.resource_name] > 1:
                raise InvalidRequest(f"{resource.resource_name!r} is named more than once")
            await alter(resource)
        except RopewalkError as error:
            outcomes.append((code_for(error), str(error)))
        else:
            outcomes.append((ErrorCode.NONE, None))
    return outcomes
