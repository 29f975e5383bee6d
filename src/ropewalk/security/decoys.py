"""Credentials of users that are not there, so that a stranger cannot tell whether there is a user of some name.

What a reader could get wrong
    The same name always gets the same decoy, on every node and after every start: a salt that changes would say that the user is none.
    So the key is one of the cluster's facts, drawn with the first user, and lies where the credentials lie that it protects. Whoever
    can read it can read them as well, and needs no decoys to learn names. A key made from `cluster.secret` would change with it.
    A decoy looks like most of the real ones: with other iterations than theirs, or a salt of another length, it would stand out.
"""

import hmac
from typing import Final

from ropewalk.security.scram import SALT_BYTES_MAX, Mechanism, ScramCredential

DECOY_KEY_BYTES: Final = 32


def decoy(
    key: bytes, mechanism: Mechanism, name: str, *, iterations: int, salt_bytes: int
) -> ScramCredential:
    assert salt_bytes <= SALT_BYTES_MAX, f"a salt of {salt_bytes} bytes"
    return ScramCredential(
        iterations,
        _drawn(key, b"salt", mechanism, name)[:salt_bytes],
        _drawn(key, b"stored key", mechanism, name)[: mechanism.digest_bytes],
        _drawn(key, b"server key", mechanism, name)[: mechanism.digest_bytes],
    )


def _drawn(key: bytes, what: bytes, mechanism: Mechanism, name: str) -> bytes:
    return hmac.digest(key, b"\0".join((what, mechanism.hash_name.encode(), name.encode())), "sha512")
