"""A healthy cluster as facts, and for each rule of the doctor what makes it speak, and what comes close and does not."""

from collections.abc import Mapping
from typing import Final

from msgspec import structs

from ropewalk.base.ids import NodeId
from ropewalk.client.administration.membership import (
    Answerer,
    Loss,
    Membership,
    Node,
    PartitionState,
    Problem,
    TopicState,
)
from ropewalk.client.connections.address import Address
from ropewalk.views.diagnosis.facts import (
    ConfiguredSetting,
    Directory,
    Facts,
    GroupFacts,
    Machine,
    NodeFacts,
    Reached,
    TopicFacts,
)
from ropewalk.views.diagnosis.figures import Figures

GIB: Final = 1 << 30
FIGURES: Final = """\
# HELP ropewalk_ready 1 while the node is ready.
ropewalk_ready 1
ropewalk_clock_difference_seconds 0.01
ropewalk_disk_full 0
process_open_fds 100
process_max_fds 1000
ropewalk_buffer_bytes 10
ropewalk_buffer_limit_bytes 100
ropewalk_retention_used_ratio{by="bytes"} 1.2
ropewalk_certificate_seconds_left{file="node.pem"} 8000000
ropewalk_served_total{kind="produce"} 100000
ropewalk_served_badly_total{kind="produce"} 1
ropewalk_logins_total 10
ropewalk_logins_failed_total 1
ropewalk_queue_oldest_message_age_seconds{queue="jobs"} 10
ropewalk_queue_dead_messages{queue="jobs"} 0
"""


def _node(node_id: int) -> NodeFacts:
    node = Node(
        NodeId(node_id),
        "active",
        Address(f"b{node_id}.example.org", 9092),
        f"rack-{node_id}",
        ("broker", "controller"),
        1,
        (),
        "0.2.0",
        1,
        2,
    )
    return NodeFacts(
        node=node,
        reached=Reached(f"broker {node_id}", str(node.address), None, "answered"),
        answer=_answer(node_id),
        figures=Figures(FIGURES),
        directories=(Directory("/data", 50 * GIB, 100 * GIB, file_system="ext4"),),
    )


def _answer(node_id: int, **changes: object) -> Membership:
    answerer = Answerer(NodeId(node_id), "0.2.0", node_id == 0, 100, 50, 50, 9_000)
    return Membership(
        "abc", NodeId(0), 3, 50, (), (), structs.replace(answerer, **changes), level=2, finalize="auto"
    )


def _partition(index: int, leader: int | None = None, **changes: object) -> PartitionState:
    nodes = tuple(NodeId((index + each) % 3) for each in range(3))
    lead = nodes[0] if leader is None else NodeId(leader)
    state = PartitionState(index, lead, 1, nodes, nodes, (), (), (), (), (), 2)
    return structs.replace(state, **changes)


def _topic(
    *partitions: PartitionState, settings: Mapping[str, str] | None = None, internal: bool = False
) -> TopicFacts:
    said = {
        "cleanup.policy": "delete",
        "retention.ms": "604800000",
        "retention.bytes": "-1",
        "flush": "group",
    }
    state = TopicState("orders", internal, None, None, None, partitions)
    return TopicFacts(state=state, settings=said | dict(settings or {}))


_MACHINE: Final = Machine(
    versions="Python 3",
    has_uvloop=True,
    descriptors=100_000,
    clock_ms=1_800_000_000_000,
    directory=Directory("/data", 50 * GIB, 100 * GIB, file_system="ext4"),
)
HEALTHY: Final = Facts(
    machine=_MACHINE,
    asked=(
        Reached("bootstrap", "b0.example.org:9092", None, "answered"),
        Reached("bootstrap", "b1.example.org:9092", None, "answered"),
    ),
    membership=_answer(0),
    nodes=tuple(_node(each) for each in range(3)),
    topics=(_topic(*(_partition(each) for each in range(12))),),
    groups=(GroupFacts(name="billing", state="Stable", member_count=2, lag=5),),
)


def _with(**changes: object) -> Facts:
    return structs.replace(HEALTHY, **changes)


def _machine(**changes: object) -> Facts:
    return _with(machine=structs.replace(_MACHINE, **changes))


def _local(**changes: object) -> Facts:
    assert _MACHINE.directory is not None
    return _machine(directory=structs.replace(_MACHINE.directory, **changes))


def _second(**changes: object) -> Facts:
    """Node 1 has it, the others have not."""
    first, second, third = HEALTHY.nodes
    return _with(nodes=(first, structs.replace(second, **changes), third))


