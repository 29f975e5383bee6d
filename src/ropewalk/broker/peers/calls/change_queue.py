"""ChangeQueue: a queue is to be made, changed or deleted, by the node that decides.

Silence means that it may have been done, or not. To make a queue again that is there, or to change it in the same way, is harmless.
"""

from collections.abc import Mapping
from typing import Final, assert_never

from msgspec import structs

from ropewalk.base import errors
from ropewalk.broker.peers.calls.controller_call import ControllerCall, controller_call
from ropewalk.broker.peers.calls.forward import Forwarded, Sender
from ropewalk.broker.peers.calls.refusals import Refusals
from ropewalk.broker.peers.peers import Lane
from ropewalk.controller.queues import (
    CancelMoveTask,
    ChangeQueue,
    CreateQueue,
    DeleteQueue,
    EndMoveTask,
    QueueCommand,
    StartMoveTask,
)
from ropewalk.wire.peer import change_queue as wire

_REFUSALS: Final = Refusals(
    errors.UnknownQueue,
    errors.UnknownMoveTask,
    errors.MoveTaskRunning,
    errors.MoveTaskOver,
    errors.QueueExists,
    errors.QueueDeletedRecently,
    errors.InvalidQueue,
    errors.InvalidPartitionCount,
    errors.InvalidReplicationFactor,
    errors.NotInForce,
    errors.PolicyViolation,
    errors.TopicDeletionDisabled,
    errors.StorageFailed,
    errors.TimedOut,
)
"""What the controller may refuse with. Anything else is a matter between the nodes, and may pass."""


def change_queue(command: QueueCommand, sender: Sender, operation: str) -> ControllerCall[Forwarded[None]]:
    """`operation` is the action by which the sender asks for it."""
    request = structs.replace(
        _request(command),
        operation=operation,
        principal=sender.principal,
        groups=sender.groups,
        method=sender.method,
        client_id=sender.client_id,
        host=sender.host,
        listener=sender.listener,
    )
    return controller_call(wire.API, request, _understand, lane=Lane.FORWARDS, refusals=_REFUSALS)


def _understand(answer: wire.ChangeQueueResponse) -> Forwarded[None]:
    return Forwarded(None, 0, answer.metadata_offset)


def _request(command: QueueCommand) -> wire.ChangeQueueRequest:
    match command:
        case CreateQueue():
            return wire.ChangeQueueRequest(
                wire.CREATE,
                command.name,
                _texts(command.attributes),
                _texts(command.tags),
                command.owner,
                command.partition_count,
                command.topic,
                command.starts,
            )
        case ChangeQueue():
            return wire.ChangeQueueRequest(
                wire.CHANGE, command.name, _texts(command.attributes), _texts(command.tags)
            )
        case DeleteQueue():
            return wire.ChangeQueueRequest(wire.DELETE, command.name)
        case StartMoveTask():
            rate = command.messages_per_second_max
            return wire.ChangeQueueRequest(
                wire.START_MOVE,
                command.name,
                task_id=command.task_id,
                target=command.target,
                messages_per_second_max=-1 if rate is None else rate,
                message_count=command.to_move_count,
            )
        case CancelMoveTask():
            return wire.ChangeQueueRequest(wire.CANCEL_MOVE, command.name, task_id=command.task_id)
        case EndMoveTask():
            return wire.ChangeQueueRequest(
                wire.END_MOVE,
                command.name,
                task_id=command.task_id,
                message_count=command.moved_count,
                status=command.status,
                reason=command.reason,
            )
        case _:
            assert_never(command)


def _texts(texts: Mapping[str, str | None] | Mapping[str, str]) -> tuple[wire.NamedText, ...]:
    return tuple(wire.NamedText(name, text) for name, text in texts.items())
