"""Hello (key 10000): two nodes begin to prove to each other that they know the cluster's secret.

The caller gives a nonce, the answerer returns one and proves first; the caller proves with `Prove`. A proof is an HMAC over
both nonces and the prover's side, so neither can be sent back to the other, nor used again.

v1  roles; former_proof; proofs cover the channel (`security/cluster_secret.py`)
"""

from typing import Annotated, Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int16, Int32, Message, since


class HelloRequest(Message, frozen=True):
    node_id: Int32
    cluster_id: str | None
    """None: the caller has not joined any yet."""
    nonce: bytes
    roles: Annotated[tuple[str, ...], since(1)] = ()
    """What the caller is. It is served what these ask, and nothing else."""


class HelloResponse(Message, frozen=True):
    error_code: Int16
    error_message: str | None = None
    node_id: Int32 = -1
    cluster_id: str | None = None
    nonce: bytes = b""
    proof: bytes = b""
    former_proof: Annotated[bytes, since(1)] = b""
    """With the secret before, where that is still accepted; empty where there is none."""


API: Final = Api(
    key=10000,
    name="Hello",
    versions=range(0, 1 + 1),
    flexible_since=0,
    request=HelloRequest,
    response=HelloResponse,
)