def _as(**changes: object) -> Facts:
    return _second(node=structs.replace(HEALTHY.nodes[1].node, **changes))


def _fenced(**changes: object) -> Facts:
    return _second(node=structs.replace(HEALTHY.nodes[1].node, state="fenced"), **changes)


def _saying(**changes: object) -> Facts:
    return _second(answer=_answer(1, **changes))


def _showing(line: str) -> Facts:
    """Figures of node 1 have this line, and no other for the same name and labels."""
    name = line.rpartition(" ")[0]
    others = [each for each in FIGURES.splitlines() if not each.startswith(f"{name} ")]
    return _second(figures=Figures("\n".join([*others, line])))


def _measured(name: str, bound: str, within: int, total: int) -> Facts:
    return _second(
        figures=Figures(f'{FIGURES}{name}_bucket{{le="{bound}"}} {within}\n{name}_count {total}\n')
    )


def _directory(**changes: object) -> Facts:
    return _second(directories=(structs.replace(HEALTHY.nodes[1].directories[0], **changes),))


def _holding(*partitions: PartitionState, settings: Mapping[str, str] | None = None) -> Facts:
    return _with(topics=(_topic(*partitions, settings=settings),))


def _group(**changes: object) -> Facts:
    return _with(groups=(structs.replace(HEALTHY.groups[0], **changes),))


_REFUSED: Final = Reached("bootstrap", "b9.example.org:9092", "nobody answers")
_ODD_SETTING: Final = ConfiguredSetting("flush", "os", "--set", "a power cut")
_FEW: Final = tuple(NodeId(each) for each in (0, 1))
_HUNDRED: Final = tuple(_partition(each) for each in range(6_001))
_ONE_RACK: Final = tuple(
    structs.replace(each, node=structs.replace(each.node, rack="a" if each.node.node_id < 2 else "b"))
    for each in HEALTHY.nodes
)

