"""The file of `audit.file`: lines are added to it, and never changed."""

import os
import sys
from pathlib import Path

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import AUDIT_LINE_BYTES_MAX
from ropewalk.base.ports import Clock, Pool
from ropewalk.broker.watching.audit_journal import AuditJournal
from ropewalk.node.config import Config
from ropewalk.security.audit_chain import hash_of, number_of

AUDIT_FILE = "audit.file"
STANDARD_ERROR = "-"


async def open_audit(config: Config, clock: Clock, pool: Pool) -> AuditJournal | None:
    """None where nobody wants one. Raises `InvalidSetting` for a file that cannot be written, or that holds something else."""
    path = config[AUDIT_FILE]
    if not path:
        return None
    if path == STANDARD_ERROR:
        return AuditJournal(clock, pool, _to_standard_error, last_number=0, last_hash="")
    file = await pool.run(_absolute, path)
    try:
        last = await pool.run(_last_line, file)
        number = number_of(last) if last else 0
    except (OSError, ValueError) as error:
        raise InvalidSetting(f"{AUDIT_FILE}={path}: {error}") from None

    def append(data: bytes) -> None:
        _append(file, data)

    return AuditJournal(clock, pool, append, last_number=number, last_hash=hash_of(last) if last else "")


def _absolute(path: str) -> Path:
    return Path(path).expanduser().absolute()


def _to_standard_error(data: bytes) -> None:
    sys.stderr.buffer.write(data)
    sys.stderr.buffer.flush()


def _append(file: Path, data: bytes) -> None:
    """All of it or nothing."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size_bytes = os.fstat(descriptor).st_size
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size_bytes)
            raise
    finally:
        os.close(descriptor)


def _last_line(file: Path) -> bytes:
    """Of a file that is made where there is none. A line that was cut by a crash is taken away."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        size_bytes = os.fstat(descriptor).st_size
        start = max(0, size_bytes - 2 * AUDIT_LINE_BYTES_MAX)
        whole = os.pread(descriptor, size_bytes - start, start)
        end = whole.rfind(b"\n") + 1
        if end < len(whole):
            os.ftruncate(descriptor, start + end)
        return whole[whole.rfind(b"\n", 0, max(0, end - 1)) + 1 : max(0, end - 1)]
    finally:
        os.close(descriptor)
