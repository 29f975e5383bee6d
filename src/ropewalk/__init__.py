"""Ropewalk: a distributed message queue in Python.

`from ropewalk import Producer, Consumer, Queue, Admin` is the client for programs without an event loop, `ropewalk.aio` the same for
asyncio. Importing the package itself loads nothing: what is named here is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ropewalk.base.version import VERSION

if TYPE_CHECKING:
    from ropewalk.base.errors import RopewalkError
    from ropewalk.base.ids import TopicPartition
    from ropewalk.client.blocking.admin import Admin
    from ropewalk.client.blocking.consumer import Consumer
    from ropewalk.client.blocking.producer import Producer
    from ropewalk.client.blocking.queue import Queue
    from ropewalk.client.consuming.message import Message
    from ropewalk.client.formats import Avro, Json, Protobuf, Text


__version__ = VERSION

__all__ = [
    "Admin",
    "Avro",
    "Consumer",
    "Json",
    "Message",
    "Producer",
    "Protobuf",
    "Queue",
    "RopewalkError",
    "Text",
    "TopicPartition",
]

_HOMES = {
    "Admin": "ropewalk.client.blocking.admin",
    "Avro": "ropewalk.client.formats",
    "Consumer": "ropewalk.client.blocking.consumer",
    "Json": "ropewalk.client.formats",
    "Message": "ropewalk.client.consuming.message",
    "Producer": "ropewalk.client.blocking.producer",
    "Protobuf": "ropewalk.client.formats",
    "Queue": "ropewalk.client.blocking.queue",
    "RopewalkError": "ropewalk.base.errors",
    "Text": "ropewalk.client.formats",
    "TopicPartition": "ropewalk.base.ids",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"ropewalk has no {name}")
    return getattr(import_module(_HOMES[name]), name)
