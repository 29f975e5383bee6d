"""Every action that this door serves, with what it takes and answers. No listing, no action."""

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
from ropewalk.sqs.shapes import Empty, Input, Output

Q = TypeVar("Q", bound=Input)
R = TypeVar("R", bound=Output)


class Action(Struct, frozen=True):
    """One action, with its codecs in both protocols."""

    name: str
    request: type[Input]
    result: type[Output]
    handle: Callable[[Input, Desk, Caller], Coroutine[Any, None, Output]]
    decode_json: Callable[[bytes], Input]
    decode_query: Callable[[Mapping[str, str]], Input]
    encode_xml: Callable[[Output, str], bytes]


def action(
    name: str,
    request: type[Q],
    result: type[R],
    handle: Callable[[Q, Desk, Caller], Coroutine[Any, None, R]],
) -> Action:
    return Action(
        name,
        request,
        result,
        # What comes out of an action's decoder is what its handler takes.
        cast("Callable[[Input, Desk, Caller], Coroutine[Any, None, Output]]", handle),
        json_protocol.decoder_of(request),
        query_protocol.decoder_of(request),
        query_protocol.encoder_of(name, result),
    )


ACTIONS: Final = (
    action("AddPermission", add_permission.AddPermissionRequest, Empty, add_permission.handle),
    action(
        "CancelMessageMoveTask",
        cancel_message_move_task.CancelMessageMoveTaskRequest,
        cancel_message_move_task.CancelMessageMoveTaskResult,
        cancel_message_move_task.handle,
    ),
    action(
        "ChangeMessageVisibility",
        change_message_visibility.ChangeMessageVisibilityRequest,
        Empty,
        change_message_visibility.handle,
    ),
    action(
        "ChangeMessageVisibilityBatch",
        change_message_visibility_batch.ChangeMessageVisibilityBatchRequest,
        change_message_visibility_batch.ChangeMessageVisibilityBatchResult,
        change_message_visibility_batch.handle,
    ),
    action(
        "CreateQueue", create_queue.CreateQueueRequest, create_queue.CreateQueueResult, create_queue.handle
    ),
    action("DeleteMessage", delete_message.DeleteMessageRequest, Empty, delete_message.handle),
    action(
        "DeleteMessageBatch",
        delete_message_batch.DeleteMessageBatchRequest,
        delete_message_batch.DeleteMessageBatchResult,
        delete_message_batch.handle,
    ),
    action("DeleteQueue", delete_queue.DeleteQueueRequest, Empty, delete_queue.handle),
    action(
        "GetQueueAttributes",
        get_queue_attributes.GetQueueAttributesRequest,
        get_queue_attributes.GetQueueAttributesResult,
        get_queue_attributes.handle,
    ),
    action(
        "GetQueueUrl", get_queue_url.GetQueueUrlRequest, get_queue_url.GetQueueUrlResult, get_queue_url.handle
    ),
    action(
        "ListDeadLetterSourceQueues",
        list_dead_letter_source_queues.ListDeadLetterSourceQueuesRequest,
        list_dead_letter_source_queues.ListDeadLetterSourceQueuesResult,
        list_dead_letter_source_queues.handle,
    ),
    action(
        "ListMessageMoveTasks",
        list_message_move_tasks.ListMessageMoveTasksRequest,
        list_message_move_tasks.ListMessageMoveTasksResult,
        list_message_move_tasks.handle,
    ),
    action(
        "ListQueueTags",
        list_queue_tags.ListQueueTagsRequest,
        list_queue_tags.ListQueueTagsResult,
        list_queue_tags.handle,
    ),
    action("ListQueues", list_queues.ListQueuesRequest, list_queues.ListQueuesResult, list_queues.handle),
    action("PurgeQueue", purge_queue.PurgeQueueRequest, Empty, purge_queue.handle),
    action(
        "ReceiveMessage",
        receive_message.ReceiveMessageRequest,
        receive_message.ReceiveMessageResult,
        receive_message.handle,
    ),
    action("RemovePermission", remove_permission.RemovePermissionRequest, Empty, remove_permission.handle),
    action(
        "SendMessage", send_message.SendMessageRequest, send_message.SendMessageResult, send_message.handle
    ),
    action(
        "SendMessageBatch",
        send_message_batch.SendMessageBatchRequest,
        send_message_batch.SendMessageBatchResult,
        send_message_batch.handle,
    ),
    action(
        "SetQueueAttributes",
        set_queue_attributes.SetQueueAttributesRequest,
        Empty,
        set_queue_attributes.handle,
    ),
    action(
        "StartMessageMoveTask",
        start_message_move_task.StartMessageMoveTaskRequest,
        start_message_move_task.StartMessageMoveTaskResult,
        start_message_move_task.handle,
    ),
    action("TagQueue", tag_queue.TagQueueRequest, Empty, tag_queue.handle),
    action("UntagQueue", untag_queue.UntagQueueRequest, Empty, untag_queue.handle),
)
"""SQS's own."""

OWN_ACTIONS: Final = (
    action("AdoptTopic", adopt_topic.AdoptTopicRequest, adopt_topic.AdoptTopicResult, adopt_topic.handle),
    action(
        "ExplainMessage",
        explain_message.ExplainMessageRequest,
        explain_message.ExplainMessageResult,
        explain_message.handle,
    ),
    action("RewindQueue", rewind_queue.RewindQueueRequest, Empty, rewind_queue.handle),
)
"""What SQS has no action for, under the target `Ropewalk`."""

BY_TARGET: Final[Mapping[str, Action]] = {
    **{f"AmazonSQS.{each.name}": each for each in ACTIONS},
    **{f"Ropewalk.{each.name}": each for each in OWN_ACTIONS},
}
BY_NAME: Final[Mapping[str, Action]] = {each.name: each for each in ACTIONS}
