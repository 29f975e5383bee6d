"""SCRAM (RFC 5802), from the side of whoever is asked: what is kept of a password, and the two messages by which a client proves it.

What a reader could get wrong
    What is kept proves a password and is none: with it alone nobody can log in. It can be tried against guesses, though, and whoever has it can
    pretend to be the server, so it is shown to nobody.
    A conversation with a user that is not there is led to its end with a decoy (`security/decoys.py`) and fails where a wrong password does.
    Names are taken as they are, of ASCII alone, as Kafka does; there is no SASLprep that could make two names one.
    `scramp` takes a while to import, which no start of a node without SASL should pay.
"""

import hashlib
import hmac
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ropewalk.base.errors import AuthenticationFailed
from ropewalk.base.limits import SCRAM_MESSAGE_BYTES_MAX

if TYPE_CHECKING:
    from scramp.core import ScramServer

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384
"""Kafka's bounds."""
ITERATIONS_OURS: Final = 16_384
"""For passwords that are set by our own tools: the most that Kafka's tools accept."""
SALT_BYTES_MIN: Final = 16
SALT_BYTES_MAX: Final = 64
"""Longer than any tool makes one; decoys must be able to look alike."""
SALT_BYTES_OURS: Final = 16


class Mechanism(IntEnum):
    """By the numbers that KIP-554 gives them."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        return f"SCRAM-SHA-{256 if self is Mechanism.SHA_256 else 512}"

    @property
    def hash_name(self) -> str:
        return "sha256" if self is Mechanism.SHA_256 else "sha512"

    @property
    def digest_bytes(self) -> int:
        return 32 if self is Mechanism.SHA_256 else 64


BY_NAME: Final = {mechanism.sasl_name: mechanism for mechanism in Mechanism}


class ScramCredential(Struct, frozen=True):
    """Of one user, by one mechanism."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return f"<ScramCredential of {self.iterations} iterations>"


def salted(mechanism: Mechanism, password: bytes, salt: bytes, iterations: int) -> bytes:
    """Takes milliseconds, and lets other threads go on meanwhile."""
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password, salt, iterations)


def credential_of(
    mechanism: Mechanism, salted_password: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    name = mechanism.hash_name
    client_key = hmac.digest(salted_password, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    return ScramCredential(iterations, salt, stored_key, hmac.digest(salted_password, b"Server Key", name))


class Found(Struct, frozen=True):
    """What is compared with for a name, be there such a user or not."""

    credential: ScramCredential
    is_decoy: bool = False


class ScramConversation:
    """With one client: its first message, then its last."""

    __slots__ = ("_find", "_found", "_mechanism", "_server", "name")

    def __init__(self, mechanism: Mechanism, nonce: str, find: Callable[[str], Found]) -> None:
        """`nonce` is what this side adds, and `find` is asked once, for whatever name the client says."""
        from scramp import ScramMechanism

        self._mechanism = mechanism
        self._find = find
        self._found: Found | None = None
        self.name: str | None = None
        self._server: ScramServer = ScramMechanism(mechanism.sasl_name).make_server(
            self._find_for_scramp, s_nonce=nonce
        )

    @property
    def credential(self) -> ScramCredential | None:
        """What the client has proved, once `on_final` has come back."""
        return None if self._found is None else self._found.credential

    def on_first(self, message: bytes) -> bytes:
        """The server's first message; raises `AuthenticationFailed`."""
        from scramp import ScramException

        try:
            self._server.set_client_first(_text(message))
            answer: str = self._server.get_server_first()
        except ScramException as error:
            raise AuthenticationFailed(f"{self._named}: its first message does not fit: {error}") from None
        return answer.encode()

    def on_final(self, message: bytes) -> bytes:
        """The server's last message, by which it proves that it knows the credential; raises `AuthenticationFailed`."""
        from scramp import ScramException
        from scramp.core import ServerError

        found = self._found
        assert found is not None, "a first message comes before the last"
        try:
            self._server.set_client_final(_text(message))
            answer: str = self._server.get_server_final()
        except ScramException as error:
            if found.is_decoy:
                raise AuthenticationFailed(f"{self._named}: there is no such user") from None
            if error.server_error is ServerError.INVALID_PROOF:
                raise AuthenticationFailed(f"{self._named}: the password is wrong") from None
            raise AuthenticationFailed(f"{self._named}: its last message does not fit: {error}") from None
        if found.is_decoy:  # nobody can know what a decoy asks for
            raise AuthenticationFailed(f"{self._named}: there is no such user")
        return answer.encode()

    @property
    def _named(self) -> str:
        return self._mechanism.sasl_name

    def _find_for_scramp(self, name: str) -> tuple[bytes, bytes, bytes, int]:
        self.name = name
        self._found = self._find(name)
        credential = self._found.credential
        return credential.salt, credential.stored_key, credential.server_key, credential.iterations


def _text(message: bytes) -> str:
    if len(message) > SCRAM_MESSAGE_BYTES_MAX:
        raise AuthenticationFailed(
            f"a message of {len(message)} bytes, at most {SCRAM_MESSAGE_BYTES_MAX} are read"
        )
    if not message.isascii():
        raise AuthenticationFailed("a message that is not ASCII")
    return message.decode("ascii")
