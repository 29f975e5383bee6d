"""IncrementalAlterConfigs: set, delete, append to and subtract from single settings of topics and brokers.

Behaviour worth knowing
    Each resource is changed as a whole or not at all, and by itself.
    Broker settings without a name are those of all brokers. Settings that a node reads at its start are refused.
"""

from typing import Final

from ropewalk.base.errors import InvalidRequest, RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.broker.topics import Topics
from ropewalk.controller.settings import Alteration, Operation
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_TOPIC: Final = 2
_BROKER: Final = 4


async def handle(
    request: IncrementalAlterConfigsRequest, caller: Caller, *, topics: Topics
) -> IncrementalAlterConfigsResponse:
    responses: list[AlterConfigsResourceResponse] = []
    with caller.hold():
        for resource in request.resources:
            code, message = ErrorCode.NONE, None
            try:
                await _alter(resource, topics, validate_only=request.validate_only)
            except RopewalkError as error:
                code, message = code_for(error), str(error)
            responses.append(
                AlterConfigsResourceResponse(code, message, resource.resource_type, resource.resource_name)
            )
    return IncrementalAlterConfigsResponse(throttle_ms=0, responses=tuple(responses))


async def _alter(resource: AlterConfigsResource, topics: Topics, *, validate_only: bool) -> None:
    alterations = [_alteration(config) for config in resource.configs]
    if resource.resource_type == _TOPIC:
        await topics.alter_settings(resource.resource_name, alterations, validate_only=validate_only)
    elif resource.resource_type == _BROKER:
        node_id = _node_id(resource.resource_name)
        await topics.alter_broker_settings(node_id, alterations, validate_only=validate_only)
    else:
        raise InvalidRequest(f"resources of type {resource.resource_type} have no settings here")


def _alteration(config: AlterableConfig) -> Alteration:
    try:
        return Alteration(config.name, Operation(config.config_operation), config.value)
    except ValueError:
        raise InvalidRequest(f"{config.name}: there is no operation {config.config_operation}") from None


def _node_id(name: str) -> NodeId | None:
    if not name:
        return None
    if not name.isdecimal():
        raise InvalidRequest(f"{name!r} is not the id of a broker")
    return NodeId(int(name))
