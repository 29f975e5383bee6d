"""ChangeQueue between two nodes: what is asked arrives as it was meant, and so does what is refused."""

import pytest

from ropewalk.base.errors import (
    InvalidQueue,
    MoveTaskOver,
    MoveTaskRunning,
    NotController,
    NotInForce,
    PolicyViolation,
    QueueDeletedRecently,
    QueueExists,
    RopewalkError,
    StorageFailed,
    TopicDeletionDisabled,
    UnknownMoveTask,
    UnknownQueue,
)
from ropewalk.broker.cluster.mandate import Mandate
from ropewalk.broker.peers.calls.change_queue import change_queue
from ropewalk.broker.peers.calls.forward import ITSELF, Sender
from ropewalk.client.errors import RemoteError
from ropewalk.controller.queues import (
    CancelMoveTask,
    ChangeQueue,
    CreateQueue,
    DeleteQueue,
    EndMoveTask,
    QueueCommand,
    StartMoveTask,
)
from ropewalk.kafka.peer.apis import PEER_APIS
from ropewalk.metadata.records import LevelChanged
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.peer import change_queue as wire
from tests.kafka.peers import Peers, among_peers

COMMANDS: list[QueueCommand] = [
    CreateQueue(name="jobs"),
    CreateQueue(
        name="jobs.fifo",
        attributes={"DelaySeconds": "1", "Policy": "{}"},
        tags={"a": ""},
        owner="me",
        partition_count=4,
        topic="orders",
        starts=(0, 7),
    ),
    ChangeQueue(name="jobs", attributes={"DelaySeconds": None, "Policy": "ü"}, tags={"a": None, "b": "c"}),
    DeleteQueue("jobs"),
    StartMoveTask(name="dead", task_id=b"t" * 16),
    StartMoveTask(name="dead", task_id=b"t" * 16, target="jobs", messages_per_second_max=7, to_move_count=9),
    CancelMoveTask(name="dead", task_id=b"t" * 16),
    EndMoveTask(name="dead", task_id=b"t" * 16, status="FAILED", moved_count=5, reason="no origin"),
]


SENDER = Sender("User:ann", "AKID", "10.0.0.1", groups=("staff",), method="signature", listener="SQS")


async def ask(peers: Peers, command: QueueCommand, refusal: RopewalkError | None = None) -> object:
    one, other = await peers.start(0), await peers.start(1)
    one.services.decides, one.services.refusal = True, refusal
    other.image.apply(LevelChanged(2))
    other.learn(one, controller=one)
    link = other.controller_link(one)
    answer = await link.call(change_queue(command, SENDER, "CreateQueue"), deadline_ms=peers.deadline_ms())
    assert one.services.queue_commands == [command]
    assert one.services.mandates == [Mandate(SENDER, "CreateQueue", other.node_id)]
    return answer.metadata_offset


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_arrives_as_it_was_meant(command: QueueCommand) -> None:
    assert among_peers(lambda peers: ask(peers, command)) == 7


@pytest.mark.parametrize(
    "refusal",
    [
        UnknownQueue("there is none"),
        UnknownMoveTask("nothing moves"),
        MoveTaskRunning("it moves"),
        MoveTaskOver("it has ended"),
        QueueExists("DelaySeconds"),
        QueueDeletedRecently("it rests"),
        InvalidQueue("it cannot be"),
        NotInForce("not yet"),
        PolicyViolation("no room"),
        TopicDeletionDisabled("never"),
        StorageFailed("the disk"),
    ],
)
def test_a_refusal_is_the_same_on_both_sides(refusal: RopewalkError) -> None:
    with pytest.raises(type(refusal)) as refused:
        among_peers(lambda peers: ask(peers, COMMANDS[0], refusal))
    assert type(refused.value) is type(refusal)
    assert str(refused.value) == str(refusal)
    assert getattr(refused.value, "attribute", None) == getattr(refusal, "attribute", None)


def test_a_node_that_does_not_decide_says_so() -> None:
    async def story(peers: Peers) -> None:
        one, other = await peers.start(0), await peers.start(1)
        other.image.apply(LevelChanged(2))
        other.learn(one, controller=one)
        link = other.links.to_node(one.node_id, change_queue(COMMANDS[0], SENDER, "CreateQueue").lane)
        answer = await change_queue(COMMANDS[0], SENDER, "CreateQueue").send(link, peers.deadline_ms())
        assert isinstance(answer, NotController)

    among_peers(story)


def test_what_a_node_wants_itself_comes_in_nobodys_name() -> None:
    async def story(peers: Peers) -> None:
        one, other = await peers.start(0), await peers.start(1)
        one.services.decides = True
        other.image.apply(LevelChanged(2))
        other.learn(one, controller=one)
        call = change_queue(COMMANDS[-1], ITSELF, "")
        await other.controller_link(one).call(call, deadline_ms=peers.deadline_ms())
        assert one.services.mandates == [None]

    among_peers(story)


def test_an_action_that_nobody_knows_is_refused() -> None:
    async def story(peers: Peers) -> None:
        one, other = await peers.start(0), await peers.start(1)
        one.services.decides = True
        other.image.apply(LevelChanged(2))
        other.learn(one, controller=one)
        link = other.links.to_node(one.node_id, change_queue(COMMANDS[0], SENDER, "CreateQueue").lane)
        request = wire.ChangeQueueRequest(9, "jobs")
        answer = await link.call(wire.API, request, deadline_ms=peers.deadline_ms())
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert RemoteError(answer.error_code, answer.error_message).message.startswith("9 is nothing")
        assert one.services.queue_commands == []

    among_peers(story)


def test_no_two_calls_between_nodes_have_one_key() -> None:
    keys = [api.key for api in PEER_APIS]
    assert len(set(keys)) == len(keys), "one of them would never be answered"
