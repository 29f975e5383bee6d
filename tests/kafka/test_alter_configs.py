"""AlterConfigs replaces all settings of a resource; what is not named goes back to its default."""

import pytest

from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import alter_configs, describe_configs
from tests.kafka.door import Door, at_the_door

TOPIC, BROKER = 2, 4
FROM_TOPIC, FROM_ALL_BROKERS = 1, 3

Settings = tuple[tuple[str, str | None], ...]


def resource(kind: int, name: str, settings: Settings) -> alter_configs.AlterConfigsResource:
    configs = tuple(alter_configs.AlterableConfig(*setting) for setting in settings)
    return alter_configs.AlterConfigsResource(kind, name, configs)


async def alter(
    door: Door, *resources: alter_configs.AlterConfigsResource, version: int = 2, validate_only: bool = False
) -> list[int]:
    request = alter_configs.AlterConfigsRequest(resources, validate_only)
    return [answer.error_code for answer in (await door.call(alter_configs.API, version, request)).responses]


async def overrides(door: Door, kind: int, name: str, source: int) -> dict[str, str | None]:
    asked = describe_configs.DescribeConfigsResource(kind, name, None)
    request = describe_configs.DescribeConfigsRequest((asked,))
    (described,) = (await door.call(describe_configs.API, 4, request)).results
    return {config.name: config.value for config in described.configs if config.config_source == source}


@pytest.mark.parametrize("version", alter_configs.API.versions)
def test_what_is_not_named_is_gone(version: int) -> None:
    async def story(door: Door) -> dict[str, str | None]:
        await door.create("t", retention_ms="5000", segment_ms="90000", storage="memory")
        wanted = resource(TOPIC, "t", (("segment.ms", "90001"),))
        assert await alter(door, wanted, version=version) == [ErrorCode.NONE]
        return await overrides(door, TOPIC, "t", FROM_TOPIC)

    assert at_the_door(story) == {"segment.ms": "90001", "storage": "memory"}


def test_settings_of_all_brokers_are_replaced() -> None:
    async def story(door: Door) -> list[dict[str, str | None]]:
        seen = []
        for settings in ((("num.partitions", "3"), ("log.retention.ms", "9")), (("num.partitions", "4"),)):
            assert await alter(door, resource(BROKER, "", settings)) == [ErrorCode.NONE]
            seen.append(await overrides(door, BROKER, "", FROM_ALL_BROKERS))
        return seen

    assert at_the_door(story) == [
        {"num.partitions": "3", "log.retention.ms": "9"},
        {"num.partitions": "4"},
    ]


@pytest.mark.parametrize(
    ("kind", "name", "settings", "expected"),
    [
        pytest.param(TOPIC, "t", (("segment.ms", "x"),), ErrorCode.INVALID_CONFIG, id="bad value"),
        pytest.param(TOPIC, "t", (("no.such", "1"),), ErrorCode.INVALID_CONFIG, id="no such setting"),
        pytest.param(TOPIC, "t", (("segment.ms", None),), ErrorCode.INVALID_REQUEST, id="no value"),
        pytest.param(
            TOPIC, "t", (("segment.ms", "1"), ("segment.ms", "2")), ErrorCode.INVALID_REQUEST, id="twice"
        ),
        pytest.param(TOPIC, "no", (), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="no such topic"),
        pytest.param(BROKER, "9", (), ErrorCode.INVALID_REQUEST, id="another broker"),
        pytest.param(8, "0", (("kafka", "DEBUG"),), ErrorCode.INVALID_REQUEST, id="a logger"),
        pytest.param(0, "0", (), ErrorCode.INVALID_REQUEST, id="nothing known"),
    ],
)
def test_what_is_refused_changes_nothing(kind: int, name: str, settings: Settings, expected: int) -> None:
    async def story(door: Door) -> tuple[list[int], dict[str, str | None]]:
        await door.create("t", retention_ms="5000")
        codes = await alter(door, resource(kind, name, settings))
        return codes, await overrides(door, TOPIC, "t", FROM_TOPIC)

    assert at_the_door(story) == ([expected], {"retention.ms": "5000"})


def test_a_resource_named_twice_is_left_alone() -> None:
    async def story(door: Door) -> tuple[list[int], dict[str, str | None]]:
        await door.create("t", retention_ms="5000")
        codes = await alter(door, resource(TOPIC, "t", ()), resource(TOPIC, "t", ()))
        return codes, await overrides(door, TOPIC, "t", FROM_TOPIC)

    assert at_the_door(story) == ([ErrorCode.INVALID_REQUEST] * 2, {"retention.ms": "5000"})


def test_validating_changes_nothing() -> None:
    async def story(door: Door) -> tuple[list[int], dict[str, str | None]]:
        await door.create("t", retention_ms="5000")
        codes = await alter(door, resource(TOPIC, "t", ()), validate_only=True)
        return codes, await overrides(door, TOPIC, "t", FROM_TOPIC)

    assert at_the_door(story) == ([ErrorCode.NONE], {"retention.ms": "5000"})
