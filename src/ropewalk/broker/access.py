"""What callers may do on this node, by the rules in its image: the same for every door.

What a reader could get wrong
    A node that checks nothing has an `Access` that is off. Doors look at that when they are built, so nothing is asked per request.
    What nodes do on their own account is always allowed. No client can be `NODE`: its names begin with another word.
    The image changes under a request that waits. `version` tells, and `on_change` is called for those who wait.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ropewalk.base.errors import TopicNotAuthorized
from ropewalk.base.ids import TopicId
from ropewalk.metadata.image import Image
from ropewalk.metadata.records import AclAdded, AclRemoved, Fact
from ropewalk.security.access import (
    CLUSTER_NAME,
    Answers,
    Asker,
    Operation,
    Policy,
    ResourceType,
)
from ropewalk.security.identity import Identity

NODE: Final = "Node:ropewalk"
"""In whose name a node asks another for what it wants itself."""

_NODES: Final = frozenset({NODE})


def asker_of(identity: Identity, host: str) -> Asker:
    """Somebody by all the names that rules may know him by, at the address he comes from."""
    return Asker((identity.principal, *[f"Group:{name}" for name in identity.groups]), host)


TellDenied: TypeAlias = Callable[[Asker, str, ResourceType, str], None]
"""Who, what he wanted to do, with what."""


class Reader:
    """What one caller may read, for a fetch that goes on while rules change."""

    __slots__ = ("_access", "_asker", "_image")

    def __init__(self, access: "Access", asker: Asker, image: Image) -> None:
        self._access = access
        self._asker = asker
        self._image = image

    @property
    def version(self) -> tuple[Asker, int]:
        """Who reads, by which rules: what was decided holds as long as it is the same."""
        return self._asker, self._access.version

    def check(self, topic: str | TopicId) -> None:
        """Raise `TopicNotAuthorized`, whether or not there is such a topic. An id that nobody has is nobody's."""
        if isinstance(topic, str):
            name = topic
        else:
            known = self._image.topics_by_id.get(topic)
            if known is None:
                return
            name = known.name
        if not self._access.allows(self._asker, Operation.READ, ResourceType.TOPIC, name):
            raise TopicNotAuthorized("not authorized to read the topic")

    def watch(self, on_change: Callable[[], None]) -> None:
        self._access.watch(on_change)

    def unwatch(self, on_change: Callable[[], None]) -> None:
        self._access.unwatch(on_change)


class Access:
    def __init__(self, image: Image, policy: Policy | None = None) -> None:
        """Without a policy it is off: everybody may do everything."""
        self._image = image
        self.is_on = policy is not None
        known = policy or Policy()
        self._answers = Answers(image.acls, Policy(known.super_users | _NODES, known.allows_unruled))
        self._waiting: dict[Callable[[], None], None] = {}
        self._tell_denied: TellDenied | None = None

    @property
    def version(self) -> int:
        """Another after every change of the rules."""
        return self._image.acls.version

    def allows(self, asker: Asker, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        return not self.is_on or self._answers.allows(asker, operation, resource_type, name)

    def allows_any(self, asker: Asker, operation: Operation, resource_type: ResourceType) -> bool:
        return not self.is_on or self._answers.allows_any(asker, operation, resource_type)

    def on_cluster(self, asker: Asker, *operations: Operation) -> bool:
        """Whether one of the operations is allowed on the cluster."""
        return any(self.allows(asker, each, ResourceType.CLUSTER, CLUSTER_NAME) for each in operations)

    def tell(self, tell_denied: TellDenied) -> None:
        """It hears from now on of what is refused to those who ask for it by name."""
        self._tell_denied = tell_denied

    def on_denied(self, asker: Asker, operation: str, resource_type: ResourceType, name: str) -> None:
        """Somebody was refused this, and did not just not see it."""
        if self._tell_denied is not None:
            self._tell_denied(asker, operation, resource_type, name)

    def watch(self, on_change: Callable[[], None]) -> None:
        self._waiting[on_change] = None

    def unwatch(self, on_change: Callable[[], None]) -> None:
        self._waiting.pop(on_change, None)

    def follow(self, records: Sequence[Fact]) -> None:
        """The image has changed by these."""
        if self._waiting and any(isinstance(record, AclAdded | AclRemoved) for record in records):
            for on_change in list(self._waiting):
                on_change()
