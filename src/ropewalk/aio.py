"""The client for asyncio: the same as `from ropewalk import …`, on the caller's event loop."""

from ropewalk.client.producing.batch import Acknowledged, Delivery
from ropewalk.client.producing.producer import Producer
from ropewalk.client.producing.transaction import GroupIdentity, OffsetToCommit

__all__ = ["Acknowledged", "Delivery", "GroupIdentity", "OffsetToCommit", "Producer"]
