"""Figures of the internal listener: its connections, its bytes, and what nodes ask each other."""

from collections.abc import Iterator, Mapping
from typing import Final

from ropewalk.base import metrics
from ropewalk.base.metrics import Sheet
from ropewalk.kafka.connections import Connections
from ropewalk.kafka.peer.introduction import Admission
from ropewalk.kafka.served import ServedApi
from ropewalk.wire.error_code import ErrorCode

DOOR: Final = "peer"
_PRIVATE_FROM: Final = 10_000


class PeerFigures:
    def __init__(
        self, connections: Connections, admission: Admission, served: Mapping[int, ServedApi]
    ) -> None:
        self._connections = connections
        self._admission = admission
        self._served = [api for key, api in served.items() if key >= _PRIVATE_FROM]
        """Kafka's own APIs are counted by the door of the clients; one name cannot stand for both."""

    def collect(self, sheet: Sheet) -> Iterator[None]:
        connections = self._connections
        sheet.add(metrics.CONNECTIONS, len(connections), DOOR)
        sheet.add(metrics.CONNECTIONS_OPENED, connections.opened_count, DOOR)
        sheet.add(
            metrics.CONNECTIONS_REFUSED, connections.refused_count + self._admission.refused_count, DOOR
        )
        sheet.add(metrics.RECEIVED_BYTES, connections.received_bytes, DOOR)
        sheet.add(metrics.SENT_BYTES, connections.sent_bytes, DOOR)
        for served in self._served:
            if served.tally.durations.count:
                sheet.add_durations(metrics.REQUEST_TIME, served.tally.durations, served.api.name)
            for code, count in sorted(served.tally.errors.items()):
                sheet.add(metrics.REQUEST_ERRORS, count, served.api.name, ErrorCode(code).name)
        yield
