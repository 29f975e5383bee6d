"""Where files are: a directory of this machine's, or the address of one that pyarrow or fsspec knows."""

import contextlib
import os
import time
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow.fs import (
    FileSelector,
    FileSystem,
    FileType,
    FSSpecHandler,
    LocalFileSystem,
    PyFileSystem,
    S3FileSystem,
)

from ropewalk.spark.checkpoints import local_path
from ropewalk.spark.refusals import WrongUse
from ropewalk.spark.storage import Storage, bucket_and_key, is_object_store


def local_directory(address: str) -> Path | None:
    """The directory itself, from the root, where it is one of this machine's."""
    local = local_path(address)
    return None if local is None else Path(os.path.abspath(local))


class Place:
    """A directory. Not to be handed from process to process; its address is."""

    def __init__(self, address: str, storage: Storage | None = None) -> None:
        self.address = address
        self._local = local_directory(address)
        if self._local is None:
            self._files, self._root = _file_system(address, storage or Storage())
        else:
            self._files, self._root = LocalFileSystem(), str(self._local)

    def create(self, path: str) -> pa.NativeFile:
        full = self._full(path)
        if self._local is not None:
            Path(full).parent.mkdir(parents=True, exist_ok=True)
        return self._files.open_output_stream(full)

    def open(self, path: str) -> pa.NativeFile:
        return self._files.open_input_file(self._full(path))

    def read(self, path: str) -> bytes:
        with self._files.open_input_stream(self._full(path)) as file:
            return bytes(file.read())

    def seal(self, path: str) -> int:
        """The size of a file that is complete, after it is safe from a loss of power where that is ours to see to."""
        full = self._full(path)
        if self._local is None:
            return int(self._files.get_file_info(full).size)
        sync(Path(full))
        sync(Path(full).parent)
        return os.path.getsize(full)

    def has(self, path: str, size_bytes: int) -> bool:
        found = self._files.get_file_info(self._full(path))
        return bool(found.type is FileType.File and found.size == size_bytes)

    def files(self) -> list[tuple[str, float]]:
        """All below it, by their paths relative to it, and when they were written, in seconds since 1970."""
        below = FileSelector(self._root, allow_not_found=True, recursive=True)
        found = [each for each in self._files.get_file_info(below) if each.type is FileType.File]
        return [
            (os.path.relpath(each.path, self._root), each.mtime.timestamp() if each.mtime else time.time())
            for each in found
        ]

    def delete(self, path: str) -> None:
        """It may be gone already: several may tidy up at once."""
        with contextlib.suppress(FileNotFoundError):
            self._files.delete_file(self._full(path))

    def _full(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}"


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _file_system(address: str, storage: Storage) -> tuple[FileSystem, str]:
    if is_object_store(address):
        return S3FileSystem(**storage.for_arrow()), "/".join(bucket_and_key(address))
    try:
        files, root = FileSystem.from_uri(address)
        return files, str(root)
    except pa.ArrowInvalid:
        pass  # not one of pyarrow's own
    scheme = urlsplit(address).scheme
    refusal = WrongUse(
        f"{address}: nothing here writes to {scheme}://; install the package of fsspec that does, or name a directory"
    )
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise refusal from None
    try:
        files, root = url_to_fs(address)
    except (ImportError, ValueError):
        raise refusal from None
    return PyFileSystem(FSSpecHandler(files)), str(root)
