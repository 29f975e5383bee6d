"""Rules about nodes and about what decides: who can be reached, who answers, who is left behind."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from ropewalk.base.loopback import is_loopback
from ropewalk.views.asking import is_behind
from ropewalk.views.diagnosis.facts import Facts, NodeFacts
from ropewalk.views.diagnosis.rule import Rule, Sighting, Verdict

_CONTROLLER: Final = "controller"
_FENCED: Final = "fenced"
"""A node of which nothing else is said: that it cannot be reached follows from it, or is why."""
_NODES_WITH_SPARE: Final = 3
"""From so many on a cluster is meant to outlive one of them."""
_LOCAL_NAMES: Final = ("localhost",)


def _client_settings(facts: Facts) -> Iterator[Sighting]:
    if facts.client_problem is not None:
        yield Sighting("client settings", facts.client_problem)


def _unreached(facts: Facts) -> Iterator[Sighting]:
    for each in facts.asked:
        if each.problem is not None:
            yield Sighting(each.where, each.problem)


def _silent_cluster(facts: Facts) -> Iterator[Sighting]:
    if facts.silence is not None:
        yield Sighting("cluster", facts.silence)


def _unreached_nodes(facts: Facts) -> Iterator[Sighting]:
    for node in facts.nodes:
        if node.reached is not None and node.reached.problem is not None and node.node.state != _FENCED:
            yield Sighting(node.reached.where, node.reached.problem)


def _silent_nodes(facts: Facts) -> Iterator[Sighting]:
    for node in facts.nodes:
        if node.silence is not None and node.node.state not in ("left", _FENCED):
            yield Sighting(node.where, node.silence)


def _one_address(facts: Facts) -> Iterator[Sighting]:
    brokers = [node for node in _active(facts) if node.node.address is not None]
    if len(facts.asked) == 1 and len(brokers) >= _NODES_WITH_SPARE:
        yield Sighting(
            "bootstrap",
            f"{facts.asked[0].address} alone was named, of {len(brokers)} nodes that clients reach",
        )


def _loopback_addresses(facts: Facts) -> Iterator[Sighting]:
    local = {
        node.node.node_id: _is_local(node.node.address.host)
        for node in facts.nodes
        if node.node.address is not None
    }
    if any(local.values()) and not all(local.values()):
        for node in facts.nodes:
            if local.get(node.node.node_id):
                yield Sighting(
                    node.where, f"tells clients to connect to {node.node.address}, and others do not"
                )


def _shared_addresses(facts: Facts) -> Iterator[Sighting]:
    counts = Counter(str(node.node.address) for node in _active(facts) if node.node.address is not None)
    for address, count in counts.items():
        if count > 1:
            yield Sighting("cluster", f"{count} nodes tell clients to connect to {address}")


def _no_controller(facts: Facts) -> Iterator[Sighting]:
    if facts.membership is not None and facts.membership.controller is None:
        yield Sighting("cluster", "no node decides")


def _two_controllers(facts: Facts) -> Iterator[Sighting]:
    deciding = [
        str(node.node.node_id)
        for node in facts.nodes
        if node.answer is not None and node.answer.answerer is not None and node.answer.answerer.decides
    ]
    if len(deciding) > 1:
        yield Sighting("cluster", f"nodes {', '.join(deciding)} each say that they decide")


def _old_knowledge(facts: Facts) -> Iterator[Sighting]:
    for node in facts.nodes:
        answerer = None if node.answer is None else node.answer.answerer
        if answerer is not None and answerer.age_ms > answerer.session_timeout_ms:
            yield Sighting(
                node.where,
                f"ropewalk {answerer.version}, heard the controller {answerer.age_ms / 1000:.1f} s ago",
            )


def _behind(facts: Facts) -> Iterator[Sighting]:
    for node in facts.nodes:
        best = facts.membership
        if best is not None and node.answer is not None and is_behind(node.answer, best):
            here, there = node.answer.metadata_offset, best.metadata_offset
            yield Sighting(node.where, f"its metadata ends at {here}, the controller's at {there}")


def _fenced(facts: Facts) -> Iterator[Sighting]:
    for node in facts.nodes:
        if node.node.state == _FENCED:
            why = "" if node.silence is None else f"; {node.silence}"
            yield Sighting(node.where, f"is out of service: the controller does not hear of it{why}")


def _unwell(facts: Facts) -> Iterator[Sighting]:
    for node in facts.nodes:
        if node.answer is not None and node.answer.answerer is not None:
            for problem in node.answer.answerer.problems:
                yield Sighting(f"{node.where} {problem.check}", problem.problem)


def _warned(facts: Facts) -> Iterator[Sighting]:
    for node in facts.nodes:
        if node.answer is not None and node.answer.answerer is not None:
            for warning in node.answer.answerer.warnings:
                yield Sighting(f"{node.where} settings", warning)


def _versions(facts: Facts) -> Iterator[Sighting]:
    versions = sorted({node.node.version for node in _active(facts) if node.node.version})
    if len(versions) > 1:
        yield Sighting("versions of nodes", f"they differ: {', '.join(versions)}")


def _level(facts: Facts) -> Iterator[Sighting]:
    best = facts.membership
    maxima = [node.node.level_max for node in _active(facts)]
    if best is not None and best.level and maxima and min(maxima) > best.level:
        how = f"finalising is {best.finalize}" if best.finalize else "nobody has finalised"
        yield Sighting("level", f"all nodes know level {min(maxima)}, and {best.level} is in force; {how}")


def _maintenance(facts: Facts) -> Iterator[Sighting]:
    for node in _active(facts):
        if node.node.in_maintenance:
            yield Sighting(node.where, "is in maintenance: it leads nothing")


def _controller_count(facts: Facts) -> Iterator[Sighting]:
    count = sum(_CONTROLLER in node.node.roles for node in _members(facts))
    if count and len(_members(facts)) >= _NODES_WITH_SPARE and count < 2:
        yield Sighting("cluster", f"of {len(_members(facts))} nodes only 1 may decide")


def _some_racks(facts: Facts) -> Iterator[Sighting]:
    missing = [str(node.node.node_id) for node in _members(facts) if not node.node.rack]
    if missing and len(missing) < len(_members(facts)):
        yield Sighting("racks", f"nodes {', '.join(missing)} do not say where they stand, and others do")


def _lost(facts: Facts) -> Iterator[Sighting]:
    losses = () if facts.membership is None else facts.membership.losses
    for loss in losses:
        where = f"{loss.topic or '(deleted)'}-{loss.partition}"
        yield Sighting(where, f"{loss.reason} (leader {loss.leader})")


def _unlearnt(facts: Facts) -> Iterator[Sighting]:
    for each in facts.unlearnt:
        yield Sighting("not looked at", each)


def _members(facts: Facts) -> list[NodeFacts]:
    return [node for node in facts.nodes if node.node.state != "left"]


def _active(facts: Facts) -> list[NodeFacts]:
    return [node for node in facts.nodes if node.node.state == "active"]


def _is_local(host: str) -> bool:
    return host in _LOCAL_NAMES or is_loopback(host)


CLUSTER_RULES: Final = (
    Rule(
        name="client-settings",
        verdict=Verdict.WRONG,
        sees="What was said of TLS or of the login cannot be used.",
        why="No command can connect with it.",
        command="mend the profile, the options `-X` or the environment",
        page="reference/commands.md#profiles",
        look=_client_settings,
    ),
    Rule(
        name="bootstrap-unreachable",
        verdict=Verdict.WRONG,
        sees="An address that the command was given does not answer.",
        why="Programs that are given this address alone cannot begin.",
        command="ropewalk up, or --bootstrap with the address of a node that runs",
        page="operating/when-something-is-wrong.md#clients-are-refused",
        look=_unreached,
    ),
    Rule(
        name="cluster-silent",
        verdict=Verdict.WRONG,
        sees="A node can be reached, and does not tell of the cluster.",
        why="Either it is not ready yet, or whoever asks may not ask.",
        command="ropewalk cluster status",
        page="operating/when-something-is-wrong.md#it-starts-and-complains",
        look=_silent_cluster,
    ),
    Rule(
        name="node-unreachable",
        verdict=Verdict.WRONG,
        sees="A node cannot be reached from here by the address that clients are given.",
        why="Clients connect to that address, whichever they began with: what the node leads is out of their reach.",
        command="set kafka.advertise (or advertised.listeners) of the node to an address that clients can reach",
        page="operating/running-a-node.md#who-can-reach-it",
        look=_unreached_nodes,
    ),
    Rule(
        name="node-silent",
        verdict=Verdict.WRONG,
        sees="A node does not answer within three seconds.",
        why="It hangs, is overloaded or cut off; what it leads waits for it until it is fenced.",
        command="ropewalk cluster health",
        page="operating/monitoring.md#a-slow-node",
        look=_silent_nodes,
    ),
    Rule(
        name="bootstrap-single",
        verdict=Verdict.ODD,
        sees="One address was given, of a cluster of three nodes or more.",
        why="A program that is given one address cannot begin while that node is away.",
        command="name several with --bootstrap, ROPEWALK_BOOTSTRAP or a profile",
        page="reference/commands.md#profiles",
        look=_one_address,
    ),
    Rule(
        name="address-loopback",
        verdict=Verdict.WRONG,
        sees="A node tells clients to connect to the loopback, while others of the cluster do not.",
        why="A client on another machine connects to itself, and finds nobody there or somebody else.",
        command="set kafka.advertise of the node",
        page="operating/running-a-node.md#who-can-reach-it",
        look=_loopback_addresses,
    ),
    Rule(
        name="address-shared",
        verdict=Verdict.WRONG,
        sees="Two nodes tell clients to connect to the same address.",
        why="Clients reach one of them under the name of the other, and are sent away.",
        command="set kafka.advertise of each node to an address of its own",
        page="operating/running-a-node.md#who-can-reach-it",
        look=_shared_addresses,
    ),
    Rule(
        name="controller-missing",
        verdict=Verdict.WRONG,
        sees="No node decides for the cluster.",
        why="What is led is served; nothing can change, and a partition whose leader fails gets no other.",
        command="ropewalk cluster health",
        page="operating/when-something-is-wrong.md#it-starts-and-complains",
        look=_no_controller,
    ),
    Rule(
        name="controllers-two",
        verdict=Verdict.WRONG,
        sees="More than one node says that it decides.",
        why="Only the one with the newest epoch can change anything; the other is cut off and does not know.",
        command="ropewalk cluster status -b HOST:PORT of each, and stop the one with the lower epoch",
        page="reference/alerts.md#ropewalktwocontrollers",
        look=_two_controllers,
    ),
    Rule(
        name="knowledge-old",
        verdict=Verdict.WRONG,
        sees="A node has not heard the controller for longer than node.session.timeout.ms.",
        why="It may send clients to leaders that are none any more, and what it says of the cluster may be wrong.",
        command="look at the network between the node and the controller, and at etcd where the metadata is there",
        page="reference/alerts.md#ropewalkcontrollerunheard",
        look=_old_knowledge,
    ),
    Rule(
        name="node-behind",
        verdict=Verdict.WRONG,
        sees="A node lacks records of the metadata, asked again and again.",
        why="It answers by what the cluster was.",
        command="see its journal for what it cannot read; start it again if it does not come back",
        page="reference/alerts.md#ropewalknodebehind",
        look=_behind,
    ),
    Rule(
        name="node-fenced",
        verdict=Verdict.WRONG,
        sees="A node is out of service.",
        why="There is one copy less of everything that it holds.",
        command="start it again, or ropewalk cluster remove NODE if it is gone for good",
        page="operating/cluster.md#replace-a-node",
        look=_fenced,
    ),
    Rule(
        name="node-unwell",
        verdict=Verdict.WRONG,
        sees="A node says that something is wrong with it, as its /healthz does.",
        why="It knows best.",
        command="ask /healthz?verbose of the node",
        page="operating/monitoring.md#health",
        look=_unwell,
    ),
    Rule(
        name="node-warned",
        verdict=Verdict.ODD,
        sees="A node warned at its start of its addresses, or has settings that the cluster has otherwise.",
        why="Clients may be sent to the wrong place, anybody may enter, or what its file says does not count.",
        command="ropewalk cluster config show --node NODE, beside the file of the node",
        page="operating/running-a-node.md#who-can-reach-it",
        look=_warned,
    ),
    Rule(
        name="versions-differ",
        verdict=Verdict.ODD,
        sees="Nodes are of different versions.",
        why="That is for the time of an upgrade: neighbouring releases work together, others do not.",
        command="ropewalk cluster upgrade status",
        page="operating/upgrading.md#node-by-node",
        look=_versions,
    ),
    Rule(
        name="level-waiting",
        verdict=Verdict.ODD,
        sees="All nodes know a higher level than the one in force.",
        why="What the newer release brought is not there yet; before the next upgrade the level has to be in force.",
        command="ropewalk cluster upgrade finalize",
        page="operating/upgrading.md#finalising",
        look=_level,
    ),
    Rule(
        name="node-in-maintenance",
        verdict=Verdict.ODD,
        sees="A node is in maintenance.",
        why="The others carry what it led; it is easily forgotten.",
        command="ropewalk cluster maintenance off NODE",
        page="operating/upgrading.md#working-on-a-node",
        look=_maintenance,
    ),
    Rule(
        name="controller-alone",
        verdict=Verdict.ODD,
        sees="Of three nodes or more only one may decide.",
        why="While it is away no partition gets another leader, and no topic can be made.",
        command="give other nodes the role controller, with the metadata in etcd",
        page="operating/etcd.md",
        look=_controller_count,
    ),
    Rule(
        name="racks-partial",
        verdict=Verdict.ODD,
        sees="Some nodes say in which rack they stand, and some do not.",
        why="Replicas are spread over racks only as far as racks are known.",
        command="set broker.rack (--rack) of every node",
        page="operating/cluster.md#deploy-three-nodes",
        look=_some_racks,
    ),
    Rule(
        name="records-lost",
        verdict=Verdict.ODD,
        sees="A replica had to lead that may have lacked acknowledged records.",
        why="Readers may miss records, or have read some that are gone.",
        command="ropewalk cluster health --all",
        page="operating/cluster.md#when-nobody-may-lead-a-partition",
        look=_lost,
    ),
    Rule(
        name="not-looked-at",
        verdict=Verdict.ODD,
        sees="Something could not be asked for.",
        why="Rules that need it have nothing to say, which is no good news.",
        command="run it again as somebody who may DESCRIBE the cluster, topics and groups",
        page="guides/rights.md",
        look=_unlearnt,
    ),
)
