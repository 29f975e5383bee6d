"""The ports: everything the engine asks of the world outside.

Adapters on the real operating system live in `runtime/`, adapters with virtual time, a faulty network
and a crashable disk in `sim/`. The same broker runs on either.

What a reader could get wrong
    `Disk` and `File` calls block. On the event loop only the calls that touch the page cache are
    made (`File.append`, `File.read_cached`); everything else goes through a `Pool`.
    A file's new name is durable only after `sync_directory` (or a sync of everything); a file's bytes
    only after `File.sync` (or a sync of everything).
    An error of write-back is told once to each open description of a file or of a file system. Whoever counts on hearing it
    has a description of its own, older than what it writes (`open_everything`).
    Paths are plain strings, absolute, with `/`.
"""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Final, Protocol, TypeVar, runtime_checkable

from msgspec import Struct
from typing_extensions import Buffer

from ropewalk.base.syncs import Syncs

T = TypeVar("T")

Networks = Sequence[IPv4Network | IPv6Network]


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall time in milliseconds since 1970; may jump either way."""

    def monotonic_ms(self) -> float:
        """For measuring and for deadlines; never goes back."""


class Rng(Protocol):
    """The part of `random.Random` that the engine uses."""

    def random(self) -> float: ...
    def uniform(self, a: float, b: float) -> float: ...
    def randrange(self, start: int, stop: int) -> int: ...
    def randbytes(self, n: int) -> bytes: ...


class File(Protocol):
    """One open file; nothing here keeps a cursor. It is closed when the last reference is dropped."""

    def append(self, data: Buffer) -> int:
        """Write at the end, into the page cache, and say how many bytes were taken (possibly too few)."""

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file. May wait for the disk."""

    def read_cached(self, position: int, size: int) -> bytes | memoryview | None:
        """Exactly `size` bytes, or None where that would wait for the disk. Called from the event loop only.

        A view may be of a buffer that is used again once the last reference to the view is dropped.
        """

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def rewrite(self, position: int, data: Buffer) -> None:
        """Write bytes again where they stand already, so that the next `sync` takes them to disk for certain.

        After a failed sync the kernel calls pages clean that the disk never got; a process that finds them in the page
        cache later would sync nothing. A crash at any moment leaves the bytes as they were.
        """

    def hear_former_errors(self) -> None:
        """Let the kernel tell of write-backs that failed before this process began, which are nothing to end it for.

        For a start, before anything is changed; whatever the former process wrote and did not sync is then rewritten, or cut.
        Waits for the disk.
        """

    def drop_cached(self) -> None:
        """Have the kernel let go of the pages that it calls clean: what is read next is what the disk has.

        After a failed write-back the cache shows more than that, and to write it again is not enough: ext4 writes to blocks
        that it goes on calling unwritten, and shows zeros when it is mounted next.
        """

    def sync(self) -> None:
        """Return when the bytes are on disk. After `SyncFailed` the node must stop: the page cache lies."""


class Everything(Protocol):
    """All that is on a disk, as one who syncs it has it open. Not to be shared: what one hears, another does not."""

    def sync(self) -> None:
        """Return when every file and name is on disk. Fails if any write-back has failed since this was opened."""


class Disk(Protocol):
    """A file system. Errors are `OSError` with the usual `errno`; those of syncs are `SyncFailed`."""

    @property
    def syncs(self) -> Syncs:
        """Whether all syncs have succeeded so far."""

    @property
    def can_sync_everything(self) -> bool:
        """Whether one sync makes every file and name durable at once, and tells of every error (`syncfs`)."""

    @property
    def can_be_full(self) -> bool:
        """Whether a write may meet its end, so that room has to be kept back on it to empty it with."""

    def open(self, path: str, *, create: bool = False) -> File: ...

    def exists(self, path: str) -> bool: ...

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted."""

    def make_directory(self, path: str) -> None:
        """Parents too; an existing directory is fine. Names are durable after `sync_directory` of each parent."""

    def rename(self, source: str, target: str) -> None: ...

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with all that is in it. What is already gone is fine."""

    def sync_directory(self, path: str) -> None: ...

    def begin_sync(self, files: Sequence[File]) -> "asyncio.Future[None] | None":
        """Sync these few files without a thread: called on the event loop, answered there; up to `SYNC_FILES_AT_ONCE_MAX`.

        None where that cannot be done, here or just now; the caller syncs them in the `Pool` then. As after `File.sync`, `SyncFailed`,
        raised or in the future, means that the node must stop. To cancel the future does not end the sync.
        """

    async def drain(self) -> None:
        """Return when no sync that `begin_sync` began is under way; what became of it is known to `syncs`."""

    def open_everything(self) -> Everything:
        """Open it before anything is written that is to be synced with it. Only where `can_sync_everything`."""

    def hear_former_errors(self) -> None:
        """As `File.hear_former_errors`, of the whole file system: nobody who opens it later hears of them."""

    def sync_everything(self) -> None:
        """As `Everything.sync`, for the last word on this disk: it hears of every error since the process began."""

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int:
        """The size of the file system, whatever it holds."""

    def lock(self, path: str) -> None:
        """Hold `path` as a lock file until `close` or the end of the process, or raise `BlockingIOError`."""

    def close(self) -> None:
        """Let go of the locks; files live as long as they are referenced."""


