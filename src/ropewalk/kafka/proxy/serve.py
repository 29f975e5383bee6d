"""The table of a front end: what it serves itself, what it passes on, and what it says in its own name."""

from collections.abc import Mapping

from msgspec import structs

from ropewalk.kafka.proxy.backends import Backends
from ropewalk.kafka.proxy.fetch import PassedFetch
from ropewalk.kafka.proxy.handler import Passing
from ropewalk.kafka.proxy.naming import Naming
from ropewalk.kafka.proxy.routed import ROUTES
from ropewalk.kafka.served import Handle, ServedApi
from ropewalk.metadata.image import Image
from ropewalk.wire.messages.fetch import API as FETCH


def passing_on(
    served: Mapping[int, ServedApi], *, backends: Backends, naming: Naming, image: Image
) -> dict[int, ServedApi]:
    """`served` is the table of a node that holds no partition."""
    table = {key: structs.replace(api, handle=naming.wrap(key, api.handle)) for key, api in served.items()}
    for route in ROUTES:
        key = route.api.key
        passing = Passing(route, served[key], backends, image)
        handle: Handle = PassedFetch(passing).handle if route.api is FETCH else passing.handle
        table[key] = structs.replace(served[key], handle=handle)
    return table
