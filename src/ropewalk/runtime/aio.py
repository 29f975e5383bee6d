"""Linux's asynchronous I/O, as far as syncs of files need it: hand files over, be woken by an eventfd, fetch what became of each.

What a reader could get wrong
    The C library has no functions for these system calls, so they are called by number. Where the numbers of the architecture are not
    known here, or a sandbox refuses the calls, there is no queue (`open_queue` answers None), and syncs go to threads.
    io_uring could do the same, but container runtimes block it by default.
    A control block belongs to the kernel until the event of its sync was fetched. There is one for each sync that may be under
    way, and `submit` is called only when all events of the call before were fetched.
    The kernel holds the file itself while it syncs it: a descriptor that is closed meanwhile does no harm, and an error is reported
    as `fdatasync` of that descriptor would report it.
"""

import ctypes
import errno
import os
import platform
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from ropewalk.base.limits import SYNC_FILES_AT_ONCE_MAX


class _Calls(NamedTuple):
    """Numbers of system calls."""

    setup: int
    destroy: int
    submit: int
    getevents: int


_GENERIC: Final = _Calls(setup=0, destroy=1, submit=2, getevents=4)
_CALLS: Final = {
    "x86_64": _Calls(setup=206, destroy=207, submit=209, getevents=208),
    "aarch64": _GENERIC,
    "riscv64": _GENERIC,
}
_FDSYNC: Final = 3  # IOCB_CMD_FDSYNC, since Linux 4.18
_RESULT_TO_EVENTFD: Final = 1  # IOCB_FLAG_RESFD
_PROBE_S: Final = 1

# The interpreter's lock is kept: none of these calls waits, and giving it up would cost more than they take.
_libc: Final = ctypes.PyDLL(None, use_errno=True)


class _ControlBlock(ctypes.Structure):
    """`struct iocb` of a 64-bit little-endian machine."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("rw_flags", ctypes.c_uint32),
        ("opcode", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("descriptor", ctypes.c_uint32),
        ("buffer", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("eventfd", ctypes.c_uint32),
    )


class _Event(ctypes.Structure):
    """`struct io_event`."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("block", ctypes.c_uint64),
        ("result", ctypes.c_int64),
        ("result2", ctypes.c_int64),
    )


class _Timeout(ctypes.Structure):
    """`struct timespec`."""

    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class AioQueue:
    """A few syncs at a time. Whoever waits for the `eventfd` to become readable asks `ended`."""

    def __init__(self, calls: _Calls) -> None:
        self._calls = calls
        self._context = ctypes.c_ulong(0)
        self._is_open = False
        _call(calls.setup, ctypes.c_uint(SYNC_FILES_AT_ONCE_MAX), ctypes.byref(self._context))
        self._is_open = True
        self.eventfd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._blocks = (_ControlBlock * SYNC_FILES_AT_ONCE_MAX)()
        for block in self._blocks:
            block.opcode, block.flags, block.eventfd = _FDSYNC, _RESULT_TO_EVENTFD, self.eventfd
        self._pointers = (ctypes.POINTER(_ControlBlock) * SYNC_FILES_AT_ONCE_MAX)(
            *(ctypes.pointer(block) for block in self._blocks)
        )
        self._events = (_Event * SYNC_FILES_AT_ONCE_MAX)()

    def __del__(self) -> None:
        self.close()

    def submit(self, descriptors: Sequence[int]) -> int:
        """How many syncs were begun, from the first; `OSError` where none was."""
        for block, descriptor in zip(self._blocks, descriptors, strict=False):
            block.descriptor = descriptor
        return _call(self._calls.submit, self._context, ctypes.c_long(len(descriptors)), self._pointers)

    def ended(self) -> list[int]:
        """The `errno` of each sync that has ended since this was asked last, 0 for one that went well."""
        try:
            os.eventfd_read(self.eventfd)
        except BlockingIOError:
            return []
        return self._fetch(least=0, timeout=None)

    def probe(self) -> None:
        """Sync a file that is in memory; `OSError` where the kernel cannot do so by itself."""
        descriptor = os.memfd_create("ropewalk", os.MFD_CLOEXEC)
        try:
            self.submit([descriptor])
            codes = self._fetch(least=1, timeout=ctypes.byref(_Timeout(_PROBE_S, 0)))
        finally:
            os.close(descriptor)
        if codes != [0]:
            raise OSError(codes[0] if codes else errno.ETIMEDOUT, "the kernel did not sync by itself")
        os.eventfd_read(self.eventfd)

    def close(self) -> None:
        """Wait for what is under way, and let go of everything. To be called again does no harm."""
        if self._is_open:
            self._is_open = False
            _call(self._calls.destroy, self._context)
            os.close(self.eventfd)

    def _fetch(self, *, least: int, timeout: object) -> list[int]:
        count = _call(
            self._calls.getevents,
            self._context,
            ctypes.c_long(least),
            ctypes.c_long(SYNC_FILES_AT_ONCE_MAX),
            self._events,
            timeout,
        )
        return [-min(0, self._events[index].result) for index in range(count)]


def open_queue() -> AioQueue | None:
    """None where this machine has no such syncs: an unknown architecture, calls that are refused, or none left (`aio-max-nr`)."""
    calls = _CALLS.get(platform.machine())
    if calls is None or sys.maxsize < 1 << 32 or sys.byteorder != "little":
        return None
    try:
        queue = AioQueue(calls)
    except OSError:
        return None
    try:
        queue.probe()
    except OSError:
        queue.close()
        return None
    return queue


def _call(number: int, *arguments: object) -> int:
    result: int = _libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
