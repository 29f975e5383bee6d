"""The certificates of a node: read before it opens a door, watched while it runs, and replaced for those who come next.

Behaviour worth knowing
    A node whose files cannot be used does not start, and says which. Files that change while it runs are tried first: what cannot be
    used is refused with one line, /healthz says so, and those who come are served with what was there before.
    A connection keeps the certificate that it began with. Sessions of TLS are forgotten with the former contexts.
    A certificate that ends within 30 days is warned of at every start and once a day, one that ends within 7 makes the node unwell.

What a reader could get wrong
    Nothing of this is loaded by a node that speaks no TLS.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import structlog

from ropewalk.base import metrics
from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import CERTIFICATES_LOOK_MS
from ropewalk.base.metrics import Sheet
from ropewalk.base.ports import Clock, Pool, Ports, TlsContexts
from ropewalk.node.config import Config
from ropewalk.security.identity import Identity

if TYPE_CHECKING:
    import ssl

    from ropewalk.security.certificates import CertificateNames, Loaded, TlsFiles

_log = structlog.get_logger()

_DAY_MS: Final = 86_400_000
_WARNED_MS: Final = 30 * _DAY_MS
_UNWELL_MS: Final = 7 * _DAY_MS


class Certificates:
    """Those that the node's doors show."""

    def __init__(self, pool: Pool, clock: Clock) -> None:
        self._pool = pool
        self._clock = clock
        self._kept: dict[TlsFiles, _Kept] = {}
        self._is_asked = asyncio.Event()
        self._other_troubles: list[Callable[[], str | None]] = []

    @property
    def are_any(self) -> bool:
        return bool(self._kept)

    async def contexts(self, files: "TlsFiles") -> TlsContexts:
        """Raises `InvalidSetting`."""
        return await self._keep(files)

    async def loaded(self, files: "TlsFiles") -> "Callable[[], Loaded]":
        """What the files came to when they were read last. Raises `InvalidSetting`."""
        kept = await self._keep(files)
        return lambda: kept.loaded

    async def _keep(self, files: "TlsFiles") -> "_Kept":
        kept = self._kept.get(files)
        if kept is None:
            loaded = await self._pool.run(_load, files, self._clock.now_ms())
            kept = self._kept[files] = _Kept(files, loaded)
            self._say(kept)
        return kept

    async def run(self) -> None:
        """Look after the files for as long as the node lives."""
        while True:
            with suppress(TimeoutError):  # nobody asked: it is time to look all the same
                async with asyncio.timeout(CERTIFICATES_LOOK_MS / 1000):
                    await self._is_asked.wait()
            self._is_asked.clear()
            for kept in list(self._kept.values()):
                await self._look(kept)

    def look_now(self) -> None:
        """Somebody says that the files have changed."""
        self._is_asked.set()

    def tell_also(self, trouble: Callable[[], str | None]) -> None:
        """Of secrets, which are files that change like certificates."""
        self._other_troubles.append(trouble)

    def trouble(self) -> str | None:
        """What somebody should see to, in a few words."""
        return next(iter(self._troubles()), None)

    def warnings(self) -> Sequence[str]:
        """What would be wise to know, for people."""
        return [
            warning
            for kept in self._kept.values()
            for warning in (*kept.loaded.warnings, *filter(None, (self._ending(kept, _WARNED_MS),)))
        ]

    def collect(self, sheet: Sheet) -> Iterator[None]:
        now_ms = self._clock.now_ms()
        ends: dict[str, int] = {}
        for files, kept in self._kept.items():
            known = ends.get(files.keystore, kept.loaded.ends_at_ms)
            ends[files.keystore] = min(known, kept.loaded.ends_at_ms)
        for path, ends_at_ms in sorted(ends.items()):
            sheet.add(metrics.CERTIFICATE_LEFT, max(0, ends_at_ms - now_ms) / 1000, path)
        yield

    async def _look(self, kept: "_Kept") -> None:
        from ropewalk.security.certificates import read_digest

        try:
            digest = await self._pool.run(read_digest, kept.files)
            if digest not in (kept.loaded.digest, kept.refused_digest):
                kept.refused_digest = digest
                kept.loaded = await self._pool.run(_load, kept.files, self._clock.now_ms())
                kept.refused_digest = None
                _log.info("certificates were read again", file=kept.files.keystore)
        except InvalidSetting as error:
            kept.refuse(str(error))
            return
        if kept.refused_digest is None:
            kept.refusal = None
        self._say(kept)

    def _say(self, kept: "_Kept") -> None:
        """Once a day, for as long as it is true."""
        now_ms = self._clock.now_ms()
        ending = self._ending(kept, _WARNED_MS)
        if (ending is not None or kept.loaded.warnings) and now_ms - kept.said_at_ms >= _DAY_MS:
            kept.said_at_ms = now_ms
            for warning in (*kept.loaded.warnings, *filter(None, (ending,))):
                _log.warning(warning)

    def _troubles(self) -> Iterator[str]:
        yield from filter(None, (trouble() for trouble in self._other_troubles))
        for kept in self._kept.values():
            if kept.refusal is not None:
                yield f"files that changed are not used: {kept.refusal}"
            ending = self._ending(kept, _UNWELL_MS)
            if ending is not None:
                yield ending

    def _ending(self, kept: "_Kept", within_ms: int) -> str | None:
        left_ms = kept.loaded.ends_at_ms - self._clock.now_ms()
        if left_ms > within_ms:
            return None
        if left_ms <= 0:
            return (
                f"the certificate in {kept.files.keystore}, or the list of revocations beside it, has ended"
            )
        return f"the certificate in {kept.files.keystore}, or the list of revocations beside it, ends in {left_ms // _DAY_MS} days"


