"""Figures of the Kafka door: its connections, its bytes, and what each API was asked."""

from collections.abc import Iterator, Mapping
from typing import Final

from ropewalk.base import metrics
from ropewalk.base.budget import ByteBudget
from ropewalk.base.metrics import Sheet
from ropewalk.kafka.connections import Connections
from ropewalk.kafka.served import ServedApi
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import fetch, produce

DOOR: Final = "kafka"

_MEASURED: Final = {produce.API.name: metrics.COMMIT_TIME, fetch.API.name: metrics.END_TO_END_TIME}
"""What handlers measure besides how long requests take."""


class KafkaFigures:
    def __init__(self, connections: Connections, served: Mapping[int, ServedApi], budget: ByteBudget) -> None:
        self._connections = connections
        self._served = served
        self._budget = budget

    def collect(self, sheet: Sheet) -> Iterator[None]:
        connections = self._connections
        sheet.add(metrics.CONNECTIONS, len(connections), DOOR)
        sheet.add(metrics.CONNECTIONS_OPENED, connections.opened_count, DOOR)
        sheet.add(metrics.CONNECTIONS_REFUSED, connections.refused_count, DOOR)
        sheet.add(metrics.RECEIVED_BYTES, connections.received_bytes, DOOR)
        sheet.add(metrics.SENT_BYTES, connections.sent_bytes, DOOR)
        sheet.add(metrics.THROTTLES, connections.throttle_count)
        sheet.add(metrics.THROTTLE_TIME, round(connections.throttle_ms / 1000, 3))
        sheet.add(metrics.BUFFER_BYTES, self._budget.held_bytes)
        sheet.add(metrics.BUFFER_BYTES_LIMIT, self._budget.bytes_max)
        for served in self._served.values():
            tally = served.tally
            if served.api is produce.API or served.api is fetch.API:
                sheet.add(metrics.SERVED, tally.durations.count, served.api.name.lower())
                sheet.add(metrics.SERVED_BADLY, tally.bad_count, served.api.name.lower())
            if tally.working is not None:
                sheet.add_durations(metrics.REQUEST_WORK, tally.working, served.api.name)
            if tally.measured is not None:
                sheet.add_durations(_MEASURED[served.api.name], tally.measured)
            if tally.durations.count:  # APIs that nobody uses are not told of
                sheet.add_durations(metrics.REQUEST_TIME, tally.durations, served.api.name)
            for code, count in sorted(tally.errors.items()):
                sheet.add(metrics.REQUEST_ERRORS, count, served.api.name, ErrorCode(code).name)
        yield
