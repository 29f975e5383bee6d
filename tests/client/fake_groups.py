"""The fake broker's groups: what an administrator can see and change. Members are put there by the test."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ropewalk.wire.consumer_protocol import Assignment, Subscription, TopicPartitions, encode
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages import (
    delete_groups,
    describe_groups,
    find_coordinator,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
)

if TYPE_CHECKING:
    from tests.client.fake_broker import FakeBroker


@dataclass
class FakeMember:
    member_id: str
    topics: tuple[str, ...]
    partitions: dict[str, tuple[int, ...]]
    instance_id: str | None = None
    host: str = "/10.0.0.1"
    version: int = 3

    @property
    def subscription(self) -> bytes:
        return encode(Subscription(self.topics), self.version)

    @property
    def assignment(self) -> bytes:
        assigned = tuple(TopicPartitions(topic, indexes) for topic, indexes in self.partitions.items())
        return encode(Assignment(assigned), self.version)


@dataclass
class FakeGroup:
    coordinator: int = 0
    members: list[FakeMember] = field(default_factory=list)
    offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    protocol_type: str = "consumer"
    protocol: str = "range"

    @property
    def state(self) -> str:
        return "Stable" if self.members else "Empty"


def _find(broker: "FakeBroker", name: str, code: ErrorCode | None) -> tuple[FakeGroup | None, ErrorCode]:
    """The group if this broker looks after it, and the error of the one who asks where it does not."""
    group = broker.cluster.groups.get(name)
    if code is not None:
        return group, code
    if group is not None and group.coordinator != broker.node_id:
        return group, ErrorCode.NOT_COORDINATOR
    return group, ErrorCode.NONE


def handle_find_coordinator(
    broker: "FakeBroker", request: find_coordinator.FindCoordinatorRequest, code: ErrorCode | None
) -> find_coordinator.FindCoordinatorResponse:
    def find(name: str) -> find_coordinator.Coordinator:
        group = broker.cluster.groups.get(name)
        node = group.coordinator if group is not None else min(broker.cluster.addresses)
        address = broker.cluster.addresses[node]
        if code is not None:
            return find_coordinator.Coordinator(name, -1, "", -1, code)
        return find_coordinator.Coordinator(name, node, address.host, address.port)

    found = find(request.key)
    return find_coordinator.FindCoordinatorResponse(
        error_code=found.error_code,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
        coordinators=tuple(map(find, request.coordinator_keys)),
    )


def handle_list_groups(
    broker: "FakeBroker", _: list_groups.ListGroupsRequest, code: ErrorCode | None
) -> list_groups.ListGroupsResponse:
    return list_groups.ListGroupsResponse(
        error_code=code or 0,
        groups=tuple(
            list_groups.ListedGroup(name, group.protocol_type, group.state, "classic")
            for name, group in broker.cluster.groups.items()
            if group.coordinator == broker.node_id
        ),
    )


def handle_describe_groups(
    broker: "FakeBroker", request: describe_groups.DescribeGroupsRequest, code: ErrorCode | None
) -> describe_groups.DescribeGroupsResponse:
    is_error = broker.newest(describe_groups.API) >= 6

    def describe(name: str) -> describe_groups.DescribedGroup:
        group, refusal = _find(broker, name, code)
        if refusal:
            return describe_groups.DescribedGroup(refusal, group_id=name)
        if group is None:
            return describe_groups.DescribedGroup(
                ErrorCode.GROUP_ID_NOT_FOUND if is_error else 0,
                f"Group {name} not found.",
                group_id=name,
                group_state="Dead",
            )
        return describe_groups.DescribedGroup(
            0,
            None,
            name,
            group.state,
            group.protocol_type,
            group.protocol if group.members else "",
            tuple(
                describe_groups.DescribedGroupMember(
                    member.member_id,
                    member.instance_id,
                    "client",
                    member.host,
                    member.subscription,
                    member.assignment,
                )
                for member in group.members
            ),
        )

    return describe_groups.DescribeGroupsResponse(groups=tuple(map(describe, request.groups)))


def handle_offset_fetch(
    broker: "FakeBroker", request: offset_fetch.OffsetFetchRequest, code: ErrorCode | None
) -> offset_fetch.OffsetFetchResponse:
    name = request.groups[0].group_id if request.groups else request.group_id
    assert (request.groups[0].topics if request.groups else request.topics) is None, "all were asked for"
    group, refusal = _find(broker, name, code)
    by_topic: dict[str, dict[int, int]] = {}
    if group is not None and not refusal:
        for (topic, index), offset in group.offsets.items():
            by_topic.setdefault(topic, {})[index] = offset
    single = tuple(
        offset_fetch.OffsetFetchResponseTopic(
            topic,
            tuple(offset_fetch.OffsetFetchResponsePartition(index, at) for index, at in offsets.items()),
        )
        for topic, offsets in by_topic.items()
    )
    many = tuple(
        offset_fetch.OffsetFetchResponseTopics(
            name=topic,
            partitions=tuple(
                offset_fetch.OffsetFetchResponsePartitions(index, at) for index, at in offsets.items()
            ),
        )
        for topic, offsets in by_topic.items()
    )
    return offset_fetch.OffsetFetchResponse(
        topics=single,
        error_code=refusal,
        groups=(offset_fetch.OffsetFetchResponseGroup(name, many, refusal),),
    )


def handle_offset_commit(
    broker: "FakeBroker", request: offset_commit.OffsetCommitRequest, code: ErrorCode | None
) -> offset_commit.OffsetCommitResponse:
    group, refusal = _find(broker, request.group_id, code)
    if not refusal and group is None:
        group = broker.cluster.groups[request.group_id] = FakeGroup(broker.node_id)
    assert group is not None or refusal
    if not refusal and group is not None and group.members:
        refusal = ErrorCode.UNKNOWN_MEMBER_ID
    answers = []
    for topic in request.topics:
        for each in topic.partitions:
            if not refusal and group is not None:
                group.offsets[topic.name, each.index] = each.committed_offset
        partitions = tuple(
            offset_commit.OffsetCommitResponsePartition(each.index, refusal) for each in topic.partitions
        )
        answers.append(offset_commit.OffsetCommitResponseTopic(name=topic.name, partitions=partitions))
    return offset_commit.OffsetCommitResponse(topics=tuple(answers))


def handle_offset_delete(
    broker: "FakeBroker", request: offset_delete.OffsetDeleteRequest, code: ErrorCode | None
) -> offset_delete.OffsetDeleteResponse:
    group, refusal = _find(broker, request.group_id, code)
    if group is None and not refusal:
        refusal = ErrorCode.GROUP_ID_NOT_FOUND
    if group is None or refusal:
        return offset_delete.OffsetDeleteResponse(refusal, 0, ())
    answers = []
    for topic in request.topics:
        is_read = any(topic.name in member.topics for member in group.members)
        if not is_read:
            for each in topic.partitions:
                group.offsets.pop((topic.name, each.index), None)
        answer = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read else ErrorCode.NONE
        partitions = tuple(
            offset_delete.OffsetDeleteResponsePartition(each.index, answer) for each in topic.partitions
        )
        answers.append(offset_delete.OffsetDeleteResponseTopic(topic.name, partitions))
    return offset_delete.OffsetDeleteResponse(0, 0, tuple(answers))


def handle_delete_groups(
    broker: "FakeBroker", request: delete_groups.DeleteGroupsRequest, code: ErrorCode | None
) -> delete_groups.DeleteGroupsResponse:
    def delete(name: str) -> delete_groups.DeletableGroupResult:
        group, refusal = _find(broker, name, code)
        if not refusal:
            if group is None:
                refusal = ErrorCode.GROUP_ID_NOT_FOUND
            elif group.members:
                refusal = ErrorCode.NON_EMPTY_GROUP
            else:
                del broker.cluster.groups[name]
        return delete_groups.DeletableGroupResult(name, refusal)

    return delete_groups.DeleteGroupsResponse(0, tuple(map(delete, request.groups_names)))