class Pool(Protocol):
    """Where blocking calls run, off the event loop."""

    def run(self, function: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        """Calls started together may run in any order and at the same time."""

    async def drain(self) -> None:
        """Return when all that was begun by now has ended, also what nobody waits for any more: a thread cannot be cancelled."""


class Listener(Protocol):
    """A listening socket."""

    @property
    def address(self) -> tuple[str, int]: ...

    def stop(self) -> None:
        """Accept no more; connections already made live on."""


class TlsContexts(Protocol):
    """Where contexts come from. A new connection takes the one of its day: certificates are replaced while a node runs."""

    def __call__(self) -> ssl.SSLContext: ...


@runtime_checkable
class HearsOfHandshake(Protocol):
    """A protocol that is to know when TLS is up, before it gets anything to read: its transport then has `peercert_der`, the certificate shown."""

    def on_handshake_done(self) -> None: ...


class Network(Protocol):
    async def listen(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        tls: TlsContexts | None = None,
        takes_plain: Callable[[], bool] | None = None,
        proxies: Networks = (),
    ) -> Listener:
        """With `tls` a protocol is told of its connection before the handshake, and of what is sent to it after; with `takes_plain`, which is
        asked each time, others are taken without TLS, and a protocol is told with the first byte. Connections from the
        networks of `proxies` begin with a header that says for whom they are made, and are the clients' from there on."""

    async def connect(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        tls: TlsContexts | None = None,
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        """With `tls` the other side proves that it is `host`, as far as the context asks for proof."""

    async def resolve(self, host: str) -> Sequence[str]:
        """Every address that the name stands for, each once; raises `OSError` where nobody knows."""


class Usage(Struct, frozen=True, kw_only=True):
    """What a process has taken of its machine. 0 where the machine does not tell."""

    started_at_s: float = 0.0
    cpu_user_s: float = 0.0
    cpu_system_s: float = 0.0
    resident_bytes: int = 0
    address_space_bytes: int = 0
    descriptor_count: int = 0
    descriptor_count_max: int = 0
    disk_read_bytes: int = 0
    disk_written_bytes: int = 0


class OwnProcess(Protocol):
    """The process that the node runs in."""

    def usage(self) -> Usage:
        """Takes a millisecond for every few thousand descriptors: call it in the `Pool`."""


class ClientPorts(Protocol):
    """What a client needs of the world."""

    clock: Clock
    rng: Rng
    network: Network


class Ports(Protocol):
    """All of them, as a node is given them."""

    clock: Clock
    rng: Rng
    disk: Disk
    pool: Pool
    network: Network
    process: OwnProcess


def write_atomically(disk: Disk, path: str, data: bytes) -> None:
    """Replace the file at `path`: after a crash it holds the former content or `data`, never a mixture.

    Blocks until the replacement is durable.
    """
    _write_beside(disk, path, data).sync()
    disk.rename(path + _BESIDE, path)
    disk.sync_directory(path.rpartition("/")[0])


def write_all_atomically(disk: Disk, contents: Sequence[tuple[str, bytes]]) -> None:
    """As `write_atomically` for every path and its data, with two syncs in all where one can reach everything."""
    if len(contents) <= 1 or not disk.can_sync_everything:
        for path, data in contents:
            write_atomically(disk, path, data)
        return
    everything = disk.open_everything()
    for path, data in contents:
        _write_beside(disk, path, data)
    everything.sync()
    for path, _ in contents:
        disk.rename(path + _BESIDE, path)
    everything.sync()


def read_whole(disk: Disk, path: str) -> bytes:
    file = disk.open(path)
    return file.read(0, file.size())


_BESIDE: Final = ".tmp"


def _write_beside(disk: Disk, path: str, data: bytes) -> File:
    """What is to replace the file at `path`, not durable yet."""
    temporary = path + _BESIDE
    disk.remove(temporary)
    try:
        file = disk.open(temporary, create=True)
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[file.append(remaining) :]
    except OSError:
        disk.remove(temporary)  # a disk that is full has no room for what is of no use
        raise
    return file
