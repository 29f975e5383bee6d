"""Bytes of a record as something to look at: JSON, MessagePack, Avro by a schema's file, text or hexadecimal digits.

What a reader could get wrong
    Whoever writes records decides what is in them: what cannot be decoded, or is nested too deeply, is an answer (`Undecoded`) and no error.
    Avro is the bare encoding, without the prefix of a registry.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from ropewalk.base.errors import InvalidSetting, RopewalkError

AVRO: Final = "avro:"
NAMES: Final = ("json", "msgpack", "text", "hex", f"{AVRO}FILE")
_INDENTED_BYTES_MAX: Final = 1 << 20
"""What is longer is shown on one line: nobody reads it, and indenting takes time."""


class Undecoded(RopewalkError):
    """The bytes are not of the form that was asked for."""


Decode = Callable[[bytes], object]
"""Raises `Undecoded`."""


def decoder(name: str) -> Decode:
    """By one of `NAMES`. Raises `InvalidSetting`; blocks where a schema is read."""
    if name.startswith(AVRO):
        return _avro(name.removeprefix(AVRO))
    if name not in _DECODERS:
        raise InvalidSetting(f"{name!r} is no way to decode; there are {', '.join(NAMES)}")
    return _DECODERS[name]


def as_text(value: object, *, indent: bool) -> str:
    """A decoded value for people: text as it is, all else as JSON."""
    if isinstance(value, str):
        return value
    try:
        encoded = msgspec.json.encode(value)
        if indent and len(encoded) <= _INDENTED_BYTES_MAX:
            encoded = msgspec.json.format(encoded, indent=2)
    except (TypeError, RecursionError, msgspec.MsgspecError):
        return str(value)
    return encoded.decode()


def json_indented(data: bytes) -> bytes | None:
    """An object or a list of JSON with a line for each part, its figures and texts as they were written; None for anything else."""
    if not data[:64].lstrip().startswith((b"{", b"[")) or len(data) > _INDENTED_BYTES_MAX:
        return None
    try:
        return msgspec.json.format(data, indent=2)
    except (RecursionError, msgspec.MsgspecError):
        return None


def _json(data: bytes) -> object:
    try:
        value: object = msgspec.json.decode(data)
    except (RecursionError, msgspec.MsgspecError) as error:
        raise Undecoded(f"no JSON: {error}") from None
    return value


def _msgpack(data: bytes) -> object:
    try:
        value: object = msgspec.msgpack.decode(data)
    except (RecursionError, TypeError, ValueError, msgspec.MsgspecError) as error:
        raise Undecoded(f"no MessagePack: {error}") from None
    return value


def _text(data: bytes) -> object:
    return data.decode(errors="replace")


def _hex(data: bytes) -> object:
    return data.hex(" ", 2)


def _avro(path: str) -> Decode:
    from ropewalk.client.errors import NotOfFormat
    from ropewalk.client.formats import Avro

    try:
        from fastavro.schema import SchemaParseException
    except ImportError:
        raise InvalidSetting("Avro needs the extra: pip install 'ropewalk[avro]'") from None
    try:
        form = Avro(msgspec.json.decode(Path(path).read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, SchemaParseException) as error:
        raise InvalidSetting(f"{path} cannot be read as a schema of Avro: {error}") from None

    def decode(data: bytes) -> object:
        try:
            value: object = form.decode(data)
        except (NotOfFormat, RecursionError) as error:
            raise Undecoded(str(error)) from None
        return value

    return decode


_DECODERS: Final[dict[str, Decode]] = {"json": _json, "msgpack": _msgpack, "text": _text, "hex": _hex}
