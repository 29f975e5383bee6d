"""What a client says to prove who it is, by SASL mechanism: no socket, no clock; messages in, messages out.

What a reader could get wrong
    SCRAM proves both sides. A server whose signature is wrong has not kept the password's proof, whatever else it says.
    A server that refuses a token says so in a message of OAUTHBEARER first. It is answered with a farewell, and refuses after that.
"""

from typing import Final, Protocol

from ropewalk.base.errors import InvalidSetting, RopewalkError
from ropewalk.base.limits import CLIENT_SCRAM_ITERATIONS_MAX, CLIENT_SCRAM_ITERATIONS_MIN

_SCRAM_MESSAGE_BYTES_MAX: Final = 4096
_FAREWELL: Final = b"\x01"


class NotProved(RopewalkError):
    """What the server said does not follow from the password, or from the protocol."""


class Exchange(Protocol):
    def begin(self) -> bytes:
        """The first message."""

    def answer(self, _challenge: bytes, /) -> bytes | None:
        """The next message; None when there is nothing more to say. Raises `NotProved`."""


class Plain:
    """PLAIN: the password itself."""

    def __init__(self, user: str, password: str) -> None:
        if "\0" in user or "\0" in password:
            raise InvalidSetting("neither sasl_username nor sasl_password may have a zero byte in it")
        self._message = f"\0{user}\0{password}".encode()

    def begin(self) -> bytes:
        return self._message

    def answer(self, _challenge: bytes) -> bytes | None:
        return None


class Bearer:
    """OAUTHBEARER (RFC 7628): a token that somebody else has signed."""

    def __init__(self, token: str) -> None:
        if not token or not all("!" <= character <= "~" for character in token):
            raise InvalidSetting(
                "the token to log in with is empty, or has characters that no token may have"
            )
        self._message = f"n,,\x01auth=Bearer {token}\x01\x01".encode()

    def begin(self) -> bytes:
        return self._message

    def answer(self, challenge: bytes) -> bytes | None:
        return _FAREWELL if challenge else None


class Scram:
    """SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802): a proof of the password, which is not sent."""

    def __init__(self, mechanism: str, user: str, password: str, *, nonce: str) -> None:
        from scramp import (
            ScramClient,
            ScramException,
        )  # slow to come by, and needed by those alone who use it

        self._refused: Final = ScramException
        try:
            self._client = ScramClient([mechanism], user, password, c_nonce=nonce)
        except ScramException:
            raise InvalidSetting(
                "sasl_username or sasl_password has characters that SCRAM does not allow"
            ) from None
        self._has_proved = False

    def begin(self) -> bytes:
        return str(self._client.get_client_first()).encode()

    def answer(self, challenge: bytes) -> bytes | None:
        if len(challenge) > _SCRAM_MESSAGE_BYTES_MAX or not challenge.isascii():
            raise NotProved("it sent what is no message of SCRAM")
        text = challenge.decode()
        try:
            if self._has_proved:
                self._client.set_server_final(text)
                return None
            _check_iterations(text)
            self._client.set_server_first(text)
            self._has_proved = True
            return str(self._client.get_client_final()).encode()
        except self._refused as error:
            raise NotProved(
                f"it could not prove that it knows the user: {str(error).rstrip('.').lower()}"
            ) from None


def _check_iterations(server_first: str) -> None:
    """Before any work is done for it."""
    said = next((field[2:] for field in server_first.split(",") if field.startswith("i=")), "")
    least, most = CLIENT_SCRAM_ITERATIONS_MIN, CLIENT_SCRAM_ITERATIONS_MAX
    if not said.isdecimal() or len(said) > 9 or not least <= int(said) <= most:
        raise NotProved(
            f"it wants the password hashed {said[:16] or 'no'} times; {least} to {most} are allowed"
        )
