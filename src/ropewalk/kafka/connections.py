"""All connections of one Kafka listener: how many there may be, and which have been idle too long."""

from collections import Counter
from collections.abc import Container, Mapping
from typing import Final, Protocol

import structlog

from ropewalk.base.budget import ByteBudget
from ropewalk.base.complaints import Complaints
from ropewalk.base.ports import Clock
from ropewalk.broker.administration.quotas import ClientQuotas
from ropewalk.kafka.receive_buffer import PRODUCE, SpareBuffers

_log = structlog.get_logger()

MEMORY_KEPT_MS: Final = 10_000
"""How long a silent connection keeps a receive buffer that has grown."""


class Connected(Protocol):
    active_at_ms: float

    @property
    def host(self) -> str: ...

    @property
    def is_idle(self) -> bool: ...

    @property
    def held_bytes(self) -> int: ...

    def has_stalled(self) -> bool: ...

    def release_memory(self) -> None: ...

    def close(self, reason: str | None = None) -> None: ...

    def finish(self) -> None: ...

    def refuse_after(self, delay_ms: float) -> None: ...

    def on_paused_or_resumed(self) -> None: ...


class Connections:
    def __init__(
        self,
        clock: Clock,
        quotas: ClientQuotas,
        *,
        flexible_since: Mapping[int, int],
        frame_bytes_max: int,
        count_max: int,
        count_per_host_max: int,
        idle_ms_max: int,
        large_api_keys: Container[int] = (PRODUCE,),
    ) -> None:
        self.clock = clock
        self.quotas = quotas
        self.flexible_since = flexible_since
        """By API key: the first version whose headers have a tagged section."""

        self.frame_bytes_max = frame_bytes_max
        self.large_api_keys = large_api_keys
        """Of requests whose bytes are passed on as they are, and which alone may be as large as a frame."""
        self.spare_buffers = SpareBuffers()
        self._count_max = count_max
        self._count_per_host_max = count_per_host_max
        self._idle_ms_max = idle_ms_max
        self._complaints = Complaints()
        self._open: dict[Connected, None] = {}
        self._by_host: Counter[str] = Counter()
        self.opened_count = 0
        self.refused_count = 0
        self.received_bytes = 0
        self.sent_bytes = 0
        self.throttle_count = 0
        self.throttle_ms = 0.0
        self.is_paused = False
        """Nothing is read or answered, and no connection is closed for it: a node that hangs."""

    def __len__(self) -> int:
        return len(self._open)

    def on_opened(self, connection: Connected) -> None:
        connection.active_at_ms = self.clock.monotonic_ms()
        self._open[connection] = None
        self.opened_count += 1
        self._by_host[connection.host] += 1
        if len(self._open) > self._count_max:
            connection.close(f"{len(self._open)} connections, max.connections is {self._count_max}")
        elif self._by_host[connection.host] > self._count_per_host_max:
            connection.close(
                f"{self._by_host[connection.host]} connections from one address, "
                f"max.connections.per.ip is {self._count_per_host_max}"
            )
        elif self.quotas.image.client_quotas:
            throttle_ms = self.quotas.charge_connection(connection.host, connection.active_at_ms)
            if throttle_ms:
                connection.refuse_after(throttle_ms)

    def on_closed(self, connection: Connected) -> None:
        del self._open[connection]
        self._by_host[connection.host] -= 1
        if not self._by_host[connection.host]:
            del self._by_host[connection.host]

    def on_refused(self, connection: Connected, reason: str) -> None:
        self.refused_count += 1
        _log.warning("connection closed", client=connection.host, reason=reason)

    def on_suspicious(self, connection: Connected, reason: str) -> None:
        """A request was refused that no honest client sends; said once in a while, however often it comes."""
        if self._complaints.is_due(f"{connection.host} {reason}", self.clock.monotonic_ms()):
            _log.warning("request refused", client=connection.host, reason=reason)

    def sweep(self) -> None:
        """Called every few seconds: ends what has been silent too long, takes memory from what is silent."""
        now_ms = self.clock.monotonic_ms()
        for connection in list(self._open):
            silent_ms = now_ms - connection.active_at_ms
            if silent_ms > self._idle_ms_max:
                connection.close()
            elif silent_ms > MEMORY_KEPT_MS and connection.is_idle:
                connection.release_memory()

    def relieve(self, budget: ByteBudget) -> None:
        """Called every few seconds: while the budget is spent, ends those who hold it and do not move, the largest first."""
        excess_bytes = budget.held_bytes - budget.bytes_max
        if excess_bytes < 0:
            return
        for connection in sorted(self._open, key=lambda connection: -connection.held_bytes):
            if connection.has_stalled() and excess_bytes >= 0:
                excess_bytes -= connection.held_bytes
                connection.close(
                    f"it holds {connection.held_bytes} bytes of a budget that is spent, and does not move"
                )

    def pause(self) -> None:
        """Handle and answer nothing until `resume`. What clients send waits in the sockets."""
        self.is_paused = True
        self._tell_all()

    def resume(self) -> None:
        self.is_paused = False
        self._tell_all()

    def _tell_all(self) -> None:
        for connection in list(self._open):
            connection.on_paused_or_resumed()

    def close_all(self) -> None:
        """The node is gone: nothing more is sent."""
        for connection in list(self._open):
            connection.close()

    def finish_all(self) -> None:
        """The node stops: what has been answered is still sent."""
        for connection in list(self._open):
            connection.finish()
