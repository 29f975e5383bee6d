"""Addresses and ARNs of queues: how they are written, and which queue one means.

Behaviour worth knowing
    A QueueUrl is made of the address that the client asked, so it works through whatever leads here; `sqs.advertise` says another one.
    Any address whose last part is a queue's name means that queue, and so does the bare name. Accounts and regions are not looked at.
"""

from typing import Final

ARN_PREFIX: Final = "arn:aws:sqs:"
_ARN_PARTS: Final = 6


def queue_url(origin: str, account: str, name: str) -> str:
    """`origin` is scheme and authority."""
    return f"{origin}/{account}/{name}"


def name_in_url(url: str) -> str:
    return url.rpartition("/")[2]


def arn(region: str, account: str, name: str) -> str:
    return f"{ARN_PREFIX}{region}:{account}:{name}"


def name_in_arn(text: str) -> str | None:
    """None where it is no ARN of a queue."""
    parts = text.split(":")
    is_arn = len(parts) == _ARN_PARTS and text.startswith("arn:") and parts[2] == "sqs" and all(parts[1:])
    return parts[5] if is_arn else None


def origin_of(scheme: str, host: str) -> str:
    return f"{scheme}://{host}"
