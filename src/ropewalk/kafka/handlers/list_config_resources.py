"""ListConfigResources: topics and brokers, which have settings here.

Behaviour worth knowing
    Groups and subscriptions of client metrics may be asked for; there are none with settings. Broker loggers have none, either.
    A type that nobody knows is refused with UNSUPPORTED_VERSION, as in Kafka.
"""

from collections.abc import Iterator
from typing import Final

from ropewalk.kafka.caller import Caller
from ropewalk.kafka.config_resources import BROKER, GROUP, TOPIC
from ropewalk.metadata.image import Image
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_BROKER_LOGGER: Final = 8
_CLIENT_METRICS: Final = 16
_KNOWN: Final = frozenset({TOPIC, BROKER, _BROKER_LOGGER, _CLIENT_METRICS, GROUP})
_TYPES_SINCE: Final = 1


async def handle(
    request: ListConfigResourcesRequest, caller: Caller, *, image: Image
) -> ListConfigResourcesResponse:
    wanted = frozenset(request.resource_types) or _KNOWN
    if caller.version < _TYPES_SINCE:
        wanted = frozenset({_CLIENT_METRICS})
    if not wanted <= _KNOWN:
        return ListConfigResourcesResponse(throttle_ms=0, error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        throttle_ms=0, error_code=ErrorCode.NONE, config_resources=tuple(_resources(image, wanted))
    )


def _resources(image: Image, wanted: frozenset[int]) -> Iterator[ConfigResource]:
    if TOPIC in wanted:
        yield from (ConfigResource(name, TOPIC) for name in image.topics)
    if BROKER in wanted:
        yield from (
            ConfigResource(str(broker.node_id), BROKER)
            for broker in image.brokers.values()
            if "broker" in broker.roles
        )