CASES: Final[dict[str, tuple[Facts, Facts]]] = {
    "client-settings": (Facts(client_problem="no such file"), HEALTHY),
    "bootstrap-unreachable": (_with(asked=(*HEALTHY.asked, _REFUSED)), HEALTHY),
    "cluster-silent": (Facts(asked=HEALTHY.asked, silence="not allowed"), Facts(asked=HEALTHY.asked)),
    "node-unreachable": (_second(reached=_REFUSED), _fenced(reached=_REFUSED)),
    "node-silent": (_second(answer=None, silence="no answer"), _fenced(answer=None, silence="no answer")),
    "bootstrap-single": (
        _with(asked=HEALTHY.asked[:1]),
        _with(asked=HEALTHY.asked[:1], nodes=HEALTHY.nodes[:2]),
    ),
    "address-loopback": (
        _as(address=Address("127.0.0.1", 9092)),
        _with(
            nodes=tuple(
                structs.replace(each, node=structs.replace(each.node, address=Address("::1", 9092 + index)))
                for index, each in enumerate(HEALTHY.nodes)
            )
        ),
    ),
    "address-shared": (
        _as(address=Address("b0.example.org", 9092)),
        _as(address=Address("b0.example.org", 9093)),
    ),
    "controller-missing": (
        _with(membership=structs.replace(_answer(0), controller=None)),
        _with(membership=None),
    ),
    "controllers-two": (_saying(decides=True), _saying(decides=False)),
    "knowledge-old": (_saying(age_ms=9_001), _saying(age_ms=9_000)),
    "node-behind": (
        _second(answer=structs.replace(_answer(1), metadata_offset=49)),
        _second(answer=structs.replace(_answer(1), metadata_offset=51)),
    ),
    "node-fenced": (_as(state="fenced"), _as(state="stopping")),
    "node-unwell": (_saying(problems=(Problem("disk", "is slow"),)), _saying(problems=())),
    "node-warned": (_saying(warnings=("open to all",)), _saying(warnings=())),
    "versions-differ": (_as(version="0.3.0"), _as(version="0.3.0", state="left")),
    "level-waiting": (
        _with(membership=structs.replace(_answer(0), level=1)),
        _with(membership=structs.replace(_answer(0), level=0)),
    ),
    "node-in-maintenance": (_as(in_maintenance=True), _as(in_maintenance=True, state="left")),
    "controller-alone": (
        _with(
            nodes=(
                HEALTHY.nodes[0],
                *(
                    structs.replace(each, node=structs.replace(each.node, roles=("broker",)))
                    for each in HEALTHY.nodes[1:]
                ),
            )
        ),
        _as(roles=("broker",)),
    ),
    "racks-partial": (
        _as(rack=None),
        _with(
            nodes=tuple(
                structs.replace(each, node=structs.replace(each.node, rack=None)) for each in HEALTHY.nodes
            )
        ),
    ),
    "records-lost": (
        _with(
            membership=structs.replace(
                _answer(0), losses=(Loss("orders", 1, NodeId(2), 3, 0, "an unclean election"),)
            )
        ),
        HEALTHY,
    ),
    "not-looked-at": (_with(unlearnt=("groups: not allowed",)), HEALTHY),
    "partitions-leaderless": (_holding(structs.replace(_partition(0), leader=None)), _holding(_partition(0))),
    "partitions-below-minimum": (
        _holding(_partition(0, isr=(NodeId(0),))),
        _holding(_partition(0, isr=_FEW)),
    ),
    "partitions-under-replicated": (
        _holding(_partition(0, isr=_FEW)),
        _holding(_partition(0, isr=_FEW, adding=(NodeId(2),))),
    ),
    "leaders-unpreferred": (_holding(_partition(0, leader=1)), _holding(_partition(1, leader=1))),
    "partitions-moving": (_holding(_partition(0, adding=(NodeId(2),))), HEALTHY),
    "replicas-single": (
        _holding(_partition(0, replicas=(NodeId(0),), isr=(NodeId(0),), minimum_in_sync=1)),
        structs.replace(
            _holding(_partition(0, replicas=(NodeId(0),), isr=(NodeId(0),), minimum_in_sync=1)),
            nodes=HEALTHY.nodes[:2],
        ),
    ),
    "replicas-without-spare": (
        _holding(_partition(0, minimum_in_sync=3)),
        _holding(_partition(0, replicas=(NodeId(0),), isr=(NodeId(0),), minimum_in_sync=1)),
    ),
    "minimum-is-one": (
        _holding(_partition(0, minimum_in_sync=1)),
        _holding(_partition(0, replicas=_FEW, isr=_FEW, minimum_in_sync=1)),
    ),
    "replicas-in-one-rack": (
        structs.replace(_holding(_partition(0, replicas=_FEW, isr=_FEW)), nodes=_ONE_RACK),
        structs.replace(_holding(_partition(0)), nodes=_ONE_RACK),
    ),
    "leaders-uneven": (
        _holding(*(_partition(each, leader=each % 2) for each in range(12))),
        _holding(*(_partition(each, leader=each % 2) for each in range(11))),
    ),
    "partitions-many": (_holding(*_HUNDRED), _holding(*_HUNDRED[:6_000])),
    "election-unclean": (
        _holding(_partition(0), settings={"unclean.leader.election.enable": "true"}),
        _with(
            topics=(
                _topic(_partition(0), settings={"unclean.leader.election.enable": "true"}, internal=True),
            )
        ),
    ),
    "flush-by-system": (
        _holding(_partition(0), settings={"flush": "os"}),
        _with(topics=(structs.replace(_topic(_partition(0)), settings=None),)),
    ),
    "retention-unbounded": (
        _holding(_partition(0), settings={"retention.ms": "-1"}),
        _holding(_partition(0), settings={"retention.ms": "-1", "cleanup.policy": "compact"}),
    ),
    "compaction-idle": (
        _holding(_partition(0), settings={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1.0"}),
        _holding(_partition(0), settings={"min.cleanable.dirty.ratio": "1.0"}),
    ),
    "group-abandoned": (_group(member_count=0), _group(member_count=0, lag=0)),
    "group-lagging": (_group(lag=10_001), _group(lag=10_000)),
    "group-rebalancing": (_group(state="PreparingRebalance"), _group(state="Empty")),
    "figures-unread": (_second(figures=None, figures_problem="401"), _second(figures=None)),
    "node-not-ready": (_showing("ropewalk_ready 0"), _second(figures=Figures(""))),
    "metadata-parted": (_showing("ropewalk_metadata_parted 1"), _showing("ropewalk_metadata_parted 0")),
    "clock-differs": (
        _showing("ropewalk_clock_difference_seconds -3600"),
        _showing("ropewalk_clock_difference_seconds -0.2"),
    ),
    "loop-stalls": (
        _measured("ropewalk_loop_delay_seconds", "0.05", 980, 1_000),
        _measured("ropewalk_loop_delay_seconds", "0.05", 0, 999),
    ),
    "descriptors-used": (_showing("process_open_fds 801"), _showing("process_open_fds 800")),
    "buffers-used": (_showing("ropewalk_buffer_bytes 91"), _showing("ropewalk_buffer_bytes 90")),
    "node-wanted": (_showing("ropewalk_nodes_wanted 1"), _showing("ropewalk_nodes_wanted 0")),
    "telemetry-failing": (
        _showing("ropewalk_telemetry_failures_total 2"),
        _showing("ropewalk_telemetry_failures_total 0"),
    ),
    "notices-dropped": (
        _showing('ropewalk_alert_notices_total{outcome="dropped"} 1'),
        _showing('ropewalk_alert_notices_total{outcome="failed"} 1'),
    ),
    "disk-full": (_showing("ropewalk_disk_full 1"), _showing("ropewalk_disk_full 0")),
    "disk-low": (_directory(usable_bytes=9 * GIB), _directory(usable_bytes=11 * GIB)),
    "directory-failed": (_directory(error="KAFKA_STORAGE_ERROR"), HEALTHY),
    "directory-open": (_directory(is_open_to_others=True), HEALTHY),
    "files-synced-singly": (
        _directory(file_system="overlay", syncs_at_once=False),
        _directory(file_system=None, syncs_at_once=False),
    ),
    "disk-slow": (
        _measured("ropewalk_sync_duration_seconds", "0.25", 989, 1_000),
        _measured("ropewalk_sync_duration_seconds", "0.25", 991, 1_000),
    ),
    "partitions-damaged": (
        _showing("ropewalk_partitions_damaged 1"),
        _showing("ropewalk_partitions_damaged 0"),
    ),
    "partitions-unopened": (
        _showing("ropewalk_partitions_unopened 1"),
        _showing("ropewalk_partitions_unopened 0"),
    ),
    "retention-behind": (
        _showing('ropewalk_retention_used_ratio{by="bytes"} 1.6'),
        _showing('ropewalk_retention_used_ratio{by="bytes"} 1.5'),
    ),
    "certificate-ends": (
        _showing('ropewalk_certificate_seconds_left{file="node.pem"} 600000'),
        _showing('ropewalk_certificate_seconds_left{file="node.pem"} 605000'),
    ),
    "requests-fail": (
        _showing('ropewalk_served_badly_total{kind="produce"} 101'),
        _showing('ropewalk_served_badly_total{kind="produce"} 100'),
    ),
    "logins-refused": (
        _showing("ropewalk_logins_failed_total 11"),
        _showing("ropewalk_logins_failed_total 10"),
    ),
    "sessions-refused": (
        _showing("ropewalk_fetch_sessions_refused_total 1"),
        _showing("ropewalk_fetch_sessions_refused_total 0"),
    ),
    "transactions-hanging": (
        _showing("ropewalk_partitions_with_hanging_transactions 1"),
        _showing("ropewalk_partitions_with_hanging_transactions 0"),
    ),
    "queue-old": (
        _showing('ropewalk_queue_oldest_message_age_seconds{queue="jobs"} 3601'),
        _showing('ropewalk_queue_oldest_message_age_seconds{queue="jobs"} 3600'),
    ),
    "queue-dead-letters": (
        _showing('ropewalk_queue_dead_messages{queue="jobs"} 1'),
        _showing('ropewalk_queue_dead_messages{queue="jobs"} 0'),
    ),
    "queue-without-dead-letters": (
        _showing('ropewalk_queue_dlq_missing{queue="jobs"} 1'),
        _showing('ropewalk_queue_dlq_missing{queue="jobs"} 0'),
    ),
    "queue-window-full": (
        _showing('ropewalk_queue_windows_full{queue="jobs"} 1'),
        _showing('ropewalk_queue_windows_full{queue="jobs"} 0'),
    ),
    "settings-refused": (_machine(settings_problem="there is no setting"), Facts()),
    "addresses-exposed": (_machine(warnings=("open to all",)), _machine(warnings=())),
    "settings-surprise": (_machine(surprising=(_ODD_SETTING,)), _machine(idle=(_ODD_SETTING,))),
    "settings-idle": (_machine(idle=(_ODD_SETTING,)), _machine(surprising=(_ODD_SETTING,))),
    "loop-of-python": (_machine(has_uvloop=False), Facts()),
    "descriptors-few": (_machine(descriptors=1_024), _machine(descriptors=None)),
    "clock-unset": (_machine(clock_ms=0), Facts()),
    "data-unwritable": (
        _machine(is_directory_writable=False),
        _machine(is_directory_writable=False, directory=None),
    ),
    "data-disk-low": (_local(usable_bytes=GIB - 1), _local(usable_bytes=GIB)),
    "data-open": (_local(is_open_to_others=True), _machine(directory=None)),
    "data-synced-singly": (
        _local(file_system="overlay", syncs_at_once=False),
        _local(file_system=None, syncs_at_once=False),
    ),
}
"""By the rule's name: where it speaks, and where it is silent."""
