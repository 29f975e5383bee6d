"""Standard input, cut into messages as they come.

What a reader could get wrong
    A terminal and a pipe are waited on with the event loop; a file is simply read, since it never makes wait
    and cannot be waited on. The descriptor stays blocking: on a terminal it is shared with stdout.
    The last message needs no delimiter. An empty input holds no message.
"""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from typing import BinaryIO, Final

from ropewalk.base.limits import CLIENT_LINE_BYTES_MAX
from ropewalk.cli.failure import Failed

_READ_BYTES: Final = 1 << 18


async def read_messages(source: BinaryIO, delimiter: bytes) -> AsyncIterator[list[bytes]]:
    """Whatever messages have come, in groups as they came; never an empty group."""
    rest = b""
    async for chunk in _chunks(source):
        *messages, rest = (rest + chunk).split(delimiter)
        if len(rest) > CLIENT_LINE_BYTES_MAX:
            raise Failed(f"a message is longer than {CLIENT_LINE_BYTES_MAX} bytes; is the delimiter right?")
        if messages:
            yield messages
    if rest:
        yield [rest]


async def _chunks(source: BinaryIO) -> AsyncIterator[bytes]:
    try:
        descriptor = source.fileno()
    except OSError:  # not a file: a test's buffer
        while chunk := source.read(_READ_BYTES):
            yield chunk
        return
    waits = _can_be_waited_on(descriptor)
    while True:
        if waits:
            await _until_readable(descriptor)
        chunk = os.read(descriptor, _READ_BYTES)
        if not chunk:
            return
        yield chunk


def _can_be_waited_on(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


async def _until_readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, _set, readable)
    try:
        await readable
    finally:
        loop.remove_reader(descriptor)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
