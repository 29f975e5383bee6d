"""What the nodes of a local cluster are told, and where their files are."""

import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from ropewalk.base.errors import InvalidSetting
from ropewalk.local.errors import ImpossiblePlan
from ropewalk.local.etcd import member_command, plan_etcd
from ropewalk.local.plan import NodePlan, plan_nodes
from ropewalk.node.config import load, merged
from ropewalk.node.options import NodeOptions

DIRECTORY = Path("/data")


def plan(
    options: NodeOptions, count: int = 3, *, etcd: Sequence[str] = (), taken: Sequence[int] = ()
) -> list[NodePlan]:
    return plan_nodes(
        merged(options, {}),
        count,
        directory=DIRECTORY,
        etcd=etcd,
        log_format="json",
        free_ports=lambda _host, count: range(50_000, 50_000 + count),
        is_free=lambda _host, port: port not in taken,
    )


def of_all(plans: Sequence[NodePlan], name: str) -> list[str | None]:
    return [plan.settings.get(name) for plan in plans]


def test_ports_follow_and_data_is_apart() -> None:
    plans = plan(NodeOptions(kafka="h:100", http="h:200", sqs="h:400", peer="h:300"))
    assert of_all(plans, "kafka.listen") == ["h:100", "h:101", "h:102"]
    assert of_all(plans, "http.listen") == ["h:200", "h:201", "h:202"]
    assert of_all(plans, "sqs.listen") == ["h:400", "h:401", "h:402"]
    assert of_all(plans, "peer.listen") == ["h:300", "h:301", "h:302"]
    assert of_all(plans, "node.id") == ["0", "1", "2"]
    assert of_all(plans, "node.data") == ["/data/node-0", "/data/node-1", "/data/node-2"]


def test_port_0_is_chosen_before_the_nodes_start() -> None:
    plans = plan(NodeOptions(kafka="[::1]:0", http="none"))
    assert of_all(plans, "kafka.listen") == ["[::1]:50000", "[::1]:50001", "[::1]:50002"]
    assert of_all(plans, "http.listen") == ["none", "none", "none"]


def test_doors_that_nobody_chose_make_way_for_others() -> None:
    plans = plan(NodeOptions(), taken=[9645])
    assert of_all(plans, "http.listen") == ["127.0.0.1:50000", "127.0.0.1:50001", "127.0.0.1:50002"]
    assert of_all(plans, "peer.listen") == ["127.0.0.1:9192", "127.0.0.1:9193", "127.0.0.1:9194"]
    chosen = plan(NodeOptions(http="127.0.0.1:9644"), taken=[9645])
    assert of_all(chosen, "http.listen")[1] == "127.0.0.1:9645", "whoever chose it hears that it is taken"


def test_without_etcd_the_first_node_keeps_the_metadata_and_the_others_ask_it() -> None:
    plans = plan(NodeOptions(peer="h:1"))
    assert of_all(plans, "node.roles") == [None, "broker,frontend", "broker,frontend"]
    assert of_all(plans, "cluster.seeds") == [None, "h:1", "h:1"]
    assert of_all(plans, "metadata.home") == ["local"] * 3


def test_with_etcd_all_nodes_are_alike() -> None:
    plans = plan(NodeOptions(peer="h:1"), etcd=("http://a:1", "http://b:2"))
    assert of_all(plans, "node.roles") == [None] * 3
    assert of_all(plans, "cluster.seeds") == ["h:2,h:3", "h:1,h:3", "h:1,h:2"]
    assert of_all(plans, "metadata.etcd.endpoints") == ["http://a:1,http://b:2"] * 3


def test_what_was_said_for_all_reaches_each_and_the_secret_stays_in_its_file(tmp_path: Path) -> None:
    options = NodeOptions(
        settings=("num.partitions=4", "kafka.advertise=public:9000", "cluster.secret=sixteen letters.")
    )
    plans = plan(options)
    assert of_all(plans, "num.partitions") == ["4"] * 3
    assert of_all(plans, "kafka.advertise") == ["public:9000", "public:9001", "public:9002"]
    assert "sixteen letters." not in "".join(each.toml() for each in plans)
    (tmp_path / "secret").write_text("sixteen letters.")
    (tmp_path / "secret").chmod(0o600)
    for each in plans:
        settings = {**each.settings, "cluster.secret.file": str(tmp_path / "secret")}
        file = tmp_path / f"{each.name}.toml"
        file.write_text(NodePlan(each.node_id, settings).toml())
        config = load(NodeOptions(config=str(file)), {})
        assert (config.node_id, config["num.partitions"], config.is_alone) == (each.node_id, "4", False)
        assert config.cluster_secret == b"sixteen letters."


def test_a_value_is_written_so_that_it_is_read_back() -> None:
    odd = 'a "quoted" \\ value\twith = and # and é'
    assert tomllib.loads(NodePlan(0, {"broker.rack": odd}).toml()) == {"broker.rack": odd}


@pytest.mark.parametrize(
    ("options", "count", "message"),
    [
        (NodeOptions(node_id=3), 3, "node.id is each node's own"),
        (NodeOptions(seeds=("a:1",)), 3, "cluster.seeds is each node's own"),
        (NodeOptions(roles=("broker",)), 3, "node.roles is each node's own"),
        (NodeOptions(kafka="h:65534"), 3, "there are no 3 ports from 65534 on"),
        (NodeOptions(), 65, "2 to 64 nodes"),
    ],
)
def test_what_cannot_be_is_refused(options: NodeOptions, count: int, message: str) -> None:
    with pytest.raises(ImpossiblePlan, match=message):
        plan(options, count)


def test_an_address_of_etcd_that_is_none_is_refused_before_anything_starts() -> None:
    with pytest.raises(InvalidSetting, match="--etcd: 'nonsense' does not begin with http://"):
        plan(NodeOptions(), etcd=["nonsense"])


def test_members_of_etcd_are_found_again_where_they_were(tmp_path: Path) -> None:
    members = plan_etcd(tmp_path)
    assert plan_etcd(tmp_path) == members
    assert len({port for member in members for port in (member.client_port, member.peer_port)}) == 6
    command = member_command("etcd", members[1], members, tmp_path)
    assert command[command.index("--listen-client-urls") + 1] == members[1].url
    assert command[command.index("--initial-cluster") + 1].count("=http://127.0.0.1:") == 3


def test_listeners_with_names_get_free_ports_on_every_node() -> None:
    chosen = ("listeners=PLAINTEXT://h:0,SSL://h:0",)
    plans = plan(NodeOptions(settings=chosen), count=2)
    assert of_all(plans, "listeners") == [
        "PLAINTEXT://h:50000,SSL://h:50001",
        "PLAINTEXT://h:50002,SSL://h:50003",
    ]
    assert of_all(plans, "kafka.listen") == [None, None]
    with pytest.raises(ImpossiblePlan, match="several nodes take listeners with port 0 only"):
        plan(NodeOptions(settings=("listeners=PLAINTEXT://h:1",)))
    with pytest.raises(ImpossiblePlan, match="first listener, which must be a plain one"):
        plan(NodeOptions(settings=("kafka.security.protocol=SSL",)))
