"""The records that cluster facts are written as.

Each record states one fact completely enough to be applied without looking at anything but the image. They are
encoded as MessagePack maps with a `type`; a reader ignores fields it does not know and fills in the default
of fields that are missing, so fields may be added (with a default) and never renamed or given a new meaning.
A `type` it does not know makes the reader refuse, because a fact it cannot apply would leave its image wrong.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from ropewalk.base.ids import LeaderEpoch, NodeId, OwnerId, ProducerId, TopicId
from ropewalk.base.levels import LEVEL_FIRST
from ropewalk.security.access import Operation, Pattern, Permission, ResourceType


class Endpoint(Struct, frozen=True, gc=False):
    """Where one listener of a node is reached by clients."""

    listener: str
    host: str
    port: int


class BrokerState(StrEnum):
    FENCED = "fenced"
    """Registered, and not to be relied on: it may not lead, nor count as in sync."""

    ACTIVE = "active"
    STOPPING = "stopping"
    """It is about to stop or to be taken away: it keeps what it holds and is given nothing more to lead."""


KAFKA_LISTENER: Final = "kafka"
"""What the listener for Kafka's clients is called among a node's endpoints where it is plain; others have names of their own."""

HTTP_LISTENER: Final = "HTTP"
HTTPS_LISTENER: Final = "HTTPS"
SQS_LISTENER: Final = "SQS"
SQS_HTTPS_LISTENER: Final = "SQS_HTTPS"
PEER_LISTENER: Final = "PEER"
"""Of other nodes."""

OTHER_LISTENERS: Final = frozenset(
    {HTTP_LISTENER, HTTPS_LISTENER, SQS_LISTENER, SQS_HTTPS_LISTENER, PEER_LISTENER}
)
"""Those of a node that are not for Kafka's clients, by the names under which they are registered."""

ALL_ROLES: Final = ("broker", "controller", "frontend")


class ClusterCreated(Struct, frozen=True, gc=False, tag="cluster_created", tag_field="type"):
    """Always the first record, written once."""

    cluster_id: str


class LevelChanged(Struct, frozen=True, gc=False, tag="level_changed", tag_field="type"):
    """From here on what `level` brought may be written (`base/levels.py`). It never goes down."""

    level: int


class BrokerRegistered(Struct, frozen=True, gc=False, tag="broker_registered", tag_field="type"):
    """A broker started, for the first time or again.

    `broker_epoch` is the record's own offset in the log, or a little less within a change that is too large for one append: not
    less than where that begins. So a later start always has a larger one. `directory`
    is the UUID of its data directory: the same node id with another directory has lost what it held. `life` counts the processes that
    have used it, 0 where nobody did, and `process` is drawn by each of them. `version` is that of its software, empty where it did not say,
    and the levels are those it can work at.
    """

    node_id: NodeId
    broker_epoch: int
    directory: bytes
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    roles: tuple[str, ...] = ALL_ROLES
    state: BrokerState = BrokerState.ACTIVE
    life: int = 0
    process: bytes = b""
    version: str = ""
    level_min: int = LEVEL_FIRST
    level_max: int = LEVEL_FIRST


class BrokerStateChanged(Struct, frozen=True, gc=False, tag="broker_state_changed", tag_field="type"):
    """The broker of that epoch is in service, out of it, or about to leave. Of an older epoch it would mean nothing."""

    node_id: NodeId
    broker_epoch: int
    state: BrokerState


class BrokerLeaving(Struct, frozen=True, gc=False, tag="broker_leaving", tag_field="type"):
    """The broker is to be taken away for good, or no longer. It holds through any number of registrations."""

    node_id: NodeId
    is_leaving: bool


class BrokerMaintenance(Struct, frozen=True, gc=False, tag="broker_maintenance", tag_field="type"):
    """Somebody works on the broker, or no longer: others lead where they can. It holds through any number of registrations."""

    node_id: NodeId
    is_on: bool


class BrokerRemoved(Struct, frozen=True, gc=False, tag="broker_removed", tag_field="type"):
    """The broker holds no replica and is not coming back."""

    node_id: NodeId


