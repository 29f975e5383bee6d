"""How a node speaks TLS with etcd: contexts from files that are watched, as those of its doors are.

What a reader could get wrong
    A connection to etcd keeps the certificate that it began with. Files that cannot be used leave the context that there was.
"""

import asyncio
import hashlib
import ssl
from pathlib import Path

import structlog

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import CERTIFICATES_LOOK_MS
from ropewalk.base.ports import Pool
from ropewalk.node.config import Config

_log = structlog.get_logger()


class EtcdContexts:
    """Called, it gives the context of the day. Made by `read_etcd_contexts`."""

    def __init__(
        self, files: tuple[str, str, str], pool: Pool, context: ssl.SSLContext, digest: bytes
    ) -> None:
        self._files = files
        self._pool = pool
        self._context = context
        self._digest = digest

    def __call__(self) -> ssl.SSLContext:
        return self._context

    async def run(self) -> None:
        """Look after the files for as long as the node lives."""
        while True:
            await asyncio.sleep(CERTIFICATES_LOOK_MS / 1000)
            digest = await self._pool.run(_digest, self._files)
            if digest == self._digest:
                continue
            self._digest = digest  # a state of the files that cannot be used is tried once
            try:
                self._context = await self._pool.run(_load, self._files)
            except InvalidSetting as error:
                _log.error("certificates for etcd stay as they were", reason=str(error))
            else:
                _log.info("certificates for etcd were read again")


async def read_etcd_contexts(config: Config, pool: Pool) -> EtcdContexts | None:
    """None where no member is reached by https. Raises `InvalidSetting`."""
    if not any(url.startswith("https://") for url in config.etcd_endpoints):
        return None
    authorities, certificate, key = (config[f"metadata.etcd.{name}"] for name in ("ca", "cert", "key"))
    files = (authorities, certificate, key)
    digest = await pool.run(_digest, files)
    return EtcdContexts(files, pool, await pool.run(_load, files), digest)


def _load(files: tuple[str, str, str]) -> ssl.SSLContext:
    """Runs in the pool."""
    authorities, certificate, key = files
    try:
        context = ssl.create_default_context(cafile=authorities or None)
        if certificate:
            context.load_cert_chain(certificate, key or None)
    except (OSError, ssl.SSLError) as error:
        raise InvalidSetting(f"metadata.etcd.ca, .cert or .key cannot be used: {error}") from error
    return context


def _digest(files: tuple[str, str, str]) -> bytes:
    """Runs in the pool. What tells one state of the files from another, unreadable ones included."""
    found = hashlib.sha256()
    for path in filter(None, files):
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            content = repr(error).encode()
        found.update(hashlib.sha256(content).digest())
    return found.digest()
