"""AlterConfigs: replace all settings of topics and brokers.

Behaviour worth knowing
    What is not named goes back to its default. That is how tools which know no better lose settings; newer ones use
    IncrementalAlterConfigs.
    A topic's `storage` cannot change, so leaving it out keeps it.
"""

from ropewalk.base.errors import InvalidRequest
from ropewalk.broker.topics import Topics
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.config_resources import BROKER, TOPIC, alter_each, node_id_of, unknown_type
from ropewalk.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(request: AlterConfigsRequest, caller: Caller, *, topics: Topics) -> AlterConfigsResponse:
    async def replace(resource: AlterConfigsResource) -> None:
        settings = _settings(resource)
        if resource.resource_type == TOPIC:
            await topics.replace_settings(
                resource.resource_name, settings, validate_only=request.validate_only
            )
        elif resource.resource_type == BROKER:
            await topics.replace_broker_settings(
                node_id_of(resource), settings, validate_only=request.validate_only
            )
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
