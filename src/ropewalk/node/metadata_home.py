"""Where the metadata log lives, as the configuration says. Nothing else knows."""

from ropewalk.base.ports import Ports, TlsContexts
from ropewalk.base.reserve import Reserve
from ropewalk.metadata.bounds import MetadataBounds
from ropewalk.metadata.etcd.client import Access, parse_members
from ropewalk.metadata.etcd.log import EtcdMetadataLog
from ropewalk.metadata.local import LocalMetadataLog
from ropewalk.metadata.moving import Home
from ropewalk.node.config import Config
from ropewalk.node.etcd_contexts import read_etcd_contexts


async def open_metadata_log(
    config: Config,
    ports: Ports,
    directory: str,
    reserve: Reserve | None,
    bounds: MetadataBounds,
    tls: TlsContexts | None = None,
) -> Home:
    """For a node with the role of a controller. `directory` is the node's own, with its reserve; `etcd` keeps nothing there.

    `tls` is for whoever looks after the files for etcd; without it they are read once.
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
        tls=tls or await read_etcd_contexts(config, ports.pool),
        user=config["metadata.etcd.user"],
        password=config["metadata.etcd.password"],
    )
    prefix = config["metadata.etcd.prefix"]
    log = await EtcdMetadataLog.open(ports.network, ports.clock, ports.rng, access, prefix=prefix)
    log.log_bytes_max = bounds.log_bytes_max
    return log
