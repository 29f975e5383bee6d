"""Moves the cluster's metadata to another home, for somebody at a command line: from a node's directory to etcd, and back.

The node whose directory is one of the two homes must be stopped, and its configuration says where the metadata are. All others may run:
leaders go on, and nothing about the cluster changes until a controller has started at the other home.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import InvalidRequest, InvalidSetting
from ropewalk.base.limits import REIGN_BYTES
from ropewalk.base.ports import Ports
from ropewalk.log.directory import DataDirectory
from ropewalk.metadata.bounds import USUAL
from ropewalk.metadata.moving import Home, move, take_back
from ropewalk.node.config import Config, check_etcd_endpoints
from ropewalk.node.metadata_home import open_metadata_log
from ropewalk.node.place import claim_directory, data_path

LOCAL: Final = "local"
_ORIGIN: Final = "--to"
_SCHEMES: Final = {"etcd://": "http://", "etcds://": "https://"}


class Moved(Struct, frozen=True):
    home: str
    """Where the metadata are, for people."""
    settings: Mapping[str, str]
    """What the configuration of every node with the role controller has to say."""


async def move_metadata(config: Config, ports: Ports, to: str, *, back: bool) -> Moved:
    """To `to`, or with `back`, from their way there to where `config` says that they are.

    Raises `RopewalkError` with what to do; after `MetadataUnavailable` the same call goes on where this one ended.
    """
    target = _configured(config, to)
    if config.is_alone:
        raise InvalidSetting("metadata move is for a node of a cluster, which needs cluster.secret")
    if "controller" not in config.roles:
        raise InvalidRequest("this node has not the role controller; go by the configuration of one that has")
    if _name(target) == _name(config):
        raise InvalidRequest(f"the configuration says that the metadata are in {_name(config)} already")
    path = data_path(config)
    if not await ports.pool.run(ports.disk.exists, f"{path}/identity"):
        raise InvalidRequest(f"no node has run in {path}; go by the configuration of one that has")
    directory = await claim_directory(config, ports, cluster_id=None)
    try:
        with ExitStack() as opened:
            source = await _open(config, ports, directory, opened)
            await (take_back if back else move)(
                source,
                await _open(target, ports, directory, opened),
                to=_name(target),
                node_id=config.node_id,
                name_reign=lambda: ports.rng.randbytes(REIGN_BYTES).hex(),
            )
    finally:
        ports.disk.close()
    return Moved(_name(config), _settings(config)) if back else Moved(_name(target), _settings(target))


async def _open(config: Config, ports: Ports, directory: DataDirectory, opened: ExitStack) -> Home:
    home = await open_metadata_log(config, ports, directory.path, directory.storage.reserve, USUAL)
    opened.callback(home.close)
    return home


def _configured(config: Config, to: str) -> Config:
    """The configuration as it is to be afterwards."""
    if to == LOCAL:
        return config.with_value("metadata.home", LOCAL, _ORIGIN)
    for scheme, http in _SCHEMES.items():
        if to.startswith(scheme):
            members, slash, prefix = to.removeprefix(scheme).partition("/")
            urls = [http + member for member in members.split(",") if member]
            check_etcd_endpoints(urls, _ORIGIN)
            if urls:
                moved = config.with_value("metadata.home", "etcd", _ORIGIN)
                moved = moved.with_value("metadata.etcd.endpoints", ",".join(urls), _ORIGIN)
                if prefix:
                    moved = moved.with_value("metadata.etcd.prefix", slash + prefix, _ORIGIN)
                return moved
    raise InvalidSetting(
        f"--to {to}: say local, or etcd://HOST:PORT[,HOST:PORT…][/PREFIX/] (etcds:// for TLS)"
    )


def _name(config: Config) -> str:
    if config["metadata.home"] == LOCAL:
        return f"the directory of node {config.node_id}"
    return f"etcd at {', '.join(sorted(config.etcd_endpoints))} under {config['metadata.etcd.prefix']}"


def _settings(config: Config) -> dict[str, str]:
    names = ["metadata.home"]
    if config["metadata.home"] != LOCAL:
        names += ["metadata.etcd.endpoints", "metadata.etcd.prefix"]
    return {name: config[name] for name in names}
