"""Signatures of webhooks as Standard Webhooks has them (https://www.standardwebhooks.com), version v1.

What a reader could get wrong
    What is signed is the id, the time and the body, joined by dots: a body alone could be sent again later.
    There may be several secrets while one takes the place of another; each signs.
"""

import hmac
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from hashlib import sha256
from typing import Final

PREFIX: Final = "whsec_"
SECRET_BYTES_MIN: Final = 24
SECRET_BYTES_MAX: Final = 64


def parse_secrets(text: str) -> tuple[bytes, ...]:
    """One on each line, as `whsec_` and Base64. Raises `ValueError`, which does not show them."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        raise ValueError("the file of secrets holds none")
    return tuple(_secret(number, line) for number, line in enumerate(lines, 1))


def _secret(number: int, line: str) -> bytes:
    try:
        secret = b64decode(line.removeprefix(PREFIX), validate=True)
    except (NotBase64, ValueError):
        raise ValueError(f"secret {number} of the file is not {PREFIX} and Base64") from None
    if not SECRET_BYTES_MIN <= len(secret) <= SECRET_BYTES_MAX:
        raise ValueError(
            f"secret {number} of the file has {len(secret)} bytes, needs {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX}"
        )
    return secret


def signed_headers(secrets: tuple[bytes, ...], *, message_id: str, at_s: int, body: bytes) -> dict[str, str]:
    signed = f"{message_id}.{at_s}.".encode() + body
    signatures = (b64encode(hmac.digest(secret, signed, sha256)).decode() for secret in secrets)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
