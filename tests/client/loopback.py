"""The fake broker on a real socket, for clients that are not ours to simulate."""

import asyncio
import threading

from ropewalk.base.ports import TlsContexts
from ropewalk.runtime.network import TcpNetwork
from tests.client.fake_broker import FakeBroker, FakeCluster
from tests.client.fake_login import FakeLogin


class LoopbackBroker:
    """A fake broker in a thread of its own, because a command runs an event loop until it is done."""

    def __init__(self, *, login: FakeLogin | None = None, tls: TlsContexts | None = None) -> None:
        self.cluster = FakeCluster()
        self.broker = FakeBroker(self.cluster, 0, login=login, tls=tls)
        self.address = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()
        starting = asyncio.run_coroutine_threadsafe(self.broker.start(TcpNetwork()), self._loop)
        self.address = str(starting.result(timeout=10))

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self.broker.stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        self._loop.close()
