"""An answer whose bytes are there already, since many ask for the same."""

from ropewalk.wire.types import Buffer, Message


class Encoded(Message, frozen=True):
    """`chunks` is the body in the version that was asked for, but for the time that leads it in most versions."""

    chunks: tuple[Buffer, ...]
    error_codes: tuple[int, ...]
    """Those other than 0 that are in it, for the tally."""
    tells_throttle: bool
    throttle_ms: int = 0

    def body(self) -> list[Buffer]:
        first = self.throttle_ms.to_bytes(4, "big") if self.tells_throttle else b""
        return [first, *self.chunks]