class ControllerChanged(Struct, frozen=True, gc=False, tag="controller_changed", tag_field="type"):
    """The first record of a controller's epoch: from here on `node_id` decides.

    `settings` are some of those that all nodes must agree on (ADR 0013): what its configuration says of them, None where it says
    nothing and the default is meant. Names that were settled by an earlier controller are not among them.
    """

    node_id: NodeId
    epoch: int
    settings: dict[str, str | None] = {}
    reign: str = ""
    """A name that no other controller has, nor the same one another time: epochs may come again in a log that was put back."""
    offset: int | None = None
    """Its own, in a snapshot. None in the log, where it is known."""


class HomeLeft(Struct, frozen=True, gc=False, tag="home_left", tag_field="type"):
    """The last record of a home that the metadata leave for another: nobody decides here from now on.

    A controller that begins after it says that the metadata are at home where it found them, there or here.
    """

    to: str
    """The other home, for people."""


class TopicCreated(Struct, frozen=True, gc=False, tag="topic_created", tag_field="type"):
    """A topic without partitions; they follow in the same append."""

    topic_id: TopicId
    name: str
    owner: str | None = None
    created_at_ms: int = 0


class TopicChanged(Struct, frozen=True, gc=False, tag="topic_changed", tag_field="type"):
    """Something about the topic is another than before; the records that say what come with it."""

    topic_id: TopicId
    owner: str | None
    modified_at_ms: int


class TopicDeleted(Struct, frozen=True, gc=False, tag="topic_deleted", tag_field="type"):
    """The topic, its partitions and its settings are gone. The id is never used again."""

    topic_id: TopicId


class PartitionCreated(Struct, frozen=True, gc=False, tag="partition_created", tag_field="type"):
    """The next partition of a topic: `index` is the number of partitions it had before."""

    topic_id: TopicId
    index: int
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    leader: NodeId | None
    leader_epoch: LeaderEpoch
    partition_epoch: int
    eligible: tuple[NodeId, ...] = ()
    """Out of sync since the ISR is below the minimum, yet they hold all that was acknowledged (KIP-966's ELR)."""
    last_leader: NodeId | None = None
    """Who led last, while nobody leads: it may lead again where nobody in sync or eligible is left."""
    adding: tuple[NodeId, ...] = ()
    """Those among `replicas` that a move has yet to bring in step."""
    removing: tuple[NodeId, ...] = ()
    """Those among `replicas` that leave when the move is done."""
    observers: tuple[NodeId, ...] = ()
    """Copies that nobody waits for; never among `replicas` or `isr`."""
    start_offset: int = 0
    """What is below was deleted: whoever holds a copy leaves it behind before it leads."""


class PartitionChanged(Struct, frozen=True, gc=False, tag="partition_changed", tag_field="type"):
    """The whole new state of a partition. `partition_epoch` is one more than before; `leader_epoch` too if the leader changed."""

    topic_id: TopicId
    index: int
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    leader: NodeId | None
    leader_epoch: LeaderEpoch
    partition_epoch: int
    eligible: tuple[NodeId, ...] = ()
    """Out of sync since the ISR is below the minimum, yet they hold all that was acknowledged (KIP-966's ELR)."""
    last_leader: NodeId | None = None
    """Who led last, while nobody leads: it may lead again where nobody in sync or eligible is left."""
    adding: tuple[NodeId, ...] = ()
    """Those among `replicas` that a move has yet to bring in step."""
    removing: tuple[NodeId, ...] = ()
    """Those among `replicas` that leave when the move is done."""
    observers: tuple[NodeId, ...] = ()
    """Copies that nobody waits for; never among `replicas` or `isr`."""
    start_offset: int = 0
    """What is below was deleted: whoever holds a copy leaves it behind before it leads."""


class LossRecorded(Struct, frozen=True, gc=False, tag="loss_recorded", tag_field="type"):
    """A replica was made leader that may lack acknowledged records. Kept so that nobody has to guess later."""

    topic_id: TopicId
    index: int
    leader: NodeId
    leader_epoch: LeaderEpoch
    at_ms: int
    reason: str


class QueueCreated(Struct, frozen=True, gc=False, tag="queue_created", tag_field="type"):
    """A topic that is there is a queue from here on. Deleting the topic deletes the queue, without another record."""

    queue_id: OwnerId
    name: str
    topic_id: TopicId
    attributes: dict[str, str] = {}
    tags: dict[str, str] = {}
    owner: str | None = None
    created_at_ms: int = 0
    is_adopted: bool = False
    """The topic was there before, and stays when the queue goes."""
    starts: tuple[int, ...] = ()
    """Of adopted topics, by partition: from which offset on records are messages; 0 for partitions that are not named."""


