"""What `topic describe` prints."""

from datetime import UTC, datetime
from typing import Final

from ropewalk.cli.output import counted, print_table
from ropewalk.views.topic_description import TopicDescription

_PARTITION_COLUMNS: Final = ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "START", "END")


def print_topic(topic: TopicDescription) -> None:
    facts = [topic.topic, f"id {topic.id}", counted(len(topic.partitions), "partition")]
    facts += [f"owner {topic.owner}"] if topic.owner is not None else []
    facts += [f"queue {topic.queue}"] if topic.queue is not None else []
    facts += [f"created {_time(topic.created_at_ms)}"] if topic.created_at_ms is not None else []
    if topic.modified_at_ms is not None and topic.modified_at_ms != topic.created_at_ms:
        facts.append(f"changed {_time(topic.modified_at_ms)}")
    print("  ".join(facts))
    # What most topics have none of is shown where there is some.
    seldom = [
        column
        for column in ("eligible", "observers", "adding", "removing")
        if any(getattr(row, column) for row in topic.partitions)
    ]
    print_table(
        (*_PARTITION_COLUMNS, *(column.upper() for column in seldom)),
        [
            (
                row.partition,
                row.leader,
                row.leader_epoch,
                row.replicas,
                row.isr,
                row.start_offset,
                row.end_offset,
                *(getattr(row, column) for column in seldom),
            )
            for row in topic.partitions
        ],
    )
    if topic.settings:
        print()
        print_table(
            ("SETTING", "VALUE", "SOURCE"), [(row.name, row.value, row.source) for row in topic.settings]
        )


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(sep=" ", timespec="seconds")
