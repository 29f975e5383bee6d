"""What a door lets its clients send and hold. Each door that speaks HTTP has its own."""

from msgspec import Struct

from ropewalk.base import limits


class HttpBounds(Struct, frozen=True, kw_only=True):
    connections_max: int
    body_bytes_max: int
    """Of one request, whatever way it is sent. 413 beyond."""
    head_bytes_max: int = limits.HTTP_HEAD_BYTES_MAX
    """Address, names and values of one request, and of what may follow its body. 431 beyond."""
    url_bytes_max: int = limits.HTTP_URL_BYTES_MAX
    """414 beyond."""
    query_fields_max: int = 32
    """Parameters in the address of a request. 400 beyond."""
    idle_ms_max: float = limits.HTTP_IDLE_MS_MAX
    """How long a connection may be silent while no request of it is being answered."""
