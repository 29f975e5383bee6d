"""What is hidden of a column before it is written: nothing of it is kept, a keyed digest of it, or its last characters. Arrow in, Arrow out.

    drop      the column is not written
    hash      HMAC-SHA-256 under the job's secret: equal values stay equal, and nobody without the secret finds out which they were.
              As lower-case hexadecimal text in a column of text, as 32 bytes in one of bytes
    last 4    the last four characters, or bytes; nothing of a value that has no more than that

What a reader could get wrong
    Null stays null: whether there was a value is not hidden.
    Without a secret a digest of something short, such as a telephone number, is found by trying all of them; so there is none without.
"""

import hmac
import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from ropewalk.spark.refusals import WrongUse

SECRET_BYTES_MIN: Final = 16
"""Shorter ones can be guessed."""


class Drop(Struct, frozen=True):
    pass


class Hash(Struct, frozen=True):
    pass


class Last(Struct, frozen=True):
    count: int


Mask: TypeAlias = Drop | Hash | Last
Masking: TypeAlias = Callable[[pa.Array], pa.Array]


def parse_mask(text: str, column: str) -> Mask:
    words = text.split()
    if words == ["drop"]:
        return Drop()
    if words == ["hash"]:
        return Hash()
    found = re.fullmatch(r"last ([1-9]\d{0,3})", " ".join(words))
    if found is None:
        raise WrongUse(f"the mask of {column} is {text!r}, must be drop, hash, or last N with a number")
    return Last(int(found[1]))


def masking(mask: Mask, column: str, type_: pa.DataType, secret: bytes) -> Masking:
    """Raises `WrongUse` where the column is of no type that this can be done to."""
    if type_ not in (pa.string(), pa.binary()):
        raise WrongUse(f"{column} is {type_}: hash and last N take text or bytes; drop it")
    match mask:
        case Hash():
            return lambda values: hashed(values, secret)
        case Last(count):
            return lambda values: last(values, count)
        case Drop():
            raise AssertionError("what is dropped is in no row")


def hashed(values: pa.Array, secret: bytes) -> pa.Array:
    """Each distinct value once: identifiers repeat."""
    encoded = pc.dictionary_encode(values)
    digests: list[bytes] = [
        hmac.digest(secret, value, "sha256") for value in encoded.dictionary.cast(pa.binary()).to_pylist()
    ]
    made = (
        pa.array(digests, pa.binary())
        if values.type == pa.binary()
        else pa.array([each.hex() for each in digests])
    )
    return made.cast(values.type).take(encoded.indices)


def last(values: pa.Array, count: int) -> pa.Array:
    if values.type == pa.binary():
        is_longer = pc.greater(pc.binary_length(values), count)
        return pc.if_else(is_longer, pc.binary_slice(values, -count, None), pa.scalar(b"", pa.binary()))
    is_longer = pc.greater(pc.utf8_length(values), count)
    return pc.if_else(is_longer, pc.utf8_slice_codeunits(values, -count, None), pa.scalar(""))


def apply(column: pa.Array, path: Sequence[str], mask: Masking) -> pa.Array:
    """`path`: the names below the column, none for the column itself. A struct that is null stays so."""
    if not path:
        return mask(column)
    at = column.type.get_field_index(path[0])
    # Flattened: with the nulls of the struct in its fields, and from where a slice begins.
    children = column.flatten()
    children[at] = apply(children[at], path[1:], mask)
    return pa.StructArray.from_arrays(children, fields=list(column.type), mask=column.is_null())
