"""A directory of an object store, for what must be created and never replaced: an act that succeeds for one alone.

What a reader could get wrong
    A store that does not know `If-None-Match` takes a second object in place of the first without a word. `refuse_unfit` finds that out
    before anything rests on it.
    An answer may be lost though the object has arrived. Whoever asks again is then told that there is one; it is theirs if it holds what they sent.
"""

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Final, cast

from msgspec import structs

from ropewalk.spark.refusals import PipelineFailed, WrongUse
from ropewalk.spark.storage import CONNECT_S, RETRIES_MAX, Storage, bucket_and_key
from ropewalk.spark.store_words import BUSY, said_by_store

if TYPE_CHECKING:
    from obstore.store import S3Config

_PROBE: Final = "_ropewalk/created-once"
_PROBE_SECONDS: Final = 15
"""How long a store may take to answer before a job is refused."""


class StoreFailed(PipelineFailed):
    """The store has not done what it was asked; whether it will is not known."""


class Objects:
    def __init__(self, address: str, storage: Storage) -> None:
        from obstore.store import S3Store  # here: only object stores need it

        bucket, key = bucket_and_key(address)
        options = storage.for_delta()
        self._address = address
        self._store = S3Store(
            bucket,
            prefix=key or None,
            # Its names are those of the same crate that delta-rs is built on, and the crate refuses others.
            config=cast(
                "S3Config", {name: value for name, value in options.items() if name.startswith("aws_")}
            ),
            client_options={
                "allow_http": options["allow_http"] == "true",
                "connect_timeout": timedelta(seconds=CONNECT_S),
                "timeout": timedelta(seconds=storage.patience_s),
            },
            retry_config={
                "max_retries": RETRIES_MAX,
                "retry_timeout": timedelta(seconds=storage.patience_s),
            },
        )

    def create(self, path: str, content: bytes) -> bool:
        """Whether it is there by this call and holds `content`."""
        from obstore.exceptions import AlreadyExistsError

        with self._failures_in_words():
            try:
                self._store.put(path, content, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return self.read(path) == content
            return True

    def replace(self, path: str, content: bytes) -> None:
        with self._failures_in_words():
            self._store.put(path, content, use_multipart=False)

    def read(self, path: str) -> bytes:
        with self._failures_in_words():
            return bytes(self._store.get(path).bytes())

    def names(self, directory: str, *, after: str) -> list[str]:
        """Of what lies in it, in the order of names, from the first that is behind `after`."""
        with self._failures_in_words():
            listed = self._store.list(directory, offset=f"{directory}/{after}").collect()
        return [each["path"].rpartition("/")[2] for each in listed]

    @contextlib.contextmanager
    def _failures_in_words(self) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError) as error:
            said = said_by_store(str(error)) or _first_line(str(error))
            raise StoreFailed(f"{self._address}: {said}") from None


def refuse_unfit(address: str, storage: Storage) -> None:
    """Raises `WrongUse` for a store that is not there, has no such bucket, refuses the keys, or cannot be relied on to create what
    is not there yet. Leaves one small object."""
    impatient = structs.replace(storage, patience_s=min(storage.patience_s, _PROBE_SECONDS))
    objects = Objects(address, impatient)
    try:
        first = objects.create(_PROBE, b"1")
        second = objects.create(_PROBE, b"2")
    except StoreFailed as error:
        if BUSY in str(error):
            raise
        raise WrongUse(str(error)) from None
    if second or not first:
        raise WrongUse(
            f"{address}: this object store replaces an object that was to be created only if there was none (If-None-Match), so that two runs"
            " of a job could overwrite each other; use one that does not, or a shared file system"
        )


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "it said nothing"
