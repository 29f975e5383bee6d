"""What one request costs its client under the quotas, and how long the client waits for that.

Behaviour worth knowing
    Produce is charged by the size of the request and Fetch by that of the answer, as in Kafka; every API by the time
    that it keeps the event loop: from its decoding to its first wait, and while its answer is encoded.
    A client that has used too much is told so in the answer, which is sent at once, and its connection is not read
    until the time is over (KIP-219). Clients that heed `throttle_ms` do not even notice the second.
    Whoever did not say a name is the user `ANONYMOUS`, as Kafka calls them.
"""

from msgspec import structs

from ropewalk.base.errors import Throttled
from ropewalk.base.limits import QUOTA_NAME_CHARACTERS_MAX
from ropewalk.base.ports import Clock
from ropewalk.broker.administration.quotas import ClientQuotas
from ropewalk.controller.client_quotas import Quota
from ropewalk.wire.messages.fetch import API as FETCH
from ropewalk.wire.messages.produce import API as PRODUCE
from ropewalk.wire.types import Message


class Meter:
    """Made for a request only while there are quotas."""

    __slots__ = ("_api_key", "_client_id", "_clock", "_quotas", "_running_since_ms", "_user", "throttle_ms")

    def __init__(
        self, quotas: ClientQuotas, clock: Clock, api_key: int, client_id: str | None, user: str
    ) -> None:
        self._quotas = quotas
        self._clock = clock
        self._api_key = api_key
        self._user = user
        self._client_id = (client_id or "")[:QUOTA_NAME_CHARACTERS_MAX]
        self._running_since_ms: float | None = clock.monotonic_ms()
        self.throttle_ms = 0.0

    def on_decoded(self, size_bytes: int) -> None:
        if self._api_key == PRODUCE.key:
            self._charge(Quota.PRODUCE, size_bytes)

    def on_wait(self) -> None:
        """The handler waits, or has ended; the event loop goes on to others."""
        self._charge_time()

    def on_answer(self, size_bytes: int) -> None:
        """The answer has been encoded, and is so large."""
        if self._api_key == FETCH.key:
            self._charge(Quota.FETCH, size_bytes)
        self._charge_time()

    def on_encoding(self) -> None:
        if self._running_since_ms is None:
            self._running_since_ms = self._clock.monotonic_ms()

    def told(self, response: Message) -> Message:
        """The response with the time that the client is to wait; some of the oldest have no place for it."""
        if "throttle_ms" not in response.__struct_fields__:
            return response
        return structs.replace(response, throttle_ms=round(self.throttle_ms))

    def fetch_bytes_max(self, bytes_max: int) -> int:
        """No more than comes in within a second."""
        rate = self._quotas.rate(Quota.FETCH, self._user, self._client_id)
        return bytes_max if rate is None else min(bytes_max, int(rate))

    def check_mutations(self) -> None:
        throttle_ms = self._charge(Quota.MUTATION, 0)
        if throttle_ms > 0:
            raise Throttled(f"the cluster was changed too often; try again in {throttle_ms:.0f} ms")

    def charge_mutations(self, partition_count: int) -> None:
        self._charge(Quota.MUTATION, partition_count)

    def _charge_time(self) -> None:
        if self._running_since_ms is not None:
            self._charge(Quota.REQUEST, self._clock.monotonic_ms() - self._running_since_ms)
            self._running_since_ms = None

    def _charge(self, quota: Quota, amount: float) -> float:
        now_ms = self._clock.monotonic_ms()
        throttle_ms = self._quotas.charge(quota, self._user, self._client_id, amount, now_ms)
        self.throttle_ms = max(self.throttle_ms, throttle_ms)
        return throttle_ms
