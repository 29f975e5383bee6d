"""Rules about topics, their partitions and settings, and about groups."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ropewalk.client.administration.membership import PartitionState
from ropewalk.views.diagnosis.facts import Facts, TopicFacts
from ropewalk.views.diagnosis.rule import Rule, Sighting, Verdict

_NAMED_MAX: Final = 10
_NODES_WITH_SPARE: Final = 3
_REPLICAS_WITH_SPARE: Final = 3
_LEADERS_UNEVEN: Final = 2.0
"""Times the fewest that a node leads."""
_LEADERS_MIN: Final = 12
"""Fewer partitions than that are never quite even."""
_PARTITIONS_PER_NODE_MAX: Final = 6_000
"""With so many a node was measured."""
_LAG_MAX: Final = 10_000


def _where(facts: Facts, holds: Callable[[PartitionState], bool], what: str) -> Iterator[Sighting]:
    """One sighting for each topic that has such partitions."""
    for topic in facts.topics:
        indexes = [str(each.index) for each in topic.state.partitions if holds(each)]
        if indexes:
            yield Sighting(
                topic.state.name,
                f"{what}: {len(indexes)} of {len(topic.state.partitions)} ({_some(indexes)})",
            )


def _leaderless(facts: Facts) -> Iterator[Sighting]:
    return _where(facts, lambda each: each.leader is None, "partitions that nobody leads")


def _below_minimum(facts: Facts) -> Iterator[Sighting]:
    return _where(
        facts,
        lambda each: each.leader is not None and len(each.isr) < each.minimum_in_sync,
        "partitions with fewer replicas in sync than min.insync.replicas",
    )


def _under_replicated(facts: Facts) -> Iterator[Sighting]:
    return _where(
        facts,
        lambda each: (
            each.leader is not None
            and len(each.isr) >= each.minimum_in_sync
            and any(node not in each.isr for node in each.replicas if node not in each.adding)
        ),
        "partitions with replicas that are not in sync",
    )


def _unpreferred(facts: Facts) -> Iterator[Sighting]:
    return _where(
        facts,
        lambda each: each.leader is not None and bool(each.replicas) and each.leader != each.replicas[0],
        "partitions that another than the first replica leads",
    )


def _moving(facts: Facts) -> Iterator[Sighting]:
    return _where(facts, lambda each: bool(each.adding or each.removing), "partitions that are being moved")


def _single(facts: Facts) -> Iterator[Sighting]:
    if _node_count(facts) < _NODES_WITH_SPARE:
        return iter(())
    return _where(facts, lambda each: len(each.replicas) == 1, "partitions with one copy")


def _no_spare(facts: Facts) -> Iterator[Sighting]:
    return _where(
        facts,
        lambda each: 1 < len(each.replicas) == each.minimum_in_sync,
        "partitions with as many replicas as min.insync.replicas",
    )


def _one_is_enough(facts: Facts) -> Iterator[Sighting]:
    return _where(
        facts,
        lambda each: len(each.replicas) >= _REPLICAS_WITH_SPARE and each.minimum_in_sync == 1,
        "partitions of three replicas or more with min.insync.replicas=1",
    )


def _one_rack(facts: Facts) -> Iterator[Sighting]:
    racks = {node.node.node_id: node.node.rack for node in facts.nodes if node.node.rack}
    if len(set(racks.values())) < 2:
        return iter(())

    def stands_in_one(partition: PartitionState) -> bool:
        found = [racks.get(each) for each in partition.replicas]
        return len(found) > 1 and None not in found and len(set(found)) == 1

    return _where(facts, stands_in_one, "partitions whose replicas all stand in one rack")


def _uneven(facts: Facts) -> Iterator[Sighting]:
    brokers = [
        node.node.node_id
        for node in facts.nodes
        if node.node.state == "active" and node.node.address is not None and not node.node.in_maintenance
    ]
    leads = Counter(each.leader for topic in facts.topics for each in topic.state.partitions)
    counts = {node_id: leads[node_id] for node_id in brokers}
    if len(counts) < 2 or sum(counts.values()) < _LEADERS_MIN:
        return
    most, least = max(counts.values()), min(counts.values())
    if most > _LEADERS_UNEVEN * max(least, 1):
        listed = ", ".join(f"node {node_id} leads {count}" for node_id, count in sorted(counts.items()))
        yield Sighting("leaders", listed)


def _many(facts: Facts) -> Iterator[Sighting]:
    held = Counter(
        node_id for topic in facts.topics for each in topic.state.partitions for node_id in each.replicas
    )
    for node_id, count in sorted(held.items()):
        if count > _PARTITIONS_PER_NODE_MAX:
            yield Sighting(f"node {node_id}", f"holds {count} partitions")


def _unclean(facts: Facts) -> Iterator[Sighting]:
    return _set_to(facts, "unclean.leader.election.enable", "true")


def _flush(facts: Facts) -> Iterator[Sighting]:
    return _set_to(facts, "flush", "os")


def _for_ever(facts: Facts) -> Iterator[Sighting]:
    for topic in _own(facts):
        said = topic.settings or {}
        if (said.get("retention.ms"), said.get("retention.bytes")) == ("-1", "-1") and said.get(
            "cleanup.policy"
        ) == "delete":
            yield Sighting(topic.state.name, "keeps everything: neither time nor bytes bound it")


def _uncompacted(facts: Facts) -> Iterator[Sighting]:
    for topic in _own(facts):
        said = topic.settings or {}
        if "compact" in said.get("cleanup.policy", "") and said.get("min.cleanable.dirty.ratio") == "1.0":
            yield Sighting(topic.state.name, "is compacted, with min.cleanable.dirty.ratio=1.0")


def _abandoned(facts: Facts) -> Iterator[Sighting]:
    for group in facts.groups:
        if group.member_count == 0 and group.lag:
            yield Sighting(group.name, f"nobody reads for it, and {group.lag} records wait")


def _lagging(facts: Facts) -> Iterator[Sighting]:
    for group in facts.groups:
        if group.member_count and group.lag is not None and group.lag > _LAG_MAX:
            yield Sighting(group.name, f"its {group.member_count} members are {group.lag} records behind")


def _rebalancing(facts: Facts) -> Iterator[Sighting]:
    for group in facts.groups:
        if group.state in ("PreparingRebalance", "CompletingRebalance"):
            yield Sighting(group.name, f"is in {group.state}: nobody in it reads")


def _set_to(facts: Facts, name: str, value: str) -> Iterator[Sighting]:
    for topic in _own(facts):
        if (topic.settings or {}).get(name) == value:
            yield Sighting(topic.state.name, f"{name}={value}")


def _own(facts: Facts) -> Iterator[TopicFacts]:
    return (topic for topic in facts.topics if not topic.state.is_internal)


def _node_count(facts: Facts) -> int:
    return sum(node.node.state == "active" and node.node.address is not None for node in facts.nodes)


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED_MAX]) + (" and more" if len(names) > _NAMED_MAX else "")


TOPIC_RULES: Final = (
    Rule(
        name="partitions-leaderless",
        verdict=Verdict.WRONG,
        sees="Nobody leads a partition.",
        why="Nobody can write to it or read from it.",
        command="start the nodes that hold it; if they are gone for good, ropewalk cluster elect --unclean",
        page="operating/cluster.md#when-nobody-may-lead-a-partition",
        look=_leaderless,
    ),
    Rule(
        name="partitions-below-minimum",
        verdict=Verdict.WRONG,
        sees="A partition has fewer replicas in sync than min.insync.replicas.",
        why="Writes with acks=all are refused.",
        command="ropewalk cluster health names the nodes that are missing",
        page="reference/alerts.md#ropewalkpartitionbelowminimum",
        look=_below_minimum,
    ),
    Rule(
        name="partitions-under-replicated",
        verdict=Verdict.WRONG,
        sees="A replica is not in sync.",
        why="All is served, and the next failure may take the partition out of service.",
        command="ropewalk cluster health",
        page="reference/alerts.md#ropewalkpartitionunderreplicated",
        look=_under_replicated,
    ),
    Rule(
        name="leaders-unpreferred",
        verdict=Verdict.ODD,
        sees="Another replica leads than the first, which is the preferred one.",
        why="After a node was away the others carry more than their share.",
        command="ropewalk cluster elect",
        page="operating/cluster.md#restart-one-by-one",
        look=_unpreferred,
    ),
    Rule(
        name="partitions-moving",
        verdict=Verdict.ODD,
        sees="Partitions are being moved to other nodes.",
        why="Copying takes disk and network; a move whose target is away never ends by itself.",
        command="ropewalk cluster reassign shows moves, with --cancel it gives them up",
        page="operating/cluster.md#grow",
        look=_moving,
    ),
    Rule(
        name="replicas-single",
        verdict=Verdict.ODD,
        sees="A topic has one copy, in a cluster of three nodes or more.",
        why="While its node is away the partition is; if its disk is lost the records are.",
        command="ropewalk cluster reassign TOPIC --to NODE,NODE,NODE",
        page="operating/cluster.md#replace-a-node",
        look=_single,
    ),
    Rule(
        name="replicas-without-spare",
        verdict=Verdict.ODD,
        sees="A topic has as many replicas as must be in sync.",
        why="While any one of their nodes is away, also to be upgraded, writes with acks=all are refused.",
        command="ropewalk topic alter TOPIC --set min.insync.replicas=N, or more replicas",
        page="operating/cluster.md#restart-one-by-one",
        look=_no_spare,
    ),
    Rule(
        name="minimum-is-one",
        verdict=Verdict.ODD,
        sees="Of three replicas one in sync is enough.",
        why="What is acknowledged while the others are away exists once, and is lost with that disk.",
        command="ropewalk topic alter TOPIC --set min.insync.replicas=2",
        page="guides/delivery.md",
        look=_one_is_enough,
    ),
    Rule(
        name="replicas-in-one-rack",
        verdict=Verdict.ODD,
        sees="All replicas of a partition stand in one rack, while the cluster has several.",
        why="They fail together.",
        command="ropewalk cluster balance",
        page="operating/cluster.md#grow",
        look=_one_rack,
    ),
    Rule(
        name="leaders-uneven",
        verdict=Verdict.ODD,
        sees="A node leads more than twice as many partitions as another.",
        why="Its processor and its disk are the bound of the whole cluster.",
        command="ropewalk cluster balance --dry-run",
        page="operating/cluster.md#grow",
        look=_uneven,
    ),
    Rule(
        name="partitions-many",
        verdict=Verdict.ODD,
        sees=f"A node holds more than {_PARTITIONS_PER_NODE_MAX:,} partitions.",
        why="That is more than was measured: starting, electing and telling of them takes longer with each.",
        command="fewer partitions for topics that carry little, or more nodes",
        page="operating/capacity.md#a-cluster",
        look=_many,
    ),
    Rule(
        name="election-unclean",
        verdict=Verdict.ODD,
        sees="A topic lets replicas lead that may lack acknowledged records.",
        why="A failover may lose what was acknowledged, and nobody is asked.",
        command="ropewalk topic alter TOPIC --unset unclean.leader.election.enable",
        page="operating/cluster.md#when-nobody-may-lead-a-partition",
        look=_unclean,
    ),
    Rule(
        name="flush-by-system",
        verdict=Verdict.ODD,
        sees="A topic leaves it to the operating system when records reach the disk.",
        why="A power cut may lose what was acknowledged.",
        command="ropewalk topic alter TOPIC --unset flush",
        page="guides/delivery.md",
        look=_flush,
    ),
    Rule(
        name="retention-unbounded",
        verdict=Verdict.ODD,
        sees="A topic that is not compacted keeps its records for ever.",
        why="The disk fills up some day.",
        command="ropewalk topic alter TOPIC --set retention.ms=604800000",
        page="operating/running-a-node.md#the-disk",
        look=_for_ever,
    ),
    Rule(
        name="compaction-idle",
        verdict=Verdict.ODD,
        sees="A compacted topic waits until all of it is dirty.",
        why="It is hardly ever compacted, and grows.",
        command="ropewalk topic alter TOPIC --unset min.cleanable.dirty.ratio",
        page="operating/running-a-node.md#the-disk",
        look=_uncompacted,
    ),
    Rule(
        name="group-abandoned",
        verdict=Verdict.ODD,
        sees="A group has no members, and records wait for it.",
        why="Its consumers are gone or cannot join. If nobody needs it any more, alerts on its lag are noise.",
        command="start its consumers, or ropewalk group delete GROUP",
        page="guides/consumer-groups.md#forget",
        look=_abandoned,
    ),
    Rule(
        name="group-lagging",
        verdict=Verdict.ODD,
        sees=f"A group with members is more than {_LAG_MAX:,} records behind.",
        why="Its consumers read more slowly than is written, or stand still at a record that they cannot take.",
        command="ropewalk group describe GROUP",
        page="operating/when-something-is-wrong.md#consumers-fall-behind",
        look=_lagging,
    ),
    Rule(
        name="group-rebalancing",
        verdict=Verdict.ODD,
        sees="A group is in the middle of a rebalance.",
        why="If it is again and again, a member takes longer than max.poll.interval.ms, or comes and goes.",
        command="ropewalk group describe GROUP, some times",
        page="operating/when-something-is-wrong.md#consumers-fall-behind",
        look=_rebalancing,
    ),
)
