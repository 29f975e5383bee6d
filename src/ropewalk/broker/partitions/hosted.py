"""A partition that this node holds: as its leader, or as a copy of another node's."""

from typing import TypeAlias

from ropewalk.broker.partitions.partition import Partition
from ropewalk.broker.partitions.replica import Replica

Hosted: TypeAlias = Partition | Replica
"""Both are roles over one log. When the role changes, the log goes over to another object."""
