"""Making, growing, changing and deleting topics, as any door may ask for it."""

from collections.abc import Mapping, Sequence

from ropewalk.base.errors import PolicyViolation, UnknownTopic
from ropewalk.base.ids import NodeId, TopicId
from ropewalk.base.ports import Clock, Rng
from ropewalk.broker.cluster.cluster import Cluster, Decide
from ropewalk.broker.cluster.forwarding import Forwarding
from ropewalk.broker.cluster.mandate import Mandate, mandate
from ropewalk.broker.peers.calls.create_topics import CREATE_TOPICS, create_topic
from ropewalk.broker.peers.calls.forward import ITSELF, Sender
from ropewalk.controller.settings import (
    Alteration,
    decide_alter_broker_settings,
    decide_alter_topic_settings,
    decide_replace_broker_settings,
    decide_replace_topic_settings,
)
from ropewalk.controller.topics import (
    CreatePartitions,
    CreateTopic,
    decide_create_partitions,
    decide_create_topic,
    decide_delete_topic,
)
from ropewalk.metadata.image import Image, Topic
from ropewalk.metadata.internal_topics import AUDIT_TOPIC
from ropewalk.metadata.records import MetadataRecord
from ropewalk.metadata.settings.applied import AppliedSettings, BrokerSettings
from ropewalk.metadata.settings.effective import SettingsView


class Topics:
    def __init__(
        self, cluster: Cluster, node_id: NodeId, configuration: dict[str, str], rng: Rng, clock: Clock
    ) -> None:
        self._cluster = cluster
        self._rng = rng
        self._clock = clock
        self.view = SettingsView(cluster.image, node_id, configuration)
        self.settings = AppliedSettings(self.view)
        self._forwarding: Forwarding | None = None

    def forward_with(self, forwarding: Forwarding) -> None:
        """For a node that may not be the one that decides."""
        self._forwarding = forwarding

    @property
    def image(self) -> Image:
        return self._cluster.image

    @property
    def broker_settings(self) -> BrokerSettings:
        return self.settings.of_broker

    @property
    def creates_automatically(self) -> bool:
        return self.settings.of_broker.auto_create_topics_enable

    async def create_automatically(self, name: str, sender: Sender) -> None:
        """As Kafka does for a topic that a client asks about; names of the node's own topics are out of reach."""
        if name.startswith("__"):
            raise UnknownTopic(f"there is no topic {name!r}, and internal topics are not made on demand")
        await self.create(CreateTopic(name=name), sender)

    async def create(self, command: CreateTopic, sender: Sender = ITSELF) -> Topic:
        """The topic, ready for use. Where another node decides it is asked, in the name of whoever wants the topic."""
        if self._forwarding is not None and self._forwarding.is_needed():
            refusal = (await self._forwarding.forward(create_topic(command, sender))).response
            if refusal is not None:
                raise refusal
            return self.image.topic(command.name)
        topic = await self.create_unopened(command, mandate(sender, CREATE_TOPICS))
        await self.opened()
        return topic

    async def create_unopened(
        self, command: CreateTopic, mandate: Mandate | None, *, validate_only: bool = False
    ) -> Topic:
        """The topic, durable and not yet ready for use; or, if it was only to be validated, what it would be.

        Of many, the partitions are opened together: make them all, then wait for `opened` once.
        """

        def decide(image: Image) -> Sequence[MetadataRecord]:
            return decide_create_topic(
                image, command, self.broker_settings, self._rng, now_ms=self._clock.now_ms()
            )

        if validate_only:
            imagined = Image()
            for record in decide(self.image):
                imagined.apply(record)
            return imagined.topic(command.name)
        await self._cluster.commit(decide, mandate)
        return self.image.topic(command.name)

    async def opened(self) -> None:
        """Return when every topic made so far is ready for use."""
        await self._cluster.followed()

    async def add_partitions(
        self, command: CreatePartitions, mandate: Mandate | None, *, validate_only: bool = False
    ) -> int:
        """How many were added, or would be."""
        added = 0

        def decide(image: Image) -> Sequence[MetadataRecord]:
            nonlocal added
            records = decide_create_partitions(
                image, command, self.broker_settings, self._rng, now_ms=self._clock.now_ms()
            )
            added = command.partition_count - len(image.topic(command.name).partitions)
            return records

        await self._decide(decide, mandate, validate_only)
        return added

    async def delete(self, topic_id: TopicId, mandate: Mandate | None) -> None:
        """Raises UnknownTopicId if somebody else was quicker."""

        def decide(image: Image) -> Sequence[MetadataRecord]:
            return decide_delete_topic(image, image.topic_by_id(topic_id), self.broker_settings)

        await self._cluster.propose(decide, mandate)

    async def alter_settings(
        self,
        topic_name: str,
        alterations: Sequence[Alteration],
        mandate: Mandate | None,
        *,
        validate_only: bool = False,
    ) -> None:
        def decide(image: Image) -> Sequence[MetadataRecord]:
            return decide_alter_topic_settings(
                image, self.view, topic_name, alterations, now_ms=self._clock.now_ms()
            )

        await self._decide(decide, mandate, validate_only)

    async def alter_broker_settings(
        self,
        node_id: NodeId | None,
        alterations: Sequence[Alteration],
        mandate: Mandate | None,
        *,
        validate_only: bool = False,
    ) -> None:
        """With no node the settings of all brokers."""

        def decide(image: Image) -> Sequence[MetadataRecord]:
            return decide_alter_broker_settings(image, self.view, node_id, alterations)

        await self._decide(decide, mandate, validate_only)

    async def replace_settings(
        self,
        topic_name: str,
        settings: Mapping[str, str | None],
        mandate: Mandate | None,
        *,
        validate_only: bool = False,
    ) -> None:
        """What is not named goes back to its default."""

        def decide(image: Image) -> Sequence[MetadataRecord]:
            return decide_replace_topic_settings(
                image, self.view, topic_name, settings, now_ms=self._clock.now_ms()
            )

        await self._decide(decide, mandate, validate_only)

    async def replace_broker_settings(
        self,
        node_id: NodeId | None,
        settings: Mapping[str, str | None],
        mandate: Mandate | None,
        *,
        validate_only: bool = False,
    ) -> None:
        def decide(image: Image) -> Sequence[MetadataRecord]:
            return decide_replace_broker_settings(image, self.view, node_id, settings)

        await self._decide(decide, mandate, validate_only)

    async def _decide(self, decide: Decide, mandate: Mandate | None, validate_only: bool) -> None:
        if validate_only:
            decide(self.image)
        else:
            await self._cluster.propose(decide, mandate)


def check_records_may_be_deleted(topic: Topic, view: SettingsView) -> None:
    """Kafka refuses DeleteRecords where a topic is compacted only: its records are state, not history."""
    if topic.name == AUDIT_TOPIC:
        raise PolicyViolation(
            f"{topic.name} tells who asked for changes; records cannot be deleted from its start"
        )
    policy = view.of_topic(topic, "cleanup.policy").parsed
    if policy == ("compact",):
        raise PolicyViolation(f"{topic.name} is compacted; records cannot be deleted from its start")