class QueueChanged(Struct, frozen=True, gc=False, tag="queue_changed", tag_field="type"):
    """Attributes and tags of a queue by their names; None takes one away, and those that are not named stay."""

    queue_id: OwnerId
    attributes: dict[str, str | None] = {}
    tags: dict[str, str | None] = {}
    modified_at_ms: int = 0


class QueueDeleted(Struct, frozen=True, gc=False, tag="queue_deleted", tag_field="type"):
    """The queue is gone; of its topic other records say whether it is. The name rests from `deleted_at_ms` on, if names do."""

    queue_id: OwnerId
    name: str
    deleted_at_ms: int


class MoveTaskStarted(Struct, frozen=True, gc=False, tag="move_task_started", tag_field="type"):
    """Messages of a dead-letter queue are to be moved, those that were there then."""

    task_id: bytes
    queue_id: OwnerId
    target: str | None
    """The name of the queue they go to; None: each to the one it came from."""
    messages_per_second_max: int | None
    started_at_ms: int
    to_move_count: int = 0
    """How many there were, about."""


class MoveTaskCancelling(Struct, frozen=True, gc=False, tag="move_task_cancelling", tag_field="type"):
    """Nothing more is to be moved for this task; it ends when whoever moves has heard so."""

    task_id: bytes
    queue_id: OwnerId


class MoveTaskEnded(Struct, frozen=True, gc=False, tag="move_task_ended", tag_field="type"):
    """Nothing more is moved for this task."""

    task_id: bytes
    queue_id: OwnerId
    status: str
    """COMPLETED, CANCELLED or FAILED, as SQS says it."""
    moved_count: int
    ended_at_ms: int
    reason: str | None = None
    """Why it failed."""


class TopicSettingsChanged(Struct, frozen=True, gc=False, tag="topic_settings_changed", tag_field="type"):
    """Overrides of one topic, by Kafka's names; None takes an override away."""

    topic_id: TopicId
    changes: dict[str, str | None]


class BrokerSettingsChanged(Struct, frozen=True, gc=False, tag="broker_settings_changed", tag_field="type"):
    """Overrides of one broker, or with no `node_id` of all brokers; None takes an override away."""

    node_id: NodeId | None
    changes: dict[str, str | None]


class ProducerIdsAllocated(Struct, frozen=True, gc=False, tag="producer_ids_allocated", tag_field="type"):
    """Every producer id below `end_producer_id` is spoken for; the last block belongs to `node_id`."""

    node_id: NodeId
    end_producer_id: ProducerId


QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]
"""Whom a quota is for: kinds (`user`, `client-id`, `ip`) with their names, in the order of the kinds. Without a name it
is for everybody of that kind who has no quota of their own."""


class ClientQuotasChanged(Struct, frozen=True, gc=False, tag="client_quotas_changed", tag_field="type"):
    """Quotas of one entity, by Kafka's names; None takes a quota away."""

    entity: QuotaEntity
    changes: dict[str, float | None]


class ScramCredentialSet(Struct, frozen=True, gc=False, tag="scram_credential_set", tag_field="type"):
    """What is kept of a user's password (`security/scram.py`), instead of what was kept before by the same mechanism."""

    user: str
    mechanism: int
    """1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512."""
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"ScramCredentialSet({self.user!r}, {self.mechanism}, …)"


class ScramCredentialRemoved(Struct, frozen=True, gc=False, tag="scram_credential_removed", tag_field="type"):
    """The user cannot log in by that mechanism any more; who has no other is gone."""

    user: str
    mechanism: int


class DecoyKeySet(Struct, frozen=True, gc=False, tag="decoy_key_set", tag_field="type"):
    """From which salts are made for users that are not there (`security/decoys.py`). It comes with the first user and stays."""

    key: bytes

    def __repr__(self) -> str:
        return "DecoyKeySet(…)"


