"""Configuration: four places, one table, and nothing that is silently ignored."""

from pathlib import Path

import pytest

from ropewalk.base.errors import InvalidSetting
from ropewalk.node.addresses import parse_address
from ropewalk.node.config import load
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


SECRET = "cluster.secret=sixteen letters."


def test_a_node_with_a_secret_belongs_to_a_cluster() -> None:
    options = NodeOptions(
        peer="h:1", seeds=("a:9192", "b:9192"), roles=("broker",), node_id=7, rack="r", settings=(SECRET,)
    )
    config = load(options, {})
    assert not config.is_alone
    assert config.peer_listen == ("h", 1)
    assert config.seeds == (("a", 9192), ("b", 9192))
    assert (config.roles, config.node_id, config["broker.rack"]) == (("broker",), 7, "r")
    assert config.cluster_secret == b"sixteen letters."


def test_the_secret_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("sixteen letters.\n")
    named = f"cluster.secret.file={file}"
    file.chmod(0o640)
    with pytest.raises(InvalidSetting, match=r"others than its owner may use .* \(mode 0640\)"):
        load(NodeOptions(settings=(named,)), {})
    file.chmod(0o600)
    assert load(NodeOptions(settings=(named,)), {}).cluster_secret == b"sixteen letters."
    both = load(NodeOptions(settings=(named, "cluster.secret=another sixteen.")), {})
    assert both.cluster_secret == b"another sixteen."
    file.write_text("\n")
    with pytest.raises(InvalidSetting, match="is empty"):
        load(NodeOptions(settings=(named,)), {})
    file.unlink()
    with pytest.raises(InvalidSetting, match="cannot be read"):
        load(NodeOptions(settings=(named,)), {})


def test_a_node_without_a_secret_stands_alone_and_does_not_listen_for_others() -> None:
    config = load(NodeOptions(), {})
    assert config.is_alone
    assert (config.peer_listen, config.seeds, config.etcd_endpoints) == (None, (), ())
    assert config.roles == ("broker", "controller", "frontend")


def test_passwords_are_not_shown() -> None:
    entries = dict(load(NodeOptions(settings=(SECRET,)), {}).entries())
    assert entries["cluster.secret"].shown("cluster.secret") == "(hidden)"
    assert entries["metadata.etcd.password"].shown("metadata.etcd.password") == ""
    assert entries["node.id"].shown("node.id") == "0"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param(("cluster.seeds=a:1",), "needs cluster.secret", id="seeds without a secret"),
        pytest.param(("peer.listen=a:1",), "needs cluster.secret", id="a listener without a secret"),
        pytest.param(("cluster.secret=short",), "has 5 characters", id="a short secret"),
        pytest.param((SECRET, "cluster.seeds=a"), "'a' is not HOST:PORT", id="a seed without a port"),
        pytest.param((SECRET, "cluster.seeds=a:0"), "name the port", id="a seed at port 0"),
        pytest.param((SECRET, "node.roles=broker"), "needs cluster.seeds", id="nobody to follow"),
        pytest.param((SECRET, "node.roles="), "node.roles is empty", id="no role"),
        pytest.param((SECRET, "node.roles=king"), "must be one of", id="an unknown role"),
        pytest.param(
            (SECRET, "metadata.home=etcd"), "needs metadata.etcd.endpoints", id="etcd, but nobody says where"
        ),
        pytest.param(
            (SECRET, "metadata.home=etcd", "metadata.etcd.endpoints=h:2379"),
            "does not begin with http",
            id="an endpoint that is no URL",
        ),
        pytest.param(
            ("node.heartbeat.interval.ms=4000",),
            "at least twice",
            id="a session that ends between heartbeats",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(settings: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        load(NodeOptions(settings=settings), {})


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


@pytest.mark.parametrize(
    ("settings", "wait_ms"),
    [
        ((), "0"),
        (("sqs.credentials=/keys",), "60000"),
        (("sqs.credentials=/keys", "sqs.delete.wait.ms=5"), "5"),
    ],
)
def test_names_of_deleted_queues_rest_where_there_are_keys(settings: tuple[str, ...], wait_ms: str) -> None:
    assert load(NodeOptions(settings=settings), {})["sqs.delete.wait.ms"] == wait_ms


def test_an_account_has_twelve_digits() -> None:
    with pytest.raises(InvalidSetting, match=r"sqs\.account"):
        load(NodeOptions(settings=("sqs.account=12",)), {})
