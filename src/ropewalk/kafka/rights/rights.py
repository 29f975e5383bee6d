"""The rights of callers, in the terms in which guards ask for them."""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from ropewalk.base.ids import TopicId
from ropewalk.broker.access import Access, asker_of
from ropewalk.kafka.caller import Caller
from ropewalk.metadata.image import Image
from ropewalk.security.access import CLUSTER_NAME, Asker, Operation, ResourceType
from ropewalk.wire.types import UUID_ZERO

T = TypeVar("T")

_CONFIGS: Final = (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
_OPERATIONS: Final = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        *_CONFIGS,
    ),
    ResourceType.GROUP: (Operation.READ, Operation.DELETE, Operation.DESCRIBE, *_CONFIGS),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.IDEMPOTENT_WRITE,
        *_CONFIGS,
    ),
}
"""What the bits of authorized operations can say of a resource."""


class Rights:
    def __init__(
        self,
        access: Access,
        image: Image,
        *,
        creates_automatically: Callable[[], bool],
        administrators_delete: Callable[[], bool],
    ) -> None:
        """`administrators_delete`: whether whoever deletes must be allowed to alter the cluster, too."""
        self.access = access
        self.image = image
        self.creates_automatically = creates_automatically
        self._administrators_delete = administrators_delete

    def asker(self, caller: Caller) -> Asker:
        return asker_of(caller.identity, caller.host)

    def topic(self, caller: Caller, operation: Operation, name: str) -> bool:
        return self._may(caller, operation, ResourceType.TOPIC, name)

    def group(self, caller: Caller, operation: Operation, group_id: str) -> bool:
        return self._may(caller, operation, ResourceType.GROUP, group_id)

    def transactional_id(self, caller: Caller, operation: Operation, transactional_id: str) -> bool:
        return self._may(caller, operation, ResourceType.TRANSACTIONAL_ID, transactional_id)

    def user(self, caller: Caller, operation: Operation, name: str) -> bool:
        """As KIP-373 has it: the name of the resource is the user's principal."""
        return self._may(caller, operation, ResourceType.USER, f"User:{name}")

    def _may(self, caller: Caller, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """What may not be described is hidden, which is no refusal that anybody is told of."""
        asker = self.asker(caller)
        if self.access.allows(asker, operation, resource_type, name):
            return True
        if operation is not Operation.DESCRIBE:
            self.access.on_denied(asker, operation.name, resource_type, name)
        return False

    def cluster(self, caller: Caller, *operations: Operation) -> bool:
        """Whether one of them is allowed."""
        return self.access.on_cluster(self.asker(caller), *operations)

    def any_topic(self, caller: Caller, operation: Operation) -> bool:
        return self.access.allows_any(self.asker(caller), operation, ResourceType.TOPIC)

    def deletion(self, caller: Caller) -> bool:
        """What a caller needs besides the right to delete what it names."""
        return not self._administrators_delete() or self.cluster(caller, Operation.ALTER)

    def bits(self, caller: Caller, resource_type: ResourceType, name: str) -> int:
        """The operations that are allowed, as Kafka packs them."""
        asker = self.asker(caller)
        return sum(
            1 << operation
            for operation in _OPERATIONS[resource_type]
            if self.access.allows(asker, operation, resource_type, name)
        )

    def cluster_bits(self, caller: Caller) -> int:
        """None at all for those who may not describe the cluster, as in Kafka."""
        if not self.cluster(caller, Operation.DESCRIBE):
            return 0
        return self.bits(caller, ResourceType.CLUSTER, CLUSTER_NAME)

    def name_of(self, topic: Any) -> str | None:
        """Of something that names a topic by name or by id; None for an id that nobody has, and for nothing at all."""
        topic_id = getattr(topic, "topic_id", UUID_ZERO)
        if topic_id == UUID_ZERO:
            name: str | None = topic.name
            return name
        known = self.image.topics_by_id.get(TopicId(bytes(topic_id)))
        return None if known is None else known.name

    def split(self, caller: Caller, operation: Operation, topics: Iterable[T]) -> tuple[list[T], list[T]]:
        """Those on whose topics the operation is allowed, and the others. An id that nobody has is for the handler to refuse."""
        allowed: list[T] = []
        refused: list[T] = []
        for topic in topics:
            name = self.name_of(topic)
            is_allowed = name is None or self.topic(caller, operation, name)
            (allowed if is_allowed else refused).append(topic)
        return allowed, refused

    def describing(self, caller: Caller) -> Callable[[str], bool]:
        """Whether the caller may describe a topic, also asked later."""
        asker = self.asker(caller)
        return lambda name: self.access.allows(asker, Operation.DESCRIBE, ResourceType.TOPIC, name)
