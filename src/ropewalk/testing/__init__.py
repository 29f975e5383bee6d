"""A node for tests: real sockets, in this process, there in milliseconds and gone without a trace.

    from ropewalk.testing import Cluster

    with Cluster() as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})

`cluster` is for code that blocks, `async_cluster` the same for code that awaits, `namespace` keeps the topics of
one test apart from those of all others, and `plugin` makes fixtures of them for pytest.

pytest imports this package whenever it starts, in every project that has Ropewalk installed. So nothing is loaded
before one of the names below is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ropewalk.testing.async_cluster import AsyncCluster
    from ropewalk.testing.cluster import Cluster
    from ropewalk.testing.namespace import Namespace

__all__ = ["AsyncCluster", "Cluster", "Namespace"]

_MODULES: Final = {"AsyncCluster": "async_cluster", "Cluster": "cluster", "Namespace": "namespace"}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
