"""The SQS door: where it listens, whom it believes, and how its keys are read again when their file changes.

Behaviour worth knowing
    Without `sqs.credentials` any key will do, and nothing is checked. That is for development: such a door listens on the loopback,
    and on another address only where `sqs.insecure` insists.
    A file of keys that cannot be read when the node runs changes nothing, and is complained about once for every state of it.
    Front ends have this door, and nobody else.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import structlog
from msgspec import Struct

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.limits import (
    SQS_BODY_BYTES_MAX,
    SQS_CONNECTIONS_MAX,
    SQS_IDLE_MS_MAX,
    SQS_QUERY_FIELDS_MAX,
    SQS_URL_BYTES_MAX,
)
from ropewalk.base.ports import Pool
from ropewalk.http.handlers import health as health_pages
from ropewalk.http1.bounds import HttpBounds
from ropewalk.http1.connections import HttpConnections
from ropewalk.http1.listener import HttpListener
from ropewalk.metadata.records import SQS_HTTPS_LISTENER, SQS_LISTENER
from ropewalk.node.addresses import NONE, parse_address
from ropewalk.node.build import Parts
from ropewalk.node.certificates import contexts_of_door
from ropewalk.node.config import Config
from ropewalk.node.doors import SQS, Door, advertised
from ropewalk.node.exposure import is_loopback
from ropewalk.node.listening import listen_at
from ropewalk.sqs.admission import Admission
from ropewalk.sqs.authentication import AnyKey, Key, KnownKeys, SessionKeys
from ropewalk.sqs.credentials import DERIVING, Stamps, read_keys, stamps_of
from ropewalk.sqs.credentials import SETTING as CREDENTIALS
from ropewalk.sqs.desk import Desk, DeskRules
from ropewalk.sqs.engine import Changes, Facts, Messages
from ropewalk.sqs.receipts import Receipts
from ropewalk.sqs.routes import Routes

_log = structlog.get_logger()

SETTING: Final = "sqs.listen"
BOUNDS: Final = HttpBounds(
    connections_max=SQS_CONNECTIONS_MAX,
    body_bytes_max=SQS_BODY_BYTES_MAX,
    head_bytes_max=2 * SQS_URL_BYTES_MAX,
    url_bytes_max=SQS_URL_BYTES_MAX,
    query_fields_max=SQS_QUERY_FIELDS_MAX,
    idle_ms_max=SQS_IDLE_MS_MAX,
)


def is_wanted(config: Config) -> bool:
    return config[SETTING] != NONE and "frontend" in config.roles


class NodeEngine(Struct, frozen=True):
    """What a node has for the door."""

    facts: Facts
    changes: Changes
    messages: Messages


def sqs_door(parts: Parts) -> Door | None:
    """None where the configuration wants no door. Opening it raises `CannotListen` and `InvalidSetting`."""
    config, ports = parts.config, parts.ports
    if not is_wanted(config):
        return None
    connections = HttpConnections(SQS, ports.clock, BOUNDS, parts.budget)
    parts.instruments.add_source(connections)
    desk = Desk(
        NodeEngine(parts.cluster.image.queues, parts.queue_changes, parts.to_queues),
        ports.clock,
        Receipts(parts.place.directory.identity.cluster_id),
        partial(_rules, parts, knows_callers=bool(config[CREDENTIALS]) or parts.access.is_on),
    )
    health = parts.instruments.health

    async def listen() -> "SqsEntrance":
        stamps = stamps_of(*_key_files(config))  # before it is read: what changes meanwhile is noticed
        keys = await _keys(config, parts)
        routes = Routes(
            Admission(desk, parts.access),
            SessionKeys(ports.clock, parts.bearers, keys or AnyKey()),
            ports.rng,
            origin=_origin(config),
            scheme=_scheme(config),
            pages={
                "/livez": partial(health_pages.handle_live, health=health),
                "/readyz": partial(health_pages.handle_ready, health=health),
            },
        )
        start = partial(
            HttpListener.start,
            ports.network,
            connections=connections,
            answer=routes.answer,
            tls=await contexts_of_door(parts.certificates, config, "sqs"),
            proxies=config.proxies,
        )
        listener = await listen_at(config, SETTING, door="SQS", option="--sqs", listen=start)
        watch = None if keys is None else KeyFile(_key_files(config), keys, ports.pool, stamps)
        return SqsEntrance(listener, watch)

    return Door(SQS, listen, (partial(advertised, config, "sqs.advertise", _registered_as(config)),))


def _rules(parts: Parts, *, knows_callers: bool) -> DeskRules:
    """As the cluster has them: a configuration that says otherwise is warned of when the node starts."""
    settings = parts.topics.broker_settings
    return DeskRules(
        settings.sqs_account,
        settings.sqs_fifo_partitions,
        knows_callers and settings.cluster_delete_by == "admin",
    )


async def _keys(config: Config, parts: Parts) -> KnownKeys | None:
    """None in development."""
    path = config[CREDENTIALS]
    if path:
        return KnownKeys(parts.ports.clock, await parts.ports.pool.run(read_keys, *_key_files(config)))
    host, _ = parse_address(config[SETTING], SETTING)
    if is_loopback(host):
        return None
    if config["sqs.insecure"] != "true":
        raise InvalidSetting(
            f"{SETTING} is {config[SETTING]}, which other machines can reach, and there are no {CREDENTIALS}: name a file of keys, "
            "listen on the loopback, or say --insecure to serve whoever asks"
        )
    _log.warning(
        "whoever reaches the SQS port may send, receive and delete everything: no signature is checked",
        listen=config[SETTING],
    )
    return None


def _key_files(config: Config) -> tuple[str, ...]:
    """That of access keys first, then that of credential keys where there is one."""
    return tuple(each for each in (config[CREDENTIALS], config[DERIVING]) if each)


def _origin(config: Config) -> str:
    """Empty: whatever address the client asked."""
    address = config["sqs.advertise"]
    return f"{_scheme(config)}://{address}" if address else ""


def _scheme(config: Config) -> str:
    return "https" if config.is_encrypted(SQS) else "http"


def _registered_as(config: Config) -> str:
    return SQS_HTTPS_LISTENER if config.is_encrypted(SQS) else SQS_LISTENER


class KeyFile:
    """Reads the keys again when their file has changed: in the pool, and what it finds counts on the loop, between two requests."""

    def __init__(self, paths: tuple[str, ...], keys: KnownKeys, pool: Pool, stamps: Stamps) -> None:
        """`stamps` were the files' before the keys were read."""
        self._paths = paths
        self._keys = keys
        self._pool = pool
        self._stamps = stamps
        self._reading: asyncio.Future[_Found | None] | None = None

    def look(self) -> None:
        """Called every few seconds; what it finds counts a moment later."""
        if self._reading is None or self._reading.done():
            self._reading = self._pool.run(_read_if_changed, self._paths, self._stamps)
            self._reading.add_done_callback(self._on_read)

    def _on_read(self, reading: "asyncio.Future[_Found | None]") -> None:
        found = None if reading.cancelled() else reading.result()
        if found is None:
            return
        self._stamps = found.stamps
        if isinstance(found.keys, InvalidSetting):
            _log.error("the keys for SQS stay as they were", reason=str(found.keys))
            return
        self._keys.replace(found.keys)
        _log.info("the keys for SQS were read again", key_count=len(found.keys))


class _Found(Struct, frozen=True):
    """A file of keys that is another than before."""

    stamps: Stamps
    keys: Mapping[str, Key] | InvalidSetting


def _read_if_changed(paths: tuple[str, ...], known: Stamps) -> _Found | None:
    """Waits for the disk. None where nothing has changed."""
    stamps = stamps_of(*paths)
    if stamps == known:
        return None
    try:
        return _Found(stamps, read_keys(*paths))
    except InvalidSetting as error:
        return _Found(stamps, error)


class SqsEntrance:
    """The listener, with the keys that it believes."""

    def __init__(self, listener: HttpListener, keys: KeyFile | None) -> None:
        self._listener = listener
        self._keys = keys

    @property
    def addresses(self) -> Sequence[tuple[str, int]]:
        return self._listener.addresses

    def sweep(self) -> None:
        self._listener.sweep()
        if self._keys is not None:
            self._keys.look()

    def stop(self) -> None:
        self._listener.stop()

    def hasten(self) -> "asyncio.Future[None]":
        return self._listener.hasten()

    def close(self) -> None:
        self._listener.close()

    def abort(self) -> None:
        self._listener.abort()

    def pause(self) -> None:
        self._listener.pause()

    def resume(self) -> None:
        self._listener.resume()
