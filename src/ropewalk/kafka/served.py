"""One API as this node serves it: which versions, and by which function."""

from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct, field

from ropewalk.base.limits import UNANSWERED_BYTES_PER_BYTE
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.tally import Tally
from ropewalk.wire.api import Api
from ropewalk.wire.types import Message

Handle = Callable[[Any, Caller], Coroutine[Any, None, Message | None]]
"""Takes the API's own request class, which is why it says Any. None means: no answer is sent."""


Weigh = Callable[[Any, int], int]
"""What a request holds while it waits for its answer, by the request and the bytes it was sent in."""


def weigh_objects(_: Message, sent_bytes: int) -> int:
    return UNANSWERED_BYTES_PER_BYTE * sent_bytes


class ServedApi(Struct, frozen=True):
    api: Api[Any, Any]
    version_min: int
    version_max: int
    handle: Handle
    weigh: Weigh = weigh_objects
    tally: Tally = field(default_factory=Tally)
