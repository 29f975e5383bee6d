"""Where a door for clients of HTTP listens, and what becomes of it when that address is taken.

Behaviour worth knowing
    If nobody chose the address and another process has it, as with a second node on one machine, any free port is
    taken instead: nobody should have to choose an address for metrics or queues in order to start a node.
"""

import errno
from collections.abc import Awaitable, Callable

import structlog

from ropewalk.base.errors import RopewalkError
from ropewalk.http1.listener import HttpListener
from ropewalk.node.addresses import NONE, parse_address
from ropewalk.node.config import Config

_log = structlog.get_logger()


class CannotListen(RopewalkError):
    """The address that was chosen for the door cannot be had."""


async def listen_at(
    config: Config,
    setting: str,
    *,
    door: str,
    option: str,
    listen: Callable[[str, int], Awaitable[HttpListener]],
) -> HttpListener:
    """`door` and `option` are what it is called to people. Raises `CannotListen`."""
    host, port = parse_address(config[setting], setting)
    try:
        return await listen(host, port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise CannotListen(f"cannot listen on {config[setting]}: {error.strerror or error}") from error
        if not config.is_default(setting):
            raise CannotListen(
                f"{config[setting]} is taken by another process; choose another address with {option} HOST:PORT "
                f"(port 0 takes any free one, {option} {NONE} leaves the {door} door out)"
            ) from error
    listener = await listen(host, 0)
    _log.warning(
        f"the usual {door} port is taken by another process; another one is used",
        usual=config[setting],
        used=f"{host}:{listener.address[1]}",
    )
    return listener
