"""The headers of a message's record that leaders of queues write and read; those of doors begin with `sqs.` (`sqs/packing.py`).

What a reader could get wrong
    Everybody may write records with such headers into a topic: what cannot be read counts as not there.
"""

from typing import Final

DELAY_MS: Final = "rw.delay.ms"
"""How long after its timestamp a message of a standard queue becomes visible, in decimal digits."""

DEDUPLICATION_ID: Final = "rw.dedup.id"
"""Of a FIFO queue's message, in UTF-8."""

MESSAGE_ID: Final = "rw.message.id"
"""Of a message that was moved: the one it had before, as sixteen bytes."""

RECEIVE_COUNT: Final = "rw.receive.count"
"""Of a message that was moved: how often it had been received before, in decimal digits."""

SOURCE_QUEUE: Final = "rw.dlq.source.queue"
"""Of a dead letter: the name of the queue it comes from."""

MOVED_FROM: Final = "rw.moved.from"
"""Of a message that a move task brought: the name of the dead-letter queue it lay in."""

SOURCE_QUEUE_ID: Final = "rw.dlq.source.id"
SOURCE_PARTITION: Final = "rw.dlq.source.partition"
SOURCE_OFFSET: Final = "rw.dlq.source.offset"
