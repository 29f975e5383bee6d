"""What is said of a receipt handle that can be read and does not do, which names the handle."""

from ropewalk.base.errors import RopewalkError
from ropewalk.queues.errors import MessageNotInFlight, ReceiptExpired, VisibilityTooLong
from ropewalk.sqs.errors import invalid


def in_words(error: RopewalkError, handle: str, visibility_s: int = 0) -> RopewalkError:
    match error:
        case ReceiptExpired():
            return invalid("ReceiptHandle", handle, "The receipt handle has expired.")
        case MessageNotInFlight():
            reason = "Message does not exist or is not available for visibility timeout change."
            return invalid("ReceiptHandle", handle, reason)
        case VisibilityTooLong():
            reason = "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"
            return invalid("VisibilityTimeout", visibility_s, reason)
        case _:
            return error
