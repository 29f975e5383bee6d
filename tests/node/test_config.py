"""Configuration: four places, one table, and nothing that is silently ignored."""

from pathlib import Path

import pytest

from ropewalk.base.errors import InvalidSetting
from ropewalk.node.config import load, parse_address
from ropewalk.node.options import NodeOptions


def test_later_places_win_and_are_named(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text('num.partitions = 2\n[kafka]\nlisten = "0.0.0.0:1"\n[log.retention]\nms = 5\n')
    options = NodeOptions(config=str(file), settings=("num.partitions=4",))
    config = load(options, {"ROPEWALK_NUM__PARTITIONS": "3", "ROPEWALK_LOG__RETENTION__MS": "6"})
    entries = dict(config.entries())
    assert (config["num.partitions"], entries["num.partitions"].origin) == ("4", "--set num.partitions")
    assert (config["log.retention.ms"], entries["log.retention.ms"].origin) == (
        "6",
        "ROPEWALK_LOG__RETENTION__MS",
    )
    assert (config["kafka.listen"], entries["kafka.listen"].origin) == ("0.0.0.0:1", str(file))
    assert (config["flush"], entries["flush"].origin) == ("group", "default")


def test_options_of_their_own_are_settings_too() -> None:
    config = load(NodeOptions(kafka="h:1", data="/d", memory=True, log_level="debug"), {})
    assert (config["kafka.listen"], config["node.data"], config.in_memory) == ("h:1", "/d", True)
    assert config["node.log.level"] == "debug"


def test_only_what_was_set_overrides_the_brokers_defaults() -> None:
    config = load(NodeOptions(settings=("num.partitions=4",)), {"ROPEWALK_FLUSH": "os"})
    assert config.broker_overrides == {"num.partitions": "4", "flush": "os"}


@pytest.mark.parametrize(
    ("options", "environment", "message"),
    [
        pytest.param(
            NodeOptions(settings=("num.partition=4",)), {}, "did you mean num.partitions", id="a near miss"
        ),
        pytest.param(NodeOptions(settings=("num.partitions",)), {}, "KEY=VALUE", id="no value"),
        pytest.param(NodeOptions(settings=("num.partitions=x",)), {}, "whole number", id="not a number"),
        pytest.param(NodeOptions(settings=("flush=never",)), {}, "group, os", id="not a choice"),
        pytest.param(NodeOptions(), {"ROPEWALK_NO__SUCH": "1"}, "ROPEWALK_NO__SUCH", id="in the environment"),
        pytest.param(NodeOptions(config="/no/such/file"), {}, "/no/such/file", id="no such file"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(
    options: NodeOptions, environment: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidSetting, match=message):
        load(options, environment)


def test_a_file_that_is_not_toml_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "node.toml"
    file.write_text("kafka = = 1")
    with pytest.raises(InvalidSetting, match=r"node\.toml"):
        load(NodeOptions(config=str(file)), {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [("127.0.0.1:9092", ("127.0.0.1", 9092)), ("[::1]:0", ("::1", 0)), (":9092", ("0.0.0.0", 9092))],
)
def test_addresses(text: str, expected: tuple[str, int]) -> None:
    assert parse_address(text, "here") == expected


@pytest.mark.parametrize("text", ["", "host", "host:", "host:x", "host:70000"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match="here"):
        parse_address(text, "here")
