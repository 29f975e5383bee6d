"""For each rule, samples with which it fires and samples with which it stays quiet.

A series is a function from the number of a sample to its value; None where there is none. The first sample is of a good time.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from ropewalk.alerts.declared import RULES
from ropewalk.alerts.rules import Rule

Course = Callable[[int], float | None]


class Case(NamedTuple):
    rule: Rule
    name: str
    step_s: int
    series: Mapping[str, Course]
    sample_count: int
    """How many samples there are."""
    fires_at: int | None
    """The number of the sample with which it fires; None: it never does."""


def constant(value: float) -> Course:
    return lambda _: value


def becomes(value: float, before: float = 0) -> Course:
    return lambda number: value if number else before


def growing(step: float) -> Course:
    return lambda number: number * step


def _buckets(name: str, slow_s: float) -> dict[str, Course]:
    """A hundred things a step, of which five take `slow_s` and the others a millisecond."""
    bounds = ("0.001", "0.01", "0.05", "0.25", "0.5", "1", "+Inf")
    return {
        f'{name}_bucket{{instance="a", le="{bound}"}}': growing(
            100 if bound == "+Inf" or float(bound) >= slow_s else 95
        )
        for bound in bounds
    }


def _served(kind: str, bad: float) -> dict[str, Course]:
    return {
        f'ropewalk_served_total{{instance="a", kind="{kind}"}}': growing(1_000),
        f'ropewalk_served_badly_total{{instance="a", kind="{kind}"}}': growing(bad),
    }


_BAD_AND_GOOD: dict[str, tuple[dict[str, Course], dict[str, Course]]] = {
    "RopewalkControllerUnheard": (
        {'ropewalk_controller_heard_seconds{instance="a"}': becomes(6.5)},
        {'ropewalk_controller_heard_seconds{instance="a"}': becomes(6)},
    ),
    "RopewalkTwoControllers": (
        {
            'ropewalk_controller_active{instance="a"}': constant(1),
            'ropewalk_controller_active{instance="b"}': becomes(1),
        },
        {
            'ropewalk_controller_active{instance="a"}': becomes(0, 1),
            'ropewalk_controller_active{instance="b"}': becomes(1),
        },
    ),
    "RopewalkPartitionWithoutLeader": (
        {'ropewalk_partitions_without_leader{instance="a"}': becomes(1)},
        {'ropewalk_partitions_without_leader{instance="a"}': constant(0)},
    ),
    "RopewalkPartitionBelowMinimum": (
        {'ropewalk_partitions_below_minimum{instance="a"}': becomes(3)},
        {'ropewalk_partitions_below_minimum{instance="a"}': constant(0)},
    ),
    "RopewalkPartitionUnderReplicated": (
        {
            f'kafka_topic_partition_under_replicated_partition{{instance="{node}", topic="t", partition="{index}"}}': becomes(
                index == "0"
            )
            for node in "ab"
            for index in "01"
        },
        {
            'kafka_topic_partition_under_replicated_partition{instance="a", topic="t", partition="0"}': constant(
                0
            )
        },
    ),
    "RopewalkNodeFenced": (
        {
            'ropewalk_nodes{instance="a", state="fenced"}': becomes(1),
            'ropewalk_nodes{instance="a", state="left"}': constant(1),
        },
        {
            'ropewalk_nodes{instance="a", state="fenced"}': constant(0),
            'ropewalk_nodes{instance="a", state="active"}': constant(3),
        },
    ),
    "RopewalkNodeBehind": (
        {'ropewalk_nodes_behind{instance="a"}': becomes(1)},
        {'ropewalk_nodes_behind{instance="a"}': constant(0)},
    ),
    "RopewalkNodeUnwell": (
        {'ropewalk_nodes_unwell{instance="a"}': becomes(2)},
        {'ropewalk_nodes_unwell{instance="a"}': constant(0)},
    ),
    "RopewalkUpgradeUnfinished": (
        {
            'ropewalk_feature_level{instance="a"}': constant(1),
            'ropewalk_feature_level_max{instance="a"}': becomes(2, 1),
        },
        {
            'ropewalk_feature_level{instance="a"}': constant(2),
            'ropewalk_feature_level_max{instance="a"}': constant(2),
        },
    ),
    "RopewalkNotReady": (
        {'ropewalk_ready{instance="a"}': becomes(0, 1)},
        {
            'ropewalk_ready{instance="a"}': constant(1),
            'up{instance="a", job="another"}': constant(0),
        },
    ),
    "RopewalkMetadataParted": (
        {'ropewalk_metadata_parted{instance="a"}': becomes(1)},
        {'ropewalk_metadata_parted{instance="a"}': constant(0)},
    ),
    "RopewalkClock": (
        {'ropewalk_clock_difference_seconds{instance="a"}': becomes(-90)},
        {'ropewalk_clock_difference_seconds{instance="a"}': becomes(-5)},
    ),
    "RopewalkLoopStalls": (
        _buckets("ropewalk_loop_delay_seconds", 0.25),
        _buckets("ropewalk_loop_delay_seconds", 0.05),
    ),
    "RopewalkDescriptors": (
        {
            'process_open_fds{instance="a"}': becomes(900, 10),
            'process_max_fds{instance="a"}': constant(1_000),
        },
        {
            'process_open_fds{instance="a"}': becomes(800, 10),
            'process_max_fds{instance="a"}': constant(1_000),
        },
    ),
    "RopewalkCertificateEnds": (
        {'ropewalk_certificate_seconds_left{instance="a", file="n.pem"}': becomes(86_400, 604_800)},
        {'ropewalk_certificate_seconds_left{instance="a", file="n.pem"}': constant(604_800)},
    ),
    "RopewalkDiskFull": (
        {'ropewalk_disk_full{instance="a"}': becomes(1)},
        {'ropewalk_disk_full{instance="a"}': constant(0)},
    ),
    "RopewalkDiskFilling": (
        {'ropewalk_disk_free_bytes{instance="a"}': lambda number: 1e12 - number * 1e11 / 6},
        {'ropewalk_disk_free_bytes{instance="a"}': lambda number: 1e12 - number * 1e7},
    ),
    "RopewalkRetentionBehind": (
        {'ropewalk_retention_used_ratio{instance="a", by="time"}': becomes(1.6)},
        {'ropewalk_retention_used_ratio{instance="a", by="time"}': becomes(1.5)},
    ),
    "RopewalkSlowDisk": (
        _buckets("ropewalk_sync_duration_seconds", 0.5),
        _buckets("ropewalk_sync_duration_seconds", 0.25),
    ),
    "RopewalkPartitionDamaged": (
        {
            'ropewalk_partitions_damaged{instance="a"}': constant(0),
            'ropewalk_partitions_unopened{instance="a"}': becomes(1),
        },
        {
            'ropewalk_partitions_damaged{instance="a"}': constant(0),
            'ropewalk_partitions_unopened{instance="a"}': constant(0),
        },
    ),
    "RopewalkErrorBudgetFast": (_served("produce", 20), _served("produce", 14)),
    "RopewalkErrorBudgetSlow": (_served("fetch", 7), _served("fetch", 5)),
    "RopewalkTransactionHanging": (
        {'ropewalk_partitions_with_hanging_transactions{instance="a"}': becomes(1)},
        {'ropewalk_partitions_with_hanging_transactions{instance="a"}': constant(0)},
    ),
    "RopewalkLag": (
        {
            f'kafka_consumergroup_lag{{instance="a", consumergroup="g", topic="t", partition="{index}"}}': becomes(
                6_000
            )
            for index in "01"
        },
        {
            f'kafka_consumergroup_lag{{instance="a", consumergroup="g", topic="{topic}", partition="0"}}': becomes(
                6_000
            )
            for topic in "tu"
        },
    ),
    "RopewalkLagSeconds": (
        {'ropewalk_group_lag_seconds{instance="a", consumergroup="g", topic="t"}': becomes(601)},
        {'ropewalk_group_lag_seconds{instance="a", consumergroup="g", topic="t"}': becomes(600)},
    ),
    "RopewalkGroupWithoutMembers": (
        {
            'kafka_consumergroup_members{instance="a", consumergroup="g"}': becomes(0, 1),
            'kafka_consumergroup_lag{instance="a", consumergroup="g", topic="t", partition="0"}': constant(1),
        },
        {
            'kafka_consumergroup_members{instance="a", consumergroup="g"}': constant(0),
            'kafka_consumergroup_lag{instance="a", consumergroup="other", topic="t", partition="0"}': constant(
                1
            ),
        },
    ),
    "RopewalkQueueOld": (
        {'ropewalk_queue_oldest_message_age_seconds{instance="a", queue="q"}': becomes(3_601)},
        {'ropewalk_queue_oldest_message_age_seconds{instance="a", queue="q"}': becomes(3_600)},
    ),
    "RopewalkDeadLetters": (
        {'ropewalk_queue_dead_messages{instance="a", queue="dead"}': becomes(1)},
        {'ropewalk_queue_dead_messages{instance="a", queue="dead"}': constant(0)},
    ),
    "RopewalkDeadTargetMissing": (
        {'ropewalk_queue_dlq_missing{instance="a", queue="q"}': becomes(1)},
        {'ropewalk_queue_dlq_missing{instance="a", queue="q"}': constant(0)},
    ),
    "RopewalkQueueWindowFull": (
        {'ropewalk_queue_windows_full{instance="a", queue="q"}': becomes(1)},
        {'ropewalk_queue_windows_full{instance="a", queue="q"}': constant(0)},
    ),
}


def cases() -> Iterator[Case]:
    for rule in RULES:
        bad, good = _BAD_AND_GOOD[rule.name]
        step_s = 300 if rule.for_s >= 86_400 or rule.name == "RopewalkDiskFilling" else 15
        waits = -(-rule.for_s // step_s)
        # With two samples a window has a course, whatever else it may need.
        first = 1
        count = first + waits + 2
        yield Case(rule, "holds for long enough", step_s, bad, count, first + waits)
        yield Case(rule, "does not hold", step_s, good, count + 20, None)
        if waits > 1 and not rule.has_window:  # a window remembers what is gone
            ends = first + waits - 1
            yield Case(rule, "holds for too short a time", step_s, _ending(bad, ends), count, None)


def _ending(series: Mapping[str, Course], ends: int) -> dict[str, Course]:
    """The same series, which are gone before it has held for long enough."""

    def cut(course: Course) -> Course:
        return lambda number: course(number) if number < ends else None

    return {name: cut(course) for name, course in series.items()}


CASES_BY_RULE: Final = {case.rule.name: case for case in cases() if case.fires_at is not None}
"""Of each rule the one in which it fires."""
