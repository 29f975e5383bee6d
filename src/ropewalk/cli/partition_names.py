"""Partitions and nodes as people name them: `orders` for all of a topic, `orders-3` for one, `1,2,3` for nodes."""

from collections.abc import Sequence

import typer

from ropewalk.base.ids import NodeId, TopicPartition
from ropewalk.client.calls.client import Client


async def named_partitions(client: Client, names: Sequence[str]) -> list[TopicPartition]:
    """In the order named, each once. A topic whose own name ends in a number is taken for the topic."""
    topics = {topic.name: topic for topic in (await client.metadata()).topics}
    found: dict[TopicPartition, None] = {}
    for name in names:
        if name in topics:
            found.update((TopicPartition(name, each.index), None) for each in topics[name].partitions)
            continue
        topic, _, index = name.rpartition("-")
        if not index.isdecimal() or topic not in topics:
            await client.topic(name)  # which says that it is not there
            continue
        found[TopicPartition(topic, int(index))] = None
    return list(found)


def parse_nodes(text: str, option: str) -> tuple[NodeId, ...]:
    numbers = [item.strip() for item in text.split(",")]
    if not all(number.isdecimal() for number in numbers):
        raise typer.BadParameter(f"{text!r} is no list of node ids, such as 0,1,2", param_hint=option)
    return tuple(NodeId(int(number)) for number in numbers)
