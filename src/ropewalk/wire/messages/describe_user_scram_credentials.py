"""DescribeUserScramCredentials (key 50): which users have SCRAM credentials. There is one version."""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Message


class UserName(Message, frozen=True):
    name: str


class DescribeUserScramCredentialsRequest(Message, frozen=True):
    users: tuple[UserName, ...] | None
    """Null or nobody asks for all."""


class CredentialInfo(Message, frozen=True):
    mechanism: Int8
    iterations: Int32


class DescribeUserScramCredentialsResult(Message, frozen=True):
    user: str
    error_code: Int16
    error_message: str | None
    credential_infos: tuple[CredentialInfo, ...]


class DescribeUserScramCredentialsResponse(Message, frozen=True):
    throttle_ms: Int32
    error_code: Int16
    error_message: str | None
    results: tuple[DescribeUserScramCredentialsResult, ...]


API: Final = Api(
    key=50,
    name="DescribeUserScramCredentials",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=DescribeUserScramCredentialsRequest,
    response=DescribeUserScramCredentialsResponse,
)
