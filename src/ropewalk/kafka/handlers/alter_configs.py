"""AlterConfigs: replace all settings of topics and brokers.

Behaviour worth knowing
    What is not named goes back to its default. That is how tools which know no better lose settings; newer ones use
    IncrementalAlterConfigs.
    What DescribeConfigs told of a broker can be sent back as it is, with what cannot be changed (`restated.py`).
    A topic's `storage` cannot change, so leaving it out keeps it.
"""

from ropewalk.base.errors import InvalidRequest
from ropewalk.base.ids import NodeId
from ropewalk.broker.topics.topics import Topics
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
from ropewalk.wire.messages.alter_configs import (
    API,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(
    request: AlterConfigsRequest, caller: Caller, *, topics: Topics, node_id: NodeId
) -> AlterConfigsResponse:
    mandate = caller.mandate(API.name)
    request = without_restated(request, topics.view, node_id)

    async def replace(resource: AlterConfigsResource) -> None:
        settings = _settings(resource)
        if resource.resource_type == TOPIC:
            await topics.replace_settings(
                resource.resource_name, settings, mandate, validate_only=request.validate_only
            )
        elif resource.resource_type == BROKER:
            await topics.replace_broker_settings(
                node_id_of(resource), settings, mandate, validate_only=request.validate_only
            )
        elif resource.resource_type == GROUP:
            check_group(resource, settings)
        else:
            raise unknown_type(resource)

    with caller.hold():
        outcomes = await alter_each(request.resources, replace)
    return AlterConfigsResponse(
        throttle_ms=0,
        responses=tuple(
            AlterConfigsResourceResponse(code, message, resource.resource_type, resource.resource_name)
            for resource, (code, message) in zip(request.resources, outcomes, strict=True)
        ),
    )


def _settings(resource: AlterConfigsResource) -> dict[str, str | None]:
    settings: dict[str, str | None] = {}
    for config in resource.configs:
        if config.name in settings:
            raise InvalidRequest(f"{config.name} is set twice in one request")
        settings[config.name] = config.value
    return settings
