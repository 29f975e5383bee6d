"""Where the metadata log lives, as the configuration says. Nothing else knows."""

import ssl

from ropewalk.base.errors import InvalidSetting
from ropewalk.base.ports import Ports, TlsContexts
from ropewalk.base.reserve import Reserve
from ropewalk.metadata.bounds import MetadataBounds
from ropewalk.metadata.etcd.client import Access, parse_members
from ropewalk.metadata.etcd.log import EtcdMetadataLog
from ropewalk.metadata.local import LocalMetadataLog
from ropewalk.metadata.moving import Home
from ropewalk.node.config import Config


async def open_metadata_log(
    config: Config, ports: Ports, directory: str, reserve: Reserve | None, bounds: MetadataBounds
) -> Home:
    """For a node with the role of a controller. `directory` is the node's own, with its reserve; `etcd` keeps nothing there.

    Raises `MetadataUnavailable` if no member of etcd answers, `CorruptMetadata` if a local log cannot be read back.
    """
    if config["metadata.home"] == "local":
        local = await ports.pool.run(
            LocalMetadataLog.open, ports.disk, ports.pool, f"{directory}/metadata", reserve
        )
        local.log_bytes_max = bounds.log_bytes_max
        return local
    access = Access(
        parse_members(config.etcd_endpoints),
        tls=_tls(config),
        user=config["metadata.etcd.user"],
        password=config["metadata.etcd.password"],
    )
    prefix = config["metadata.etcd.prefix"]
    log = await EtcdMetadataLog.open(ports.network, ports.clock, ports.rng, access, prefix=prefix)
    log.log_bytes_max = bounds.log_bytes_max
    return log


def _tls(config: Config) -> TlsContexts | None:
    """None where no member is reached by https."""
    if not any(url.startswith("https://") for url in config.etcd_endpoints):
        return None
    authorities, certificate, key = (config[f"metadata.etcd.{name}"] for name in ("ca", "cert", "key"))
    try:
        context = ssl.create_default_context(cafile=authorities or None)
        if certificate:
            context.load_cert_chain(certificate, key or None)
    except (OSError, ssl.SSLError) as error:
        raise InvalidSetting(f"metadata.etcd.ca, .cert or .key cannot be used: {error}") from error
    return lambda: context
