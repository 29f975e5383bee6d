"""Every action that this door serves, with what it takes, answers and needs. No listing, no action; no needs, no listing."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar, cast

from msgspec import Struct

from ropewalk.sqs import json_protocol, query_protocol
from ropewalk.sqs.desk import Caller, Desk
from ropewalk.sqs.handlers import (
    add_permission,
    adopt_topic,
    cancel_message_move_task,
    change_message_visibility,
    change_message_visibility_batch,
    create_queue,
    delete_message,
    delete_message_batch,
    delete_queue,
    explain_message,
    get_queue_attributes,
    get_queue_url,
    list_dead_letter_source_queues,
    list_message_move_tasks,
    list_queue_tags,
    list_queues,
    purge_queue,
    receive_message,
    remove_permission,
    rewind_queue,
    send_message,
    send_message_batch,
    set_queue_attributes,
    start_message_move_task,
    tag_queue,
    untag_queue,
)
from ropewalk.sqs.needs import (
    ALTER,
    ALTER_CONFIGS,
    DELETE,
    DESCRIBE,
    MOVE,
    READ,
    RECEIVE,
    WRITE,
    Creation,
    Listing,
    Needs,
    OnQueue,
    alter_for_a_policy,
    alter_the_topic,
    at_url,
    of_handle,
    of_name,
    of_source,
    write_where_they_came_from,
)
from ropewalk.sqs.shapes import Empty, Input, Output

Q = TypeVar("Q", bound=Input)
R = TypeVar("R", bound=Output)


class Action(Struct, frozen=True):
    """One action, with its codecs in both protocols."""

    name: str
    request: type[Input]
    result: type[Output]
    needs: Needs
    handle: Callable[[Input, Desk, Caller], Coroutine[Any, None, Output]]
    decode_json: Callable[[bytes], Input]
    decode_query: Callable[[Mapping[str, str]], Input]
    encode_xml: Callable[[Output, str], bytes]


def action(
    name: str,
    request: type[Q],
    result: type[R],
    needs: Needs,
    handle: Callable[[Q, Desk, Caller], Coroutine[Any, None, R]],
) -> Action:
    return Action(
        name,
        request,
        result,
        needs,
        # What comes out of an action's decoder is what its handler takes.
        cast("Callable[[Input, Desk, Caller], Coroutine[Any, None, Output]]", handle),
        json_protocol.decoder_of(request),
        query_protocol.decoder_of(request),
        query_protocol.encoder_of(name, result),
    )


_TARGET: Final = "WRITE on the dead-letter queue that RedrivePolicy names"

ACTIONS: Final = (
    action("AddPermission", add_permission.AddPermissionRequest, Empty, at_url(ALTER), add_permission.handle),
    action(
        "CancelMessageMoveTask",
        cancel_message_move_task.CancelMessageMoveTaskRequest,
        cancel_message_move_task.CancelMessageMoveTaskResult,
        OnQueue(rights=MOVE, name_of=of_handle),
        cancel_message_move_task.handle,
    ),
    action(
        "ChangeMessageVisibility",
        change_message_visibility.ChangeMessageVisibilityRequest,
        Empty,
        at_url(RECEIVE),
        change_message_visibility.handle,
    ),
    action(
        "ChangeMessageVisibilityBatch",
        change_message_visibility_batch.ChangeMessageVisibilityBatchRequest,
        change_message_visibility_batch.ChangeMessageVisibilityBatchResult,
        at_url(RECEIVE),
        change_message_visibility_batch.handle,
    ),
    action(
        "CreateQueue",
        create_queue.CreateQueueRequest,
        create_queue.CreateQueueResult,
        Creation(name_of=of_name, said=_TARGET),
        create_queue.handle,
    ),
    action(
        "DeleteMessage", delete_message.DeleteMessageRequest, Empty, at_url(RECEIVE), delete_message.handle
    ),
    action(
        "DeleteMessageBatch",
        delete_message_batch.DeleteMessageBatchRequest,
        delete_message_batch.DeleteMessageBatchResult,
        at_url(RECEIVE),
        delete_message_batch.handle,
    ),
    action(
        "DeleteQueue",
        delete_queue.DeleteQueueRequest,
        Empty,
        at_url(DELETE, is_deletion=True),
        delete_queue.handle,
    ),
    action(
        "GetQueueAttributes",
        get_queue_attributes.GetQueueAttributesRequest,
        get_queue_attributes.GetQueueAttributesResult,
        at_url(DESCRIBE),
        get_queue_attributes.handle,
    ),
    action(
        "GetQueueUrl",
        get_queue_url.GetQueueUrlRequest,
        get_queue_url.GetQueueUrlResult,
        OnQueue(rights=DESCRIBE, name_of=of_name),
        get_queue_url.handle,
    ),
    action(
        "ListDeadLetterSourceQueues",
        list_dead_letter_source_queues.ListDeadLetterSourceQueuesRequest,
        list_dead_letter_source_queues.ListDeadLetterSourceQueuesResult,
        at_url(DESCRIBE, said="sources that may not be described are left out"),
        list_dead_letter_source_queues.handle,
    ),
    action(
        "ListMessageMoveTasks",
        list_message_move_tasks.ListMessageMoveTasksRequest,
        list_message_move_tasks.ListMessageMoveTasksResult,
        OnQueue(
            rights=DESCRIBE, name_of=of_source, said="a destination that may not be described is left out"
        ),
        list_message_move_tasks.handle,
    ),
    action(
        "ListQueueTags",
        list_queue_tags.ListQueueTagsRequest,
        list_queue_tags.ListQueueTagsResult,
        at_url(DESCRIBE),
        list_queue_tags.handle,
    ),
    action(
        "ListQueues",
        list_queues.ListQueuesRequest,
        list_queues.ListQueuesResult,
        Listing(),
        list_queues.handle,
    ),
    action(
        "PurgeQueue",
        purge_queue.PurgeQueueRequest,
        Empty,
        at_url(DELETE, is_deletion=True),
        purge_queue.handle,
    ),
    action(
        "ReceiveMessage",
        receive_message.ReceiveMessageRequest,
        receive_message.ReceiveMessageResult,
        at_url(RECEIVE, is_asked_again=True, said="asked again when messages are there"),
        receive_message.handle,
    ),
    action(
        "RemovePermission",
        remove_permission.RemovePermissionRequest,
        Empty,
        at_url(ALTER),
        remove_permission.handle,
    ),
    action(
        "SendMessage",
        send_message.SendMessageRequest,
        send_message.SendMessageResult,
        at_url(WRITE),
        send_message.handle,
    ),
    action(
        "SendMessageBatch",
        send_message_batch.SendMessageBatchRequest,
        send_message_batch.SendMessageBatchResult,
        at_url(WRITE),
        send_message_batch.handle,
    ),
    action(
        "SetQueueAttributes",
        set_queue_attributes.SetQueueAttributesRequest,
        Empty,
        at_url(ALTER_CONFIGS, besides=alter_for_a_policy, said=f"ALTER as well for a Policy; {_TARGET}"),
        set_queue_attributes.handle,
    ),
    action(
        "StartMessageMoveTask",
        start_message_move_task.StartMessageMoveTaskRequest,
        start_message_move_task.StartMessageMoveTaskResult,
        OnQueue(
            rights=MOVE,
            name_of=of_source,
            besides=write_where_they_came_from,
            said="WRITE on the destination, or on every queue whose dead letters go there",
        ),
        start_message_move_task.handle,
    ),
    action("TagQueue", tag_queue.TagQueueRequest, Empty, at_url(ALTER_CONFIGS), tag_queue.handle),
    action("UntagQueue", untag_queue.UntagQueueRequest, Empty, at_url(ALTER_CONFIGS), untag_queue.handle),
)
"""SQS's own."""

OWN_ACTIONS: Final = (
    action(
        "AdoptTopic",
        adopt_topic.AdoptTopicRequest,
        adopt_topic.AdoptTopicResult,
        Creation(name_of=of_name, besides=alter_the_topic, said=f"ALTER on the topic; {_TARGET}"),
        adopt_topic.handle,
    ),
    action(
        "ExplainMessage",
        explain_message.ExplainMessageRequest,
        explain_message.ExplainMessageResult,
        at_url(READ, is_asked_again=True),
        explain_message.handle,
    ),
    action("RewindQueue", rewind_queue.RewindQueueRequest, Empty, at_url(ALTER), rewind_queue.handle),
)
"""What SQS has no action for, under the target `Ropewalk`."""

BY_TARGET: Final[Mapping[str, Action]] = {
    **{f"AmazonSQS.{each.name}": each for each in ACTIONS},
    **{f"Ropewalk.{each.name}": each for each in OWN_ACTIONS},
}
BY_NAME: Final[Mapping[str, Action]] = {each.name: each for each in ACTIONS}
