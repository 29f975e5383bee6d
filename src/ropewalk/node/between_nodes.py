"""What this node proves to others, and by what channels: settings and files made into a secret and contexts, looked after while it runs.

    auto      plain on a loopback address; elsewhere `require` from the level on that brought TLS between nodes, `allow` before that
    the rest  as `security/peer_channels.py` has it

What a reader could get wrong
    Before a node has heard of its cluster it knows no level. It asks for TLS then, unless its directory is older than the level: a mark
    in it says that the level was in force.
    The secret is read before the one before it. Whoever changes both writes them the other way round, and so no node sees the next one alone.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import structlog

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.levels import PEER_TLS_LEVEL
from ropewalk.base.limits import CERTIFICATES_LOOK_MS
from ropewalk.base.ports import Ports, write_atomically
from ropewalk.log.directory import DataDirectory
from ropewalk.metadata.image import Image
from ropewalk.node.certificates import Certificates
from ropewalk.node.config import Config, read_secret
from ropewalk.node.exposure import is_loopback
from ropewalk.security.cluster_secret import ClusterSecret
from ropewalk.security.peer_channels import IN_THE_CLEAR, OwnContexts, PeerChannels, PeerTls

if TYPE_CHECKING:
    from ropewalk.security.certificates import TlsFiles

_log = structlog.get_logger()

MARK: Final = "tls-between-nodes"
"""A file in a directory of data: TLS was demanded by the level once, and is from then on."""

_AUTO: Final = "auto"


class BetweenNodes:
    """Of a node that is not alone. Made by `read_between_nodes`."""

    def __init__(self, config: Config, ports: Ports, image: Image, *, is_older_than_level: bool) -> None:
        self.secret: Final = ClusterSecret(config["cluster.secret"], config["cluster.secret.previous"])
        self.channels = IN_THE_CLEAR
        self._config = config
        self._pool = ports.pool
        self._image = image
        self._is_older_than_level = is_older_than_level
        self._is_asked = asyncio.Event()
        self._trouble: str | None = None
        self._known = (config["cluster.secret"], config["cluster.secret.previous"])
        self._files = [
            config[f"{name}.file"] if config.comes_from_file(name) else ""
            for name in ("cluster.secret", "cluster.secret.previous")
        ]

    @property
    def mode(self) -> PeerTls:
        """That in force."""
        if self._config["peer.tls"] != _AUTO:
            return PeerTls(self._config["peer.tls"])
        if is_in_the_clear(self._config):
            return PeerTls.OFF
        level = self._image.level
        is_before = self._is_older_than_level if not level else level < PEER_TLS_LEVEL
        return PeerTls.ALLOW if is_before else PeerTls.REQUIRE

    def speak(self, own: Callable[[], OwnContexts]) -> None:
        """By TLS."""
        self.channels = PeerChannels(lambda: self.mode, own)

    async def mark(self, directory: DataDirectory) -> None:
        """Remember in the directory that the level demands TLS, once it does."""
        if (
            self._config["peer.tls"] == _AUTO
            and self._is_older_than_level
            and self._image.level >= PEER_TLS_LEVEL
        ):
            self._is_older_than_level = False
            await self._pool.run(_mark, directory)

    @property
    def watches_files(self) -> bool:
        return any(self._files)

    async def run(self) -> None:
        """Look after the files of secrets for as long as the node lives."""
        while True:
            with suppress(TimeoutError):  # nobody asked: it is time to look all the same
                async with asyncio.timeout(CERTIFICATES_LOOK_MS / 1000):
                    await self._is_asked.wait()
            self._is_asked.clear()
            await self._look()

    def look_now(self) -> None:
        """Somebody says that the files have changed."""
        self._is_asked.set()

    def trouble(self) -> str | None:
        """What somebody should see to, in a few words."""
        return self._trouble

    def warnings(self) -> Sequence[str]:
        """What would be wise to know, for people."""
        match self.mode:
            case PeerTls.ALLOW:
                until = (
                    f"until level {PEER_TLS_LEVEL} is in force (`ropewalk cluster upgrade status`)"
                    if self._config["peer.tls"] == _AUTO
                    else "for as long as peer.tls is allow"
                )
                return (f"other nodes are spoken to without TLS where they speak none, {until}",)
            case PeerTls.OFF if not is_in_the_clear(self._config):
                return (
                    f"peer.tls is off, and peer.listen ({self._config['peer.listen']}) can be reached from other machines: whoever can read or change "
                    "the bytes between nodes reads and changes everything",
                )
        return ()

    async def _look(self) -> None:
        try:
            found = await self._pool.run(_read, self._config, self._files)
            if found != self._known:
                self.secret.change(*found)
                self._known = found
                _log.info("the cluster's secret was read again", accepts_former=bool(found[1]))
        except InvalidSetting as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                _log.error("the cluster's secret stays as it was", reason=str(error))
            return
        self._trouble = None


async def read_between_nodes(
    config: Config, ports: Ports, image: Image, certificates: Certificates, path: str
) -> BetweenNodes:
    """`path` is that of the node's directory, which may not be there yet. Raises `InvalidSetting`."""
    is_older = await ports.pool.run(_is_older_than_level, ports, path)
    between = BetweenNodes(config, ports, image, is_older_than_level=is_older)
    if config["peer.ssl.keystore.location"]:
        loaded = await certificates.loaded(_files(config, between.mode))

        def own() -> OwnContexts:
            now = loaded()
            assert now.calling is not None, "the files are for nodes"
            return OwnContexts(now.context, now.calling, now.names, now.revoked)

        if between.mode is not PeerTls.OFF:
            between.speak(own)
    elif between.mode is PeerTls.CA:
        raise InvalidSetting(
            "peer.tls=ca needs peer.ssl.keystore.location, a PEM file with the key and certificate that this node shows to others"
        )
    elif between.mode is not PeerTls.OFF:
        made = await ports.pool.run(_make)
        between.speak(lambda: made)
    return between


