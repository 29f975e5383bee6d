"""Broker settings about queues.

Those that every door acts on are the cluster's (ADR 0013): clients would see another queue at each door otherwise. Only the node that decides acts on the rest: set them
for all brokers, since any controller may come to decide.
"""

from collections.abc import Mapping
from typing import Final

from ropewalk.metadata.settings.setting import Kind, Setting

_CATALOGUE: Final = (
    Setting(
        "sqs.account",
        Kind.STRING,
        "000000000000",
        "The account in addresses and ARNs of queues, twelve digits. Requests may name any.",
        pattern="[0-9]{12}",
        agreed=True,
    ),
    Setting(
        "sqs.fifo.partitions",
        Kind.INT,
        "1",
        "Partitions of a FIFO queue that is created for high throughput. With more than one its deduplication scope cannot be changed.",
        minimum=1,
        maximum=64,
        agreed=True,
    ),
    Setting(
        "cluster.delete.by",
        Kind.STRING,
        "anyone",
        "Who may delete and purge queues through the SQS API where there are keys: `anyone` with a key, or those whose key has `admin = true`; where rules decide, "
        "those with ALTER on the cluster.",
        choices=("anyone", "admin"),
        agreed=True,
    ),
    Setting(
        "sqs.delete.wait.ms",
        Kind.LONG,
        "0",
        "How long the name of a deleted queue rests before a queue may be made anew under it. Amazon has 60000, so that servers which have "
        "not heard of the deletion cannot mistake one queue for the other; here a queue is known by its id, and tests make queues anew at once. "
        "60000 on a node whose configuration has sqs.credentials and does not say otherwise.",
        minimum=0,
        maximum=86_400_000,
    ),
)

QUEUE_SETTINGS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _CATALOGUE}
