"""What an API needs of its caller: every API that is served says it, and what it says is what is enforced.

What a reader could get wrong
    A handler whose needs are `Nothing` may be called by anybody who is let in; why that is right is said there.
    Rights on the cluster are decided before the handler; rights on what a request names by the API's guard, or inside its handler where
    `guard` is None.
"""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

from msgspec import Struct

from ropewalk.kafka.caller import Caller
from ropewalk.kafka.rights.rights import Rights
from ropewalk.kafka.served import Handle
from ropewalk.security.access import CLUSTER_NAME, Operation, ResourceType
from ropewalk.wire.types import Message

Guard: TypeAlias = Callable[[Any, Caller, Rights, Handle], Coroutine[Any, Any, Message | None]]
"""Takes the API's own request class, which is why it says Any, and the handler that it stands before."""

RefuseAll: TypeAlias = Callable[[Any, int], Message]
"""The answer to a request, in a version, that is refused as a whole."""


class Right(Struct, frozen=True):
    resource_type: ResourceType
    operation: Operation
    is_hidden: bool = False
    """Whether what the caller has no right to is left out, and not refused."""


class Nothing(Struct, frozen=True):
    why: str


class OnCluster(Struct, frozen=True):
    """One of the operations on the cluster."""

    operations: tuple[Operation, ...]
    refuse: RefuseAll


class Inside(Struct, frozen=True):
    """Rights on what the request names."""

    rights: tuple[Right, ...]
    guard: Guard | None
    besides: str = ""
    """What else there is to know about them."""


Needs: TypeAlias = Nothing | OnCluster | Inside


def enforced(needs: Needs, handle: Handle, rights: Rights) -> Handle:
    match needs:
        case OnCluster():
            return partial(_on_cluster, needs, handle, rights)
        case Inside(guard=guard) if guard is not None:
            return partial(_guarded, guard, handle, rights)
        case _:
            return handle


async def _on_cluster(
    needs: OnCluster, handle: Handle, rights: Rights, request: Any, caller: Caller
) -> Message | None:
    if not rights.cluster(caller, *needs.operations):
        wanted = needs.operations[0].name
        rights.access.on_denied(rights.asker(caller), wanted, ResourceType.CLUSTER, CLUSTER_NAME)
        return needs.refuse(request, caller.version)
    return await handle(request, caller)


async def _guarded(
    guard: Guard, handle: Handle, rights: Rights, request: Any, caller: Caller
) -> Message | None:
    return await guard(request, caller, rights, handle)
