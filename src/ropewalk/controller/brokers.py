"""Creating a cluster and registering its brokers.

A broker registers each time it starts. The epoch it is given is the offset of its own record, so it grows from start
to start and nothing that a former process of the same broker has under way can be taken for the present one's. A
broker that comes back with another directory has lost what it held; who holds replicas there must hear of it.
"""

from collections.abc import Sequence

from ropewalk.base.errors import CorruptMetadata, InvalidRequest
from ropewalk.base.ids import NodeId, format_id
from ropewalk.base.ports import Rng
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import BrokerRegistered, ClusterCreated, Endpoint, MetadataRecord


def decide_create_cluster(
    image: Image, rng: Rng, cluster_id: str | None = None, *, partitions_held_count: int = 0
) -> list[MetadataRecord]:
    """Nothing if there is one. `cluster_id` is what the data directory says, if it says anything.

    A node that holds partitions has been part of a cluster: if the metadata knows of none, the metadata is lost.
    """
    if image.cluster_id is not None:
        if cluster_id not in (None, image.cluster_id):
            raise InvalidRequest(
                f"the data directory belongs to cluster {cluster_id}, the metadata to {image.cluster_id}"
            )
        return []
    if partitions_held_count > 0:
        raise CorruptMetadata(
            f"the data directory holds {partitions_held_count} partitions, but its metadata is empty; "
            "restore the metadata directory from a backup"
        )
    return [ClusterCreated(cluster_id or format_id(rng.randbytes(16)))]


def decide_register_broker(
    image: Image,
    node_id: NodeId,
    *,
    directory: bytes,
    endpoints: Sequence[Endpoint],
    rack: str | None = None,
) -> list[MetadataRecord]:
    """One record at every start, even if nothing has changed: a new process has a new epoch."""
    if node_id < 0:
        raise InvalidRequest(f"node id is {node_id}, must be at least 0")
    for other in image.brokers.values():
        if other.node_id != node_id and other.directory == directory:
            raise InvalidRequest(
                f"the data directory of broker {node_id} is that of broker {other.node_id}; was it copied?"
            )
    return [
        BrokerRegistered(
            node_id=node_id,
            broker_epoch=image.end_offset,
            directory=directory,
            endpoints=tuple(endpoints),
            rack=rack,
        )
    ]
