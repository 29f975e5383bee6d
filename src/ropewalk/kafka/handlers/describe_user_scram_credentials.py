"""DescribeUserScramCredentials: nobody has any; `kafka-configs` asks when it lists the quotas of users."""

from ropewalk.kafka.caller import Caller
from ropewalk.wire.error_code import ErrorCode
from ropewalk.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


async def handle(
    request: DescribeUserScramCredentialsRequest, caller: Caller
) -> DescribeUserScramCredentialsResponse:
    del caller
    return DescribeUserScramCredentialsResponse(
        throttle_ms=0,
        error_code=ErrorCode.NONE,
        error_message=None,
        results=tuple(
            DescribeUserScramCredentialsResult(
                user.name, ErrorCode.RESOURCE_NOT_FOUND, f"{user.name!r:.200} has no credentials", ()
            )
            for user in request.users or ()
        ),
    )
