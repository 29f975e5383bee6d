"""Ask every node of a cluster for the facts that rules look at.

What a reader could get wrong
    Nothing here fails because of one node, one topic or one right: what cannot be had is noted, and the rest goes on.
    Settings of topics are asked for many at a time, and of very many topics only the first, which is noted, too.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from msgspec import structs

from ropewalk.base.errors import RopewalkError
from ropewalk.base.ids import NodeId
from ropewalk.base.ports import Clock, Network, Rng
from ropewalk.client.administration.admin import ResourceKind
from ropewalk.client.administration.membership import (
    ClusterViewer,
    Membership,
    Node,
    PartitionState,
    TopicState,
)
from ropewalk.client.calls.client import Client
from ropewalk.client.calls.together import together
from ropewalk.client.connections.address import Address
from ropewalk.client.connections.cluster import TopicView
from ropewalk.client.connections.connecting import Connector, connector
from ropewalk.client.connections.settings import ClientSettings
from ropewalk.client.errors import ApiNotOffered
from ropewalk.views.answering import PATIENCE_MS, deadline_ms
from ropewalk.views.asking import ask_everyone
from ropewalk.views.diagnosis.facts import (
    Directory,
    Facts,
    GroupFacts,
    NodeFacts,
    Reached,
    TopicFacts,
)
from ropewalk.views.diagnosis.figures import Figures
from ropewalk.views.diagnosis.pages import NotRead, read_page
from ropewalk.views.observation import ClusterSource
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import describe_configs, describe_log_dirs, fetch, metadata, produce

T = TypeVar("T")

_TOPICS_AT_ONCE: Final = 200
_TOPICS_ASKED_MAX: Final = 5_000
_SETTINGS_ASKED: Final = (
    "cleanup.policy",
    "flush",
    "min.cleanable.dirty.ratio",
    "retention.bytes",
    "retention.ms",
    "unclean.leader.election.enable",
)

Describe = Callable[[RopewalkError], str]


class Collector:
    def __init__(
        self,
        network: Network,
        clock: Clock,
        rng: Rng,
        settings: ClientSettings,
        *,
        describe: Describe = str,
        examine: Callable[[Directory], Directory] = lambda directory: directory,
    ) -> None:
        """`describe` puts an error into words; `examine` adds what can be seen of the directory of a node on this machine."""
        self._network = network
        self._clock = clock
        self._rng = rng
        self._settings = structs.replace(
            settings, request_timeout_ms=PATIENCE_MS, connect_timeout_ms=PATIENCE_MS
        )
        self._describe = describe
        self._examine = examine
        self._unlearnt: list[str] = []

    async def collect(self, bootstrap: Sequence[Address]) -> Facts:
        try:
            connect = connector(self._network, self._clock, self._rng, self._settings.security)
        except RopewalkError as error:
            return Facts(client_problem=self._describe(error))
        asked = tuple(await together([self._reach("bootstrap", each, connect) for each in bootstrap]))
        if all(each.problem is not None for each in asked):
            return Facts(asked=asked)
        try:
            async with Client(
                self._network, self._clock, self._rng, tuple(bootstrap), self._settings
            ) as client:
                return structs.replace(await self._of_cluster(client, connect), asked=asked)
        except RopewalkError as error:
            return Facts(asked=asked, silence=self._describe(error))

    async def _of_cluster(self, client: Client, connect: Connector) -> Facts:
        try:
            answers = await ask_everyone(client)
        except ApiNotOffered:
            return await self._of_strangers(client, connect)
        nodes = await together(
            [self._of_node(client, connect, each, answers.by_node) for each in answers.best.nodes]
        )
        states = await self._try("topics", ClusterViewer(client).topics(at=answers.best_address), [])
        settings = await self._try("settings of topics", self._topic_settings(client, states), {})
        sample = await self._try("groups", ClusterSource(client, internal=True).look(), None)
        groups = () if sample is None else tuple(sample.groups.items())
        return Facts(
            membership=answers.best,
            nodes=tuple(nodes),
            topics=tuple(TopicFacts(state=each, settings=settings.get(each.name)) for each in states),
            groups=tuple(
                GroupFacts(
                    name=name,
                    state=each.state,
                    member_count=each.member_count,
                    lag=None if each.lag.unanswered is not None else each.lag.lag,
                )
                for name, each in groups
            ),
            unlearnt=tuple(self._unlearnt),
        )

    async def _of_strangers(self, client: Client, connect: Connector) -> Facts:
        """Brokers of another kind tell who they are, and who leads what."""
        view = await client.metadata()
        known = [Node(each.node_id, "active", each.address, each.rack) for each in view.brokers]
        nodes = await together([self._of_node(client, connect, each, {}) for each in known])
        topics = tuple(TopicFacts(state=_as_state(each)) for each in view.topics)
        return Facts(nodes=tuple(nodes), topics=topics)

    async def _of_node(
        self,
        client: Client,
        connect: Connector,
        node: Node,
        answers: Mapping[NodeId, Membership | RopewalkError],
    ) -> NodeFacts:
        answer = answers.get(node.node_id)
        facts = NodeFacts(
            node=node,
            answer=answer if isinstance(answer, Membership) else None,
            silence=self._describe(answer) if isinstance(answer, RopewalkError) else None,
        )
        if node.address is not None:
            reached = await self._reach(f"broker {node.node_id}", node.address, connect)
            facts = structs.replace(facts, reached=reached)
            if reached.problem is None:
                facts = structs.replace(facts, directories=await self._directories(client, node))
        if facts.answer is None or facts.answer.answerer is None:
            return facts  # it does not answer, or is of another kind: then there are no pages either
        try:
            page = await read_page(self._network, node, "/public_metrics", self._settings.security)
        except (NotRead, RopewalkError) as error:
            return structs.replace(facts, figures_problem=self._describe(error))
        return structs.replace(facts, figures=Figures(page))

    async def _reach(self, where: str, address: Address, connect: Connector) -> Reached:
        started_ms = self._clock.monotonic_ms()
        failed = partial(Reached, where, str(address))
        try:
            connection = await connect(
                address, client_id="ropewalk-doctor", deadline_ms=started_ms + PATIENCE_MS
            )
        except RopewalkError as error:
            return failed(self._describe(error))
        try:
            spoken = ", ".join(
                f"{api.name} v{connection.versions.choose(api)}"
                for api in (produce.API, fetch.API, metadata.API)
            )
        except RopewalkError as error:
            return failed(self._describe(error))
        finally:
            connection.close()
        elapsed_ms = self._clock.monotonic_ms() - started_ms
        offers = f"offers {len(connection.versions)} APIs ({spoken})"
        return Reached(where, str(address), None, f"{address} answered in {elapsed_ms:.0f} ms and {offers}")

    async def _directories(self, client: Client, node: Node) -> tuple[Directory, ...]:
        session = client.session
        try:
            connection = await session.cluster.connection(node.node_id, deadline_ms=deadline_ms(client))
            response = await connection.call(
                describe_log_dirs.API,
                describe_log_dirs.DescribeLogDirsRequest(topics=()),
                deadline_ms=deadline_ms(client),
            )
        except ApiNotOffered:
            return ()
        except RopewalkError as error:
            return (Directory("", 0, 0, self._describe(error)),)
        found = []
        for each in response.results:
            failed = None if each.error_code == ErrorCode.NONE else ErrorCode(each.error_code).name
            directory = Directory(each.log_dir, each.usable_bytes, each.total_bytes, failed)
            if failed is not None or each.total_bytes > 0:
                found.append(self._examine(directory) if _is_here(node) else directory)
        return tuple(found)

    async def _topic_settings(
        self, client: Client, topics: Sequence[TopicState]
    ) -> dict[str, Mapping[str, str]]:
        names = [topic.name for topic in topics if not topic.is_internal]
        if len(names) > _TOPICS_ASKED_MAX:
            self._unlearnt.append(f"settings of topics after the first {_TOPICS_ASKED_MAX}")
        found: dict[str, Mapping[str, str]] = {}
        for start in range(0, min(len(names), _TOPICS_ASKED_MAX), _TOPICS_AT_ONCE):
            asked = names[start : start + _TOPICS_AT_ONCE]
            connection = await client.session.cluster.any_connection(deadline_ms=deadline_ms(client))
            response = await connection.call(
                describe_configs.API,
                describe_configs.DescribeConfigsRequest(
                    tuple(
                        describe_configs.DescribeConfigsResource(ResourceKind.TOPIC, name, _SETTINGS_ASKED)
                        for name in asked
                    )
                ),
                deadline_ms=deadline_ms(client),
            )
            for result in response.results:
                if result.error_code == ErrorCode.NONE:  # else it has been deleted meanwhile, or is hidden
                    found[result.resource_name] = {
                        each.name: each.value for each in result.configs if each.value is not None
                    }
        return found

    async def _try(self, what: str, work: Coroutine[object, object, T], otherwise: T) -> T:
        try:
            return await work
        except ApiNotOffered:  # a broker of another kind
            return otherwise
        except RopewalkError as error:
            self._unlearnt.append(f"{what}: {self._describe(error)}")
            return otherwise


def _as_state(topic: TopicView) -> TopicState:
    return TopicState(
        topic.name,
        topic.is_internal,
        None,
        None,
        None,
        tuple(
            PartitionState(
                index=each.index,
                leader=each.leader if each.leader >= 0 else None,
                leader_epoch=-1,
                replicas=each.replicas,
                isr=each.isr,
                eligible=(),
                offline=(),
                observers=(),
                adding=(),
                removing=(),
            )
            for each in topic.partitions
        ),
    )


def _is_here(node: Node) -> bool:
    return node.address is not None and node.address.host.startswith(("127.", "localhost", "::1"))
