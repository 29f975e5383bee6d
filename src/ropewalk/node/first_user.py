"""A user's password set in the home of the metadata, while the node stands still: the first one's, or when nobody can log in any more.

Whoever may write to the data directory may do anything with the cluster anyway.
"""

from contextlib import ExitStack

from ropewalk.base.errors import InvalidRequest
from ropewalk.base.limits import REIGN_BYTES
from ropewalk.base.ports import Ports
from ropewalk.controller.users import Upsertion, decide_alter_users
from ropewalk.metadata.bounds import USUAL
from ropewalk.metadata.image import Image
from ropewalk.metadata.offline import decide
from ropewalk.metadata.records import MetadataRecord
from ropewalk.node.config import Config
from ropewalk.node.metadata_home import open_metadata_log
from ropewalk.node.place import claim_directory, data_path
from ropewalk.security.decoys import DECOY_KEY_BYTES
from ropewalk.security.scram import ITERATIONS_OURS, SALT_BYTES_OURS, Mechanism, salted


async def set_password(config: Config, ports: Ports, name: str, mechanism: Mechanism, password: str) -> None:
    """Raises `RopewalkError` with what to do; `DirectoryInUse` while the node runs."""
    if "controller" not in config.roles:
        raise InvalidRequest("this node has not the role controller; go by the configuration of one that has")
    path = data_path(config)
    if not await ports.pool.run(ports.disk.exists, f"{path}/identity"):
        raise InvalidRequest(f"no node has run in {path}; start it once, stop it, and do this again")
    rng = ports.rng
    salt = rng.randbytes(SALT_BYTES_OURS)
    salted_password = salted(mechanism, password.encode(), salt, ITERATIONS_OURS)
    change = Upsertion(name, mechanism, ITERATIONS_OURS, salt, salted_password)

    def decision(image: Image) -> list[MetadataRecord]:
        if image.cluster_id is None:
            raise InvalidRequest("no cluster was ever made there; start the node once, and do this again")
        if image.left_for is not None:
            raise InvalidRequest(f"the metadata are on their way to {image.left_for}")
        outcome = decide_alter_users(image, [change], decoy_key=rng.randbytes(DECOY_KEY_BYTES))
        refusal = outcome.refusals[name]
        if refusal is not None:
            raise refusal
        return outcome.records

    directory = await claim_directory(config, ports, cluster_id=None)
    try:
        with ExitStack() as opened:
            reserve = directory.storage.reserve
            home = await open_metadata_log(config, ports, directory.path, reserve, USUAL)
            opened.callback(home.close)
            await decide(home, config.node_id, lambda: rng.randbytes(REIGN_BYTES).hex(), decision)
    finally:
        ports.disk.close()
