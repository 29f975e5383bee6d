"""What a node writes of who came to it: logins, refusals for want of rights, its own starts and stops, as lines for `audit.file`.

What a reader could get wrong
    Nobody waits for a line. They go through a queue that is bounded; what finds no room is counted, and the next line that is written says so.
    The same refusal over and over is one line a minute, with a count: whoever tries all day fills no disk.
    Lines hold each other as events of `__audit` do (`security/audit_chain.py`), over restarts too, and have numbers of their own.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

import structlog

from ropewalk.base import metrics
from ropewalk.base.limits import (
    AUDIT_DENIALS_MAX,
    AUDIT_DENIALS_TOGETHER_MS,
    AUDIT_LINES_WAITING_MAX,
    AUDIT_WRITE_MS,
)
from ropewalk.base.metrics import Sheet
from ropewalk.base.ports import Clock, Pool
from ropewalk.broker.watching.audit_events import BASE_EVENT, encoded, head, metadata_of
from ropewalk.controller.audit import shortened
from ropewalk.security.access import Asker, ResourceType
from ropewalk.security.audit_chain import hash_of
from ropewalk.security.identity import Identity

_log = structlog.get_logger()

_AUTHENTICATION: Final = 3002
_LIFECYCLE: Final = 6002
_API_ACTIVITY: Final = 6003
_LOGON, _START, _STOP, _OTHER = 1, 3, 4, 99
_INFORMATIONAL, _MEDIUM, _HIGH = 1, 3, 4

_Denied = tuple[str, str, str, str]


class AuditJournal:
    def __init__(
        self,
        clock: Clock,
        pool: Pool,
        append: Callable[[bytes], None],
        *,
        last_number: int,
        last_hash: str,
    ) -> None:
        """`append` blocks, and writes all or nothing. `last_number` and `last_hash` are of what it has written already."""
        self._clock = clock
        self._pool = pool
        self._append = append
        self._number = last_number
        self._hash = last_hash
        self._waiting: deque[dict[str, Any]] = deque()
        self._denied: dict[_Denied, list[int]] = {}
        """Times of the first and how many, of each within a minute."""
        self._dropped_count = 0
        self._untold_count = 0
        self._written_count = 0
        self._is_failing = False
        self._writing = asyncio.Lock()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(AUDIT_WRITE_MS / 1000)
            self._tell_denied(self._clock.now_ms() - AUDIT_DENIALS_TOGETHER_MS)
            await self._write()

    async def finish(self) -> None:
        """Write what waits, for the node stops."""
        self._tell_denied(self._clock.now_ms())
        await self._write()

    async def _write(self) -> None:
        async with self._writing:
            if not self._waiting and not self._untold_count:
                return
            data, number, last_hash, count, untold = self._lines()
            try:
                await self._pool.run(self._append, data)
            except OSError as error:
                self._on_failure(error)
            else:
                self._on_written(number, last_hash, count, untold)

    def collect(self, sheet: Sheet) -> Iterator[None]:
        sheet.add(metrics.AUDIT_LINES, self._written_count)
        sheet.add(metrics.AUDIT_LINES_DROPPED, self._dropped_count)
        yield

    # What happens

    def on_started(self, version: str) -> None:
        self._put(
            _LIFECYCLE, "Application Lifecycle", _START, "Start", app={"name": "Ropewalk", "version": version}
        )

    def on_stopping(self, version: str) -> None:
        self._put(
            _LIFECYCLE, "Application Lifecycle", _STOP, "Stop", app={"name": "Ropewalk", "version": version}
        )

    def on_login(self, identity: Identity, host: str, listener: str) -> None:
        self._put(
            _AUTHENTICATION,
            "Authentication",
            _LOGON,
            "Logon",
            status_id=1,
            status="Success",
            user=_user(identity.principal),
            src_endpoint={"ip": host, "interface_name": listener},
            auth_protocol=identity.method,
        )

    def on_login_failed(self, user: str | None, reason: str, host: str, listener: str) -> None:
        self._put(
            _AUTHENTICATION,
            "Authentication",
            _LOGON,
            "Logon",
            severity=_MEDIUM,
            status_id=2,
            status="Failure",
            status_detail=shortened(reason),
            user=_user(f"User:{user or ''}"),
            src_endpoint={"ip": host, "interface_name": listener},
        )

    def on_denied(self, asker: Asker, operation: str, resource_type: ResourceType, name: str) -> None:
        """`name` may be whatever a client has written."""
        resource = f"{resource_type.name.capitalize()}:{shortened(name)}"
        key = (shortened(asker.principals[0]), asker.host, operation, resource)
        told = self._denied.get(key)
        if told is not None:
            told[1] += 1
        elif len(self._denied) < AUDIT_DENIALS_MAX:
            self._denied[key] = [self._clock.now_ms(), 1]
        else:
            self._drop()

    # Inside

    def _tell_denied(self, before_ms: int) -> None:
        due = [key for key, (since_ms, _) in self._denied.items() if since_ms <= before_ms]
        for key in due:
            principal, host, operation, resource = key
            since_ms, count = self._denied.pop(key)
            self._put(
                _API_ACTIVITY,
                "API Activity",
                _OTHER,
                "Other",
                severity=_MEDIUM,
                at_ms=since_ms,
                status_id=2,
                status="Failure",
                status_detail="not authorized",
                actor={"user": _user(principal)},
                src_endpoint={"ip": host},
                api={"operation": operation},
                resources=[{"type": resource.partition(":")[0], "name": resource}],
                count=count,
            )

    def _put(
        self,
        class_uid: int,
        name: str,
        activity: int,
        activity_name: str,
        *,
        severity: int = _INFORMATIONAL,
        at_ms: int | None = None,
        **fields: Any,
    ) -> None:
        if len(self._waiting) >= AUDIT_LINES_WAITING_MAX:
            self._drop()
            return
        time_ms = self._clock.now_ms() if at_ms is None else at_ms
        self._waiting.append({**head(class_uid, name, activity, activity_name, time_ms, severity), **fields})

    def _drop(self) -> None:
        self._dropped_count += 1
        self._untold_count += 1

    def _lines(self) -> tuple[bytes, int, str, int, int]:
        """All that waits, as it is to be written; with the number and hash of the last, how many there are, and how many lost ones are told."""
        events = list(self._waiting)
        untold = self._untold_count
        if untold:
            lost = head(BASE_EVENT, "Base Event", _OTHER, "Other", self._clock.now_ms(), _HIGH)
            text = f"{untold} events were lost: more came than could be written"
            events.append({**lost, "message": text, "unmapped": {"dropped_count": untold}})
        number, last_hash, lines = self._number, self._hash, list[bytes]()
        for event in events:
            number += 1
            line = encoded({**event, "metadata": metadata_of(number, None), "previous": last_hash})
            last_hash = hash_of(line)
            lines.append(line + b"\n")
        return b"".join(lines), number, last_hash, len(self._waiting), untold

    def _on_written(self, number: int, last_hash: str, count: int, untold: int) -> None:
        for _ in range(count):
            self._waiting.popleft()
        self._untold_count -= untold
        self._written_count += number - self._number
        self._number, self._hash = number, last_hash
        if self._is_failing:
            self._is_failing = False
            _log.info("audit.file is written again")

    def _on_failure(self, error: OSError) -> None:
        if not self._is_failing:
            self._is_failing = True
            _log.warning(
                "audit.file cannot be written; it is tried again",
                reason=str(error),
                waiting=len(self._waiting),
            )


def _user(principal: str) -> dict[str, str]:
    kind, _, name = principal.partition(":")
    return {"name": shortened(name), "type": kind}
