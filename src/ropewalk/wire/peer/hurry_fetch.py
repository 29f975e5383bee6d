"""HurryFetch (key 10009): a replica has more to ask for than the fetch that its leader holds, and would like that one answered.

It comes by another connection than the fetch, so it says which one it means: it may be there before it.
"""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Message


class HurryFetchRequest(Message, frozen=True):
    session_id: Int32
    session_epoch: Int32


class HurryFetchResponse(Message, frozen=True):
    error_code: Int16


API: Final = Api(
    key=10009,
    name="HurryFetch",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=HurryFetchRequest,
    response=HurryFetchResponse,
)
