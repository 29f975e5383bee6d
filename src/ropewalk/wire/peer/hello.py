"""Hello (key 10000): two nodes begin to prove to each other that they know the cluster's secret.

The caller gives a nonce, the answerer returns one and proves first; the caller proves with `Prove`. A proof is an HMAC over
both nonces and the prover's side, so neither can be sent back to the other, nor used again.
"""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Message


class HelloRequest(Message, frozen=True):
    node_id: Int32
    cluster_id: str | None
    """None: the caller has not joined any yet."""
    nonce: bytes


class HelloResponse(Message, frozen=True):
    error_code: Int16
    error_message: str | None = None
    node_id: Int32 = -1
    cluster_id: str | None = None
    nonce: bytes = b""
    proof: bytes = b""


API: Final = Api(
    key=10000,
    name="Hello",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=HelloRequest,
    response=HelloResponse,
)
