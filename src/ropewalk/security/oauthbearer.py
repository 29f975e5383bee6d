"""OAUTHBEARER (RFC 7628), from the side of whoever is asked: the message that a token comes in, and what a refusal looks like.

What a reader could get wrong
    A refusal is a success of the exchange: the client is sent a text in JSON, answers with one byte, and only then is it told that it failed.
    Extensions beside the token are read and forgotten: nobody has vouched for them.
"""

import re
from typing import Final

from msgspec import Struct

from ropewalk.base.errors import AuthenticationFailed
from ropewalk.base.limits import OAUTHBEARER_MESSAGE_BYTES_MAX

REFUSAL: Final = b'{"status":"invalid_token"}'
"""The same whatever was wrong."""

FAREWELL: Final = b"\x01"
"""What a client sends when it has been refused."""

_HEAD: Final = re.compile(rb"n,(?:a=([^,\x00\x01]*))?,\x01")
_PAIR: Final = re.compile(rb"([A-Za-z]+)=([\x21-\x7e \t\r\n]*)")
_BEARER: Final = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +([!-~]+)")


class Presented(Struct, frozen=True):
    token: str
    acting_as: str | None
    """Whom the client wants to be taken for; None where it does not say, and then it is whom the token names."""

    def __repr__(self) -> str:
        return "<Presented>"


def parse_oauthbearer(message: bytes) -> Presented:
    """Raises `AuthenticationFailed`.

    >>> parse_oauthbearer(b"n,a=alice,\\x01auth=Bearer abc\\x01\\x01").acting_as
    'alice'
    """
    if len(message) > OAUTHBEARER_MESSAGE_BYTES_MAX:
        raise AuthenticationFailed(
            f"OAUTHBEARER: a message of {len(message)} bytes, at most {OAUTHBEARER_MESSAGE_BYTES_MAX} are read"
        )
    head = _HEAD.match(message)
    if head is None or not message.endswith(b"\x01\x01"):
        raise AuthenticationFailed("OAUTHBEARER: the message is not framed as RFC 7628 says")
    values: dict[bytes, bytes] = {}
    for item in message[head.end() : -2].split(b"\x01"):
        pair = _PAIR.fullmatch(item)
        if pair is None or pair[1] in values:
            raise AuthenticationFailed("OAUTHBEARER: the message is not made of keys with values, each once")
        values[pair[1]] = pair[2]
    bearer = _BEARER.fullmatch(values.get(b"auth", b""))
    if bearer is None:
        raise AuthenticationFailed("OAUTHBEARER: the message holds no bearer token")
    return Presented(bearer[1].decode(), _name(head[1]))


def _name(said: bytes | None) -> str | None:
    """As RFC 5801 spells it: a comma is =2C, an equals sign is =3D, and no other stands by itself."""
    if not said:
        return None
    if re.search(rb"=(?!2C|3D)", said):
        raise AuthenticationFailed("OAUTHBEARER: the name to act as is spelled wrong")
    try:
        return said.replace(b"=2C", b",").replace(b"=3D", b"=").decode()
    except UnicodeDecodeError:
        raise AuthenticationFailed("OAUTHBEARER: the name to act as is not UTF-8") from None