class TokenKeyAdded(Struct, frozen=True, gc=False, tag="token_key_added", tag_field="type"):
    """A key that signs the cluster's own tokens (`security/tokens.py`). It signs until it is old, or another was added."""

    key_id: str
    key: bytes
    created_at_ms: int

    def __repr__(self) -> str:
        return f"TokenKeyAdded({self.key_id!r}, …)"


class TokenKeyRemoved(Struct, frozen=True, gc=False, tag="token_key_removed", tag_field="type"):
    """No token that was signed with the key counts any more."""

    key_id: str


class AclAdded(Struct, frozen=True, gc=False, tag="acl_added", tag_field="type"):
    """A rule about who may do what (`security/access.py`). One that is there already stays as it is."""

    resource_type: ResourceType
    name: str
    pattern: Pattern
    principal: str
    host: str
    operation: Operation
    permission: Permission


class AclRemoved(Struct, frozen=True, gc=False, tag="acl_removed", tag_field="type"):
    """The rule that says exactly this is gone."""

    resource_type: ResourceType
    name: str
    pattern: Pattern
    principal: str
    host: str
    operation: Operation
    permission: Permission


class ChangeDetail(Struct, frozen=True, gc=False):
    """One thing that a change has made different, as a person would say it. Never a secret, and never long."""

    kind: str
    """What of it, as `topic.setting` (`controller/audit.py`)."""
    resource: str
    before: str | None = None
    after: str | None = None


class ChangeMade(Struct, frozen=True, gc=False, tag="change_made", tag_field="type"):
    """Who asked for the facts that come with it in the same change, and what they come to. It says nothing else about the cluster.

    Changes that a node makes on its own account have none.
    """

    number: int
    """One more than that of the last: a change that is missing somewhere is missed."""
    operation: str
    """The API or action by which it was asked for."""
    principal: str
    at_ms: int
    groups: tuple[str, ...] = ()
    method: str = ""
    """How the name came to be known."""
    client_id: str | None = None
    host: str = ""
    listener: str = ""
    forwarded_by: NodeId | None = None
    """The node that the client was connected to, where that is not the one that decided."""
    details: tuple[ChangeDetail, ...] = ()
    more_count: int = 0
    """Facts that are not told in `details`: they would be too many."""
    offset: int | None = None
    """Its own, in a snapshot. None in the log, where it is known."""


class ChangeBegun(Struct, frozen=True, gc=False, tag="change_begun", tag_field="type"):
    """What follows takes effect together, at `ChangeEnded`: it is too large for one append."""


class ChangeEnded(Struct, frozen=True, gc=False, tag="change_ended", tag_field="type"):
    """Everything since `ChangeBegun` takes effect here."""


class ChangeAbandoned(Struct, frozen=True, gc=False, tag="change_abandoned", tag_field="type"):
    """Nothing since `ChangeBegun` ever takes effect. A `ControllerChanged` says the same of what it finds begun."""


Fact: TypeAlias = (
    ClusterCreated
    | ControllerChanged
    | HomeLeft
    | LevelChanged
    | BrokerRegistered
    | BrokerStateChanged
    | BrokerLeaving
    | BrokerMaintenance
    | BrokerRemoved
    | TopicCreated
    | TopicChanged
    | TopicDeleted
    | PartitionCreated
    | PartitionChanged
    | LossRecorded
    | QueueCreated
    | QueueChanged
    | QueueDeleted
    | MoveTaskStarted
    | MoveTaskCancelling
    | MoveTaskEnded
    | TopicSettingsChanged
    | BrokerSettingsChanged
    | ProducerIdsAllocated
    | ClientQuotasChanged
    | ScramCredentialSet
    | ScramCredentialRemoved
    | DecoyKeySet
    | TokenKeyAdded
    | TokenKeyRemoved
    | AclAdded
    | AclRemoved
    | ChangeMade
)
"""Says something about the cluster."""

MetadataRecord: TypeAlias = Fact | ChangeBegun | ChangeEnded | ChangeAbandoned

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(tuple[MetadataRecord, ...])


def encode_records(records: Sequence[MetadataRecord]) -> bytes:
    return _ENCODER.encode(tuple(records))


def decode_records(data: bytes) -> tuple[MetadataRecord, ...]:
    """The inverse of `encode_records`; raises `ValueError` for anything it would not have written."""
    return _DECODER.decode(data)
