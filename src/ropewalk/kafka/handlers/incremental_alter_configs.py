"""IncrementalAlterConfigs: set, delete, append to and subtract from single settings of topics and brokers.

Behaviour worth knowing
    Each resource is changed as a whole or not at all, and by itself.
    Broker settings without a name are those of all brokers. Settings that a node reads at its start are refused, unless they are
    set to what they are (`restated.py`).
"""

from ropewalk.base.errors import InvalidRequest
from ropewalk.base.ids import NodeId
from ropewalk.broker.topics.topics import Topics
from ropewalk.controller.settings import Alteration, Operation
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.config_resources import (
    BROKER,
    GROUP,
    TOPIC,
    alter_each,
    check_group,
    node_id_of,
    unknown_type,
)
from ropewalk.kafka.restated import without_restated
from ropewalk.wire.messages.incremental_alter_configs import (
    API,
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


async def handle(
    request: IncrementalAlterConfigsRequest, caller: Caller, *, topics: Topics, node_id: NodeId
) -> IncrementalAlterConfigsResponse:
    mandate = caller.mandate(API.name)
    request = without_restated(request, topics.view, node_id)

    async def alter(resource: AlterConfigsResource) -> None:
        alterations = [_alteration(config) for config in resource.configs]
        if resource.resource_type == TOPIC:
            await topics.alter_settings(
                resource.resource_name, alterations, mandate, validate_only=request.validate_only
            )
        elif resource.resource_type == BROKER:
            await topics.alter_broker_settings(
                node_id_of(resource), alterations, mandate, validate_only=request.validate_only
            )
        elif resource.resource_type == GROUP:
            check_group(resource, [alteration.name for alteration in alterations])
        else:
            raise unknown_type(resource)

    with caller.hold():
        outcomes = await alter_each(request.resources, alter)
    return IncrementalAlterConfigsResponse(
        throttle_ms=0,
        responses=tuple(
            AlterConfigsResourceResponse(code, message, resource.resource_type, resource.resource_name)
            for resource, (code, message) in zip(request.resources, outcomes, strict=True)
        ),
    )


def _alteration(config: AlterableConfig) -> Alteration:
    try:
        return Alteration(config.name, Operation(config.config_operation), config.value)
    except ValueError:
        raise InvalidRequest(f"{config.name}: there is no operation {config.config_operation}") from None