def _load(files: "TlsFiles", now_ms: int) -> "Loaded":
    """Runs in the pool."""
    if files.node_id is None:
        from ropewalk.security.certificates import load

        return load(files, now_ms)
    from ropewalk.security.node_certificates import load_for_nodes

    return load_for_nodes(files, now_ms)


class _Kept:
    """Contexts of the same files: called, it gives the one of the day."""

    def __init__(self, files: "TlsFiles", loaded: "Loaded") -> None:
        self.files = files
        self.loaded = loaded
        self.refused_digest: bytes | None = None
        """Of a state of the files that cannot be used, so that it is tried once."""
        self.refusal: str | None = None
        self.said_at_ms = -_DAY_MS

    def __call__(self) -> "ssl.SSLContext":
        return self.loaded.context

    def refuse(self, reason: str) -> None:
        if reason != self.refusal:
            self.refusal = reason
            _log.error("certificates stay as they were", reason=reason)


async def read_certificates(config: Config, ports: Ports) -> Certificates:
    """Those of every door that speaks TLS. Raises `InvalidSetting`."""
    certificates = Certificates(ports.pool, ports.clock)
    for listener in config.kafka_listeners:
        if listener.protocol.is_encrypted:
            await certificates.contexts(files_of(config, listener.name))
            names_of(config, listener.name)
    for door in ("http", "sqs"):
        await contexts_of_door(certificates, config, door)
    return certificates


async def contexts_of_door(certificates: Certificates, config: Config, door: str) -> TlsContexts | None:
    """Of a door that speaks HTTP; None where it is plain. Raises `InvalidSetting`."""
    return await certificates.contexts(files_of(config)) if config.is_encrypted(door) else None


def files_of(config: Config, listener: str | None = None) -> "TlsFiles":
    """Of a listener for Kafka's clients, or of the doors that speak HTTP, where nobody shows a certificate."""
    from ropewalk.security.certificates import ClientAuth, TlsFiles

    def said(name: str) -> str:
        return config[name] if listener is None else config.of_listener(listener, name)

    if not said("ssl.keystore.location"):
        raise InvalidSetting(
            "TLS needs ssl.keystore.location, a PEM file with the node's key and certificate"
        )
    auth = ClientAuth.NONE if listener is None else ClientAuth(said("ssl.client.auth"))
    versions = tuple(each.strip() for each in said("ssl.enabled.protocols").split(","))
    shared = TlsFiles(
        keystore=said("ssl.keystore.location"), password=said("ssl.key.password"), versions=versions
    )
    if auth is ClientAuth.NONE:
        return shared
    return TlsFiles(
        keystore=shared.keystore,
        password=shared.password,
        truststore=said("ssl.truststore.location"),
        revoked=said("ssl.crl.location"),
        client_auth=auth,
        versions=versions,
    )


def names_of(config: Config, listener: str) -> "CertificateNames | None":
    """None where clients of the listener show no certificate. Raises `InvalidSetting`."""
    from ropewalk.security.certificates import CertificateNames, ClientAuth, NameFrom

    if config.of_listener(listener, "ssl.client.auth") == ClientAuth.NONE:
        return None
    return CertificateNames(
        NameFrom(config.of_listener(listener, "ssl.principal.from")),
        config.of_listener(listener, "ssl.principal.mapping.rules"),
    )


def identify(names: "CertificateNames", clock: Clock) -> Callable[[bytes], Identity]:
    def identity_of(der: bytes) -> Identity:
        name, ends_at_ms = names.name_of(der, clock.now_ms())
        return Identity(f"User:{name}", method="certificate", ends_at_ms=ends_at_ms)

    return identity_of
