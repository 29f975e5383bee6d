"""DescribeUserScramCredentials: by which mechanisms users can log in, and with how many iterations.

Behaviour worth knowing
    Salts and keys are told to nobody.
    Asking for nobody in particular asks for all; naming a user twice is an error of that user alone.
"""

from collections import Counter

from ropewalk.kafka.caller import Caller
from ropewalk.metadata.image import Image
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


async def handle(
    request: DescribeUserScramCredentialsRequest, caller: Caller, *, image: Image
) -> DescribeUserScramCredentialsResponse:
    named = Counter([user.name for user in request.users] if request.users else image.users)
    results: list[DescribeUserScramCredentialsResult] = []
    for name, count in named.items():
        await caller.next_item()
        results.append(_described(image, name, count))
    return DescribeUserScramCredentialsResponse(
        throttle_ms=0, error_code=ErrorCode.NONE, error_message=None, results=tuple(results)
    )


def _described(image: Image, name: str, count: int) -> DescribeUserScramCredentialsResult:
    if count > 1:
        return DescribeUserScramCredentialsResult(
            name, ErrorCode.DUPLICATE_RESOURCE, f"user {name!r:.200} is named {count} times", ()
        )
    held = image.users.of(name)
    if not held:
        return DescribeUserScramCredentialsResult(
            name, ErrorCode.RESOURCE_NOT_FOUND, f"{name!r:.200} has no credentials", ()
        )
    infos = tuple(CredentialInfo(mechanism, credential.iterations) for mechanism, credential in held.items())
    return DescribeUserScramCredentialsResult(name, ErrorCode.NONE, None, infos)
