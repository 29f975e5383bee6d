"""What a node must do with a run of bytes, worked out with the node's own codec.

The forecast says nothing about what an answer contains. It says which requests are answered, in which order, and
whether the connection lives on; a node that answers less, more or otherwise has a bug, and one that takes
longer hangs.

Some requests are *unfair*: what they ask for is within a client's rights and would disturb the neighbour, such as a
quota for everybody. Those are not sent.
"""

from collections.abc import Mapping
from enum import Enum, auto
from struct import Struct as Layout
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import ProtocolError
from ropewalk.base.limits import REQUEST_BYTES_MAX
from ropewalk.wire.api import AnyApi
from ropewalk.wire.headers import decode_request_header
from ropewalk.wire.messages import (
    alter_client_quotas,
    alter_configs,
    api_versions,
    delete_topics,
    fetch,
    incremental_alter_configs,
    join_group,
    produce,
    sync_group,
)
from ropewalk.wire.types import Message
from tests.fuzz.hostile_values import LASTING, stand_in

FRAME_BYTES_MAX: Final = 100 << 20
WAIT_MS_MAX: Final = 50
"""A fetch that may take longer is taken to wait."""

_LENGTH: Final = Layout(">i").unpack_from
_KEY: Final = Layout(">h").unpack_from
_LASTING: Final = frozenset(LASTING)
_LASTING_IDS: Final = frozenset(map(stand_in, LASTING))
_TOPIC_OR_GROUP: Final = frozenset({2, 32})


class Due(Struct, frozen=True):
    """An answer that must come."""

    api: AnyApi
    version: int
    correlation_id: int


class Then(Enum):
    """What becomes of the connection."""

    OPEN = auto()
    """It goes on: every request is answered."""
    SILENT = auto()
    """A Produce with acks=0 gets no answer, and ends the connection if it fails."""
    WAITING = auto()
    """A request may wait for longer than anybody has patience."""
    UNFINISHED = auto()
    """The last frame is not whole."""
    CLOSED = auto()
    """Bytes that are not the protocol."""
    UNFAIR = auto()


class Forecast(Struct, frozen=True):
    due: tuple[Due, ...]
    then: Then
    frame_count: int


class Forecaster:
    def __init__(self, served: Mapping[int, AnyApi], versions: Mapping[int, range]) -> None:
        """`served` by API key, and the versions that the node itself says it serves."""
        self._served = served
        self._versions = versions
        self._flexible_since = {key: api.flexible_since for key, api in served.items()}

    def forecast(self, stream: bytes) -> Forecast:
        """Stops at the first frame after which a connection does not simply go on."""
        view = memoryview(stream)
        due: list[Due] = []
        position, frame_count, then = 0, 0, Then.OPEN
        while position < len(stream) and then is Then.OPEN:
            frame_count += 1
            end, then = _frame(view, position)
            if then is Then.OPEN:
                try:
                    then = self._request(view, position + 4, end, due)
                except ProtocolError:
                    then = Then.CLOSED
                position = end
        return Forecast(tuple(due), then, frame_count)

    def _request(self, view: memoryview, position: int, end: int, due: list[Due]) -> Then:
        header, body = decode_request_header(view, position, end, self._flexible_since)
        api = self._served.get(header.api_key)
        if api is None:
            return Then.CLOSED
        if header.version not in self._versions[api.key]:
            if api is not api_versions.API:
                return Then.CLOSED
            due.append(Due(api, 0, header.correlation_id))
            return Then.OPEN
        request = api.decode_request(header.version, view, body, end)
        if is_unfair(request):
            return Then.UNFAIR
        if isinstance(request, produce.ProduceRequest) and request.acks == 0:
            return Then.SILENT
        if may_wait(request):
            return Then.WAITING
        due.append(Due(api, header.version, header.correlation_id))
        return Then.OPEN


def _frame(view: memoryview, position: int) -> tuple[int, Then]:
    """Where the frame ends, and whether it is one."""
    if len(view) - position < 4:
        return position, Then.UNFINISHED
    (size,) = _LENGTH(view, position)
    end = position + 4 + size
    if not 0 < size <= FRAME_BYTES_MAX:
        return position, Then.CLOSED
    if (
        size > REQUEST_BYTES_MAX
        and len(view) - position >= 6
        and _KEY(view, position + 4)[0] != produce.API.key
    ):
        return position, Then.CLOSED
    return end, Then.OPEN if end <= len(view) else Then.UNFINISHED


def may_wait(request: Message) -> bool:
    match request:
        case fetch.FetchRequest():
            return request.min_bytes > 0 and request.max_wait_ms > WAIT_MS_MAX
        case join_group.JoinGroupRequest() | sync_group.SyncGroupRequest():
            return True
        case _:
            return False


def is_unfair(request: Message) -> bool:
    match request:
        case delete_topics.DeleteTopicsRequest():
            return not _LASTING.isdisjoint(request.topic_names) or any(
                topic.name in _LASTING or topic.topic_id in _LASTING_IDS for topic in request.topics
            )
        case incremental_alter_configs.IncrementalAlterConfigsRequest() | alter_configs.AlterConfigsRequest():
            return not request.validate_only and any(
                resource.resource_type not in _TOPIC_OR_GROUP or resource.resource_name in _LASTING
                for resource in request.resources
            )
        case alter_client_quotas.AlterClientQuotasRequest():
            return not request.validate_only and any(
                entity.entity_type != "client-id" or entity.entity_name is None
                for entry in request.entries
                for entity in entry.entity
            )
        case _:
            return False
