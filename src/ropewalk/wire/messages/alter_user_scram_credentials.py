"""AlterUserScramCredentials (key 51): set and remove SCRAM credentials of users. There is one version.

A password travels salted and hashed, never as it is.
"""

from typing import Final

from ropewalk.wire.api import Api
from ropewalk.wire.types import Int8, Int16, Int32, Message


class ScramCredentialDeletion(Message, frozen=True):
    name: str
    mechanism: Int8


class ScramCredentialUpsertion(Message, frozen=True):
    name: str
    mechanism: Int8
    iterations: Int32
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        """What it holds is as good as the password."""
        return f"ScramCredentialUpsertion({self.name!r}, {self.mechanism}, {self.iterations}, …)"


class AlterUserScramCredentialsRequest(Message, frozen=True):
    deletions: tuple[ScramCredentialDeletion, ...]
    upsertions: tuple[ScramCredentialUpsertion, ...]


class AlterUserScramCredentialsResult(Message, frozen=True):
    user: str
    error_code: Int16
    error_message: str | None


class AlterUserScramCredentialsResponse(Message, frozen=True):
    throttle_ms: Int32
    results: tuple[AlterUserScramCredentialsResult, ...]


API: Final = Api(
    key=51,
    name="AlterUserScramCredentials",
    versions=range(0, 0 + 1),
    flexible_since=0,
    request=AlterUserScramCredentialsRequest,
    response=AlterUserScramCredentialsResponse,
)
