"""DescribeConfigs: every setting of a topic or broker, with its value, where it came from, and what it means.

Behaviour worth knowing
    A resource that is asked for twice is answered once: each answer is a hundred times as long as its question.
    Keys that do not exist are left out of the answer, as in Kafka.
    A broker without a name stands for all of them: only what was set for all brokers at run time is listed.
    Otherwise the list is never empty of defaults: tools decide by them (Connect looks for cleanup.policy, kafbat for
    inter.broker.protocol.version).
"""

from collections.abc import Callable, Iterable

from ropewalk.base.errors import InvalidRequest, RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.controller.topic_names import check_topic_name
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.config_resources import BROKER, GROUP, TOPIC, check_group, node_id_of, unknown_type
from ropewalk.kafka.errors import code_for
from ropewalk.metadata.image import Image
from ropewalk.metadata.settings.broker import BROKER_SETTINGS
from ropewalk.metadata.settings.effective import EffectiveSetting, SettingsView
from ropewalk.metadata.settings.setting import Change, Kind
from ropewalk.metadata.settings.topic import TOPIC_SETTINGS
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


async def handle(
    request: DescribeConfigsRequest, caller: Caller, *, image: Image, view: SettingsView, node_id: NodeId
) -> DescribeConfigsResponse:
    def describe(resource: DescribeConfigsResource) -> DescribeConfigsResult:
        try:
            names, find = _source(resource, image, view, node_id)
        except RopewalkError as error:
            return DescribeConfigsResult(
                code_for(error), str(error), resource.resource_type, resource.resource_name, ()
            )
        wanted = names if resource.configuration_keys is None else dict.fromkeys(resource.configuration_keys)
        known = frozenset(names)
        return DescribeConfigsResult(
            ErrorCode.NONE,
            None,
            resource.resource_type,
            resource.resource_name,
            tuple([_entry(find(name), request) for name in wanted if name in known]),
        )

    results: list[DescribeConfigsResult] = []
    for resource in dict.fromkeys(request.resources):
        await caller.next_item()
        results.append(describe(resource))
    return DescribeConfigsResponse(throttle_ms=0, results=tuple(results))


def _source(
    resource: DescribeConfigsResource, image: Image, view: SettingsView, node_id: NodeId
) -> tuple[Iterable[str], Callable[[str], EffectiveSetting]]:
    if resource.resource_type == TOPIC:
        check_topic_name(resource.resource_name)
        topic = image.topic(resource.resource_name)
        return TOPIC_SETTINGS, lambda name: view.of_topic(topic, name)
    if resource.resource_type == BROKER:
        asked = node_id_of(resource)
        if asked is None:
            return image.broker_settings(None), view.of_all_brokers
        if asked != node_id:
            raise InvalidRequest(f"this is broker {node_id}; ask broker {asked} itself")
        return BROKER_SETTINGS, view.of_broker
    if resource.resource_type == GROUP:
        check_group(resource)
        return (), view.of_broker
    raise unknown_type(resource)


def _entry(effective: EffectiveSetting, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    setting = effective.setting
    is_sensitive = setting.kind is Kind.PASSWORD
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=None if is_sensitive else effective.value,
        read_only=setting.change is Change.READ_ONLY,
        config_source=effective.source,
        is_sensitive=is_sensitive,
        synonyms=tuple(
            DescribeConfigsSynonym(
                candidate.name, None if is_sensitive else candidate.value, candidate.source
            )
            for candidate in effective.candidates
        )
        if request.include_synonyms
        else (),
        config_type=setting.kind,
        documentation=setting.description if request.include_documentation else None,
    )