def is_in_the_clear(config: Config) -> bool:
    """Whether other nodes connect where no other machine can."""
    listen = config.peer_listen
    return listen is None or is_loopback(listen[0])


def _make() -> OwnContexts:
    """Runs in the pool. In memory, and another one at every start: nothing has to be kept, since the secret vouches for it."""
    from ropewalk.security.node_certificates import self_signed

    return OwnContexts(*self_signed())


def _files(config: Config, mode: PeerTls) -> "TlsFiles":
    from ropewalk.security.certificates import ClientAuth, TlsFiles

    vouched = mode is PeerTls.CA
    if vouched and not config["peer.ssl.truststore.location"]:
        raise InvalidSetting(
            "peer.tls=ca needs peer.ssl.truststore.location, the authorities that vouch for nodes"
        )
    return TlsFiles(
        keystore=config["peer.ssl.keystore.location"],
        password=config["peer.ssl.key.password"],
        truststore=config["peer.ssl.truststore.location"] if vouched else "",
        revoked=config["peer.ssl.crl.location"] if vouched else "",
        client_auth=ClientAuth.REQUIRED if vouched else ClientAuth.NONE,
        versions=("TLSv1.3",),
        node_id=config.node_id,
        roles=config.roles,
    )


def _is_older_than_level(ports: Ports, path: str) -> bool:
    """Runs in the pool."""
    return ports.disk.exists(f"{path}/identity") and not ports.disk.exists(f"{path}/{MARK}")


def _mark(directory: DataDirectory) -> None:
    """Runs in the pool."""
    write_atomically(directory.storage.disk_to_go_on, f"{directory.path}/{MARK}", b"")


def _read(config: Config, files: Sequence[str]) -> tuple[str, str]:
    """Runs in the pool. Raises `InvalidSetting`."""
    secret_file, former_file = files
    secret = read_secret("cluster.secret.file", secret_file) if secret_file else config["cluster.secret"]
    if not secret:
        raise InvalidSetting(f"cluster.secret.file {secret_file} is empty")
    former = (
        read_secret("cluster.secret.previous.file", former_file)
        if former_file
        else config["cluster.secret.previous"]
    )
    return secret, former
