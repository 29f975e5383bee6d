"""All settings of a topic and of a broker, described by clients made for Kafka and sent back by them as they are."""

# confluent-kafka is annotated, but without re-exports for its admin classes and with some calls left out.
# mypy: disable-error-code="attr-defined, no-untyped-call"

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import kafka.admin
import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tests.compat.conftest import MakeTopic, StartNode
from tests.compat.java_tools import config_tool_class_path, run_java

pytestmark = pytest.mark.compat

PATIENCE_S: Final = 20
SETTINGS_MIN: Final = 25
"""Of a topic. A round trip of fewer proves less than it seems to."""

SendBack = Callable[[str, str, str], None]
"""Takes the address, the type of the resource and its name."""


@pytest.fixture
def bootstrap(start_node: StartNode, tmp_path: Path) -> str:
    """A node of its own: afterwards nothing of it is a default any more."""
    return start_node("--data", str(tmp_path), "--rack", "here").bootstrap


def _described(bootstrap: str, kind: str, name: str) -> dict[str, str | None]:
    resource = ConfigResource(ResourceType[kind.upper()], name)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    entries = admin.describe_configs([resource])[resource].result(PATIENCE_S)
    return {entry.name: entry.value for entry in entries.values()}


def _incrementally_with_confluent(bootstrap: str, kind: str, name: str) -> None:
    """It cannot send null."""
    entries = [
        ConfigEntry(each, value or "", incremental_operation=AlterConfigOpType.SET)
        for each, value in _described(bootstrap, kind, name).items()
    ]
    resource = ConfigResource(ResourceType[kind.upper()], name, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)


def _at_once_with_confluent(bootstrap: str, kind: str, name: str) -> None:
    values = {each: value or "" for each, value in _described(bootstrap, kind, name).items()}
    resource = ConfigResource(ResourceType[kind.upper()], name, set_config=values)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.alter_configs([resource])[resource].result(PATIENCE_S)


def _with_kafka_python(incremental: bool) -> SendBack:
    def send_back(bootstrap: str, kind: str, name: str) -> None:
        admin = kafka.admin.KafkaAdminClient(bootstrap_servers=bootstrap)
        try:
            resource_type = kafka.admin.ConfigResourceType[kind.upper()]
            described = admin.describe_configs(
                [kafka.admin.ConfigResource(resource_type, name)], config_filter="all"
            )
            values = {each: entry["value"] for each, entry in described[kind][name].items()}
            assert None in values.values(), "what is unset is to be sent back, too"
            admin.alter_configs(
                [kafka.admin.ConfigResource(resource_type, name, configs=values)],
                raise_on_unknown=False,
                incremental=incremental,
            )
        finally:
            admin.close()

    return send_back


def _with_kafka_configs(bootstrap: str, kind: str, name: str) -> None:
    entity = ("--bootstrap-server", bootstrap, "--entity-type", f"{kind}s", "--entity-name", name)
    tool = (config_tool_class_path(), "kafka.admin.ConfigCommand")
    printed = run_java(*tool, *entity, "--describe", "--all")
    values = dict(re.findall(r"^  (\S+?)=(.*) sensitive=\w+ synonyms=", printed, re.MULTILINE))
    assert len(values) >= SETTINGS_MIN
    changes = [f"{each}=[{'' if value == 'null' else value}]" for each, value in values.items()]
    run_java(*tool, *entity, "--alter", "--add-config", ",".join(changes))


@pytest.mark.parametrize("kind", ["topic", "broker"])
@pytest.mark.parametrize(
    "send_back",
    [
        pytest.param(_incrementally_with_confluent, id="confluent-kafka, one by one"),
        pytest.param(_at_once_with_confluent, id="confluent-kafka, all at once"),
        pytest.param(_with_kafka_python(True), id="kafka-python, one by one"),
        pytest.param(_with_kafka_python(False), id="kafka-python, all at once"),
        pytest.param(_with_kafka_configs, id="kafka-configs"),
    ],
)
def test_all_settings_go_back_as_they_were_described(
    bootstrap: str, make_topic: MakeTopic, kind: str, send_back: SendBack
) -> None:
    name = make_topic(retention_ms="86400000") if kind == "topic" else "0"
    before = _described(bootstrap, kind, name)
    assert len(before) >= SETTINGS_MIN
    send_back(bootstrap, kind, name)
    assert _described(bootstrap, kind, name) == before
